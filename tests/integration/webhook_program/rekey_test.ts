import { assert, assertEquals } from "#assert";
import { systemClock } from "../../../src/base/clock.ts";
import { ran } from "../../harness/administration_fixture.ts";
import { stores } from "../../harness/store_places.ts";
import { until } from "../../harness/until.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { WebhookServed } from "../../harness/webhook_served.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const [OLD, NEW] = [1, 2].map((byte) => new Uint8Array(32).fill(byte).toBase64()) as [string, string];
const HEADERS = { "x-tenant": "value-of-a-static-header" };
const PATHS = ["/first", "/second"];

stores.test("an encryption key is rotated with weir store rekey, and Weir starts with the new key only", async ({ address }) => {
  await using receiver = await WebhookReceiver.start();
  await using weir = await WebhookServed.open({ env: { WEBHOOK_STORE: address } });
  const command = async (name: "rekey" | "check", WEBHOOK_ENCRYPTION_KEY: string) => {
    const environment = { WEBHOOK_STORE: address, WEBHOOK_ENCRYPTION_KEY };
    const { code, stdout, stderr: all } = await ran(["store", name], { environment, clock: systemClock });
    // On a busy machine it takes so long that it shows its progress.
    const stderr = all.replaceAll(/^.* \(\d+ s\)\n/gm, "");
    const lines = stdout.trimEnd().split("\n").map((line) => line.slice(line.lastIndexOf(": ") + 2));
    return { code, stderr, lines, keys: lines.flatMap((line) => / the key (.*)/.exec(line)?.[1] ?? []) };
  };
  await weir.start({ env: { WEBHOOK_ENCRYPTION_KEY: OLD } });
  const endpoints = [];
  for (const path of PATHS) endpoints.push(await weir.endpoint(receiver, path, { headers: HEADERS }));
  const before = await command("check", OLD);
  assertEquals([before.code, before.stderr, before.keys.length], [0, "", 1]);
  const oldId = before.keys[0]?.split(",")[0];
  assertEquals(before.keys, [`${oldId}, encrypts new secrets`]);

  // A secret under the wrong key only is not touched.
  const wrong = await command("rekey", NEW);
  assertEquals(wrong.code, 1);
  assert(wrong.stderr.includes(`the key "${oldId}": it is not among the keys`), wrong.stderr);
  assertEquals([wrong.keys, wrong.lines.at(-1)], [[`${oldId}, missing`], "other keys are still in use (1)"]);
  await weir.stop();

  await weir.start({ env: { WEBHOOK_ENCRYPTION_KEY: `${NEW},${OLD}` } });
  const [first] = endpoints;
  const rotated = await weir.api("POST", `/endpoints/${first?.id}/rotate`, { activeIn: "0s" });
  receiver.secrets.set("/first", rotated.body.secret);
  assertEquals((await command("check", `${NEW},${OLD}`)).keys.length, 2);
  const rekeyed = await command("rekey", `${NEW},${OLD}`);
  assertEquals([rekeyed.code, rekeyed.stderr, rekeyed.lines.at(-1)], [0, "", "no other key is in use"]);
  assertEquals(rekeyed.lines.slice(0, 2), [
    "2 secrets of endpoint_secret encrypted again",
    "2 secrets of endpoint encrypted again",
  ]);
  // It goes on with what it has read before, and with what it reads now.
  await weir.event({ n: 1 }, "while-both");
  await until("both deliveries", () => weir.isDelivered());
  await weir.stop();

  await weir.start({ env: { WEBHOOK_ENCRYPTION_KEY: NEW } });
  await weir.event({ n: 2 }, "new-key-only");
  await until("both deliveries", () => weir.isDelivered());
  assertEquals(receiver.problems, []);
  assertEquals(
    receiver.receptions.map(({ headers }) => headers["x-tenant"]),
    Array(4).fill(HEADERS["x-tenant"]),
  );
  assert(!(await weir.health()).text.includes("cannot be read"));
  const after = await command("check", NEW);
  assertEquals([after.code, after.keys.length], [0, 1]);
  assert(after.keys[0]?.endsWith("encrypts new secrets") && !after.keys[0].startsWith(String(oldId)));
  const audited = await weir.all("/audit?event=store.rekeyed");
  assertEquals(audited.length, 1);
  const written = [...weir.lines, JSON.stringify(audited), rekeyed.lines.join()];
  assertEquals(written.filter((text) => [OLD, NEW].some((key) => text.includes(key))), []);
});
