import { assertEquals } from "#assert";
import { SpanOutbox } from "../../../src/telemetry/tracing_span_outbox.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { namesIn, spanNamed } from "../../harness/span_samples.ts";
import { settledTurns } from "../../harness/until.ts";

const DELAY_MS = 250;

/** An outbox whose batches a test answers. */
function startOutbox({ maxWaiting = 1_000, maxBatch = 512 } = {}) {
  const [clock, logger, sizes] = [new FakeClock(), new RecordedLogger(), [] as number[]];
  let answer = (_isAccepted: boolean) => {};
  const outbox = new SpanOutbox({
    send: async (batch) => {
      sizes.push(batch.signal === "TRACES" ? namesIn(batch.spans).length : 0);
      const { promise, resolve } = Promise.withResolvers<boolean>();
      answer = resolve;
      return await promise;
    },
    delayMs: DELAY_MS,
    clock,
    logger,
    maxWaiting,
    maxBatch,
  });
  const add = (count: number) => {
    for (let at = 0; at < count; at++) outbox.add(spanNamed(`${at}`));
  };
  const answered = async (isAccepted = true) => {
    answer(isAccepted);
    await settledTurns();
  };
  return { clock, logger, outbox, add, sizes, answered };
}

Deno.test("span outbox: spans are sent when a batch is whole, or a while after the first of them", async () => {
  const { clock, add, sizes, answered } = startOutbox();
  add(2);
  clock.advance(DELAY_MS - 1);
  assertEquals(sizes, []);
  clock.advance(1);
  assertEquals(sizes, [2]);
  await answered();
  add(513);
  assertEquals(sizes, [2, 512]);
  await answered();
  clock.advance(DELAY_MS);
  assertEquals([sizes, clock.waiting], [[2, 512, 1], 0]);
});

Deno.test("span outbox: one batch is sent at a time, and the rest waits for its delay", async () => {
  const { clock, add, sizes, answered } = startOutbox({ maxBatch: 2 });
  add(5);
  assertEquals(sizes, [2]);
  await answered(false);
  assertEquals(sizes, [2, 2]);
  clock.advance(DELAY_MS);
  add(1);
  await answered();
  assertEquals(sizes, [2, 2, 2]);
});

Deno.test("span outbox: beyond the limit spans are dropped, and logged once a second", async () => {
  const { clock, logger, add, sizes, answered } = startOutbox({ maxWaiting: 5, maxBatch: 4 });
  add(7);
  clock.advance(1_000);
  add(1);
  await answered();
  add(2);
  await answered();
  assertEquals(sizes, [4, 1]);
  const line = { level: "warning", message: "Spans dropped: too many wait to be exported" } as const;
  assertEquals(logger.lines, [
    { ...line, fields: { maxWaiting: 5 } },
    { ...line, fields: { maxWaiting: 5, suppressed: 1 } },
  ]);
});

Deno.test("span outbox: spans that end while the last batch is answered are sent too", async () => {
  const { clock, outbox, add, sizes, answered } = startOutbox({ maxBatch: 2 });
  add(2);
  // In every turn of the promises that follow an answer, as a call that waited for the same turn may end.
  for (let turns = 0; turns < 6; turns++) {
    const sent = sizes.length;
    const ending = answered();
    for (let turn = 0; turn < turns; turn++) await undefined;
    add(2);
    await ending;
    assertEquals(sizes.length, sent + 1);
  }
  outbox.close();
  assertEquals(clock.waiting, 0);
});

Deno.test("span outbox: the end sends what is left without waiting, and later spans are dropped", async () => {
  const { clock, logger, outbox, add, sizes, answered } = startOutbox({ maxBatch: 2 });
  add(5);
  assertEquals(sizes, [2]);
  outbox.close();
  assertEquals(sizes, [2, 2, 1]);
  add(1);
  await answered();
  assertEquals([sizes, clock.waiting, logger.lines], [[2, 2, 1], 0, []]);
});
