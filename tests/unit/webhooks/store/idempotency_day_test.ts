import { assertEquals } from "@std/assert";
import { WebhookBed } from "../../../harness/webhook_service_fixture.ts";

const DAY_MS = 86_400_000;

Deno.test("a key stands for its answer until 23:59:59.999, and for a new one from 24:00:00 on", async () => {
  await using bed = await WebhookBed.open();
  const { key } = await bed.trigger();
  const call = () => bed.start(key, { n: 1 }, { idempotencyKey: "one-key" });
  const started = async () => (await bed.call("GET", "/executions")).body.items.length;

  const first = await call();
  bed.clock.advance(DAY_MS - 1);
  const replayed = await Promise.all(Array.from({ length: 100 }, call));
  assertEquals(new Set(replayed.map(({ body }) => body.executionId)), new Set([first.body.executionId]));
  assertEquals(await started(), 1);

  bed.clock.advance(1);
  const next = await Promise.all(Array.from({ length: 100 }, call));
  const ids = new Set(next.map(({ body }) => body.executionId));
  assertEquals([ids.size, ids.has(first.body.executionId), await started()], [1, false, 2]);

  bed.clock.advance(DAY_MS - 1);
  assertEquals([...ids], [(await call()).body.executionId]);
});
