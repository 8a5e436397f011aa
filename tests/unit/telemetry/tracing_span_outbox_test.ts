import { assertEquals } from "#assert";
import { SpanOutbox } from "../../../src/telemetry/tracing_span_outbox.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { namesIn, spanNamed } from "../../harness/span_samples.ts";
import { settledTurns } from "../../harness/until.ts";

const DELAY_MS = 250;

/** An outbox whose batches a test answers. */
function startOutbox({ maxWaiting = 1_000, maxBatch = 512, ready = () => Promise.resolve() } = {}) {
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
    ready,
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

Deno.test("span outbox: the end sends what is left, and later spans are dropped", async () => {
  const { clock, logger, outbox, add, sizes, answered } = startOutbox();
  add(3);
  const closed = outbox.close();
  await settledTurns();
  await answered();
  await closed;
  add(1);
  assertEquals([sizes, clock.waiting, logger.lines], [[3], 0, []]);
});

const ENDS: readonly [title: string, accepted: number, seconds: number][] = [
  ["takes nothing", 0, 1],
  ["stops taking spans", 1, 2],
  ["takes too long", 9, 5],
];

for (const [title, accepted, seconds] of ENDS) {
  Deno.test(`span outbox: the end waits ${seconds} s for a collector that ${title}`, async () => {
    const { clock, logger, outbox, add, answered } = startOutbox({ maxBatch: 1 });
    add(20);
    let isClosed = false;
    void outbox.close().then(() => isClosed = true);
    let waited = 0;
    for (; !isClosed; waited++) {
      await settledTurns();
      if (waited < accepted) await answered();
      clock.advance(1_000);
      await settledTurns();
    }
    assertEquals([waited, clock.waiting, logger.lines.map(({ message }) => message)], [seconds, 0, [
      "Cannot export the last spans: the collector did not accept them in time",
    ]]);
  });
}

Deno.test("span outbox: the end waits 5 s for a worker that is starting", async () => {
  const { clock, logger, outbox, add } = startOutbox({ ready: () => new Promise(() => {}) });
  add(1);
  const closed = outbox.close();
  clock.advance(5_000);
  await closed;
  assertEquals(logger.lines.map(({ message }) => message), [
    "Cannot export the last spans: the worker is not ready",
  ]);
});
