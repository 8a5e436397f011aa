import { assertEquals } from "#assert";
import type { SpanPack } from "../../../src/telemetry/tracing_span_pack.ts";
import { SpanOutbox } from "../../../src/telemetry/tracing_span_outbox.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { namesIn, spanNamed } from "../../harness/tracing_exporter_double.ts";

/** An outbox whose packs are kept. */
function startOutbox(maxWaiting: number) {
  const [clock, logger, posted] = [new FakeClock(), new RecordedLogger(), [] as SpanPack[]];
  const outbox = new SpanOutbox({ clock, logger, maxWaiting, post: (pack) => void posted.push(pack) });
  const add = (count: number) => {
    for (let at = 0; at < count; at++) outbox.add(spanNamed(`${at}`));
  };
  return { clock, logger, posted, outbox, add, counts: () => posted.map((pack) => namesIn(pack).length) };
}

Deno.test("span outbox: spans are sent together, when 512 wait or 250 ms after the first", () => {
  const { clock, posted, outbox, add, counts } = startOutbox(1_000);
  outbox.open();
  add(2);
  clock.advance(249);
  assertEquals(counts(), []);
  clock.advance(1);
  assertEquals(posted.map(namesIn), [["0", "1"]]);
  add(513);
  assertEquals(counts(), [2, 512]);
  clock.advance(250);
  assertEquals([counts(), clock.waiting], [[2, 512, 1], 0]);
});

Deno.test("span outbox: one limit for waiting spans and those without a receipt", () => {
  const { clock, logger, outbox, add, counts } = startOutbox(600);
  outbox.open();
  add(700);
  clock.advance(250);
  assertEquals([counts(), logger.lines], [[512, 88], []]);
  // The first pack is acknowledged, so there is room again.
  assertEquals(outbox.noteTaken(), 88);
  add(1_300);
  outbox.noteTaken();
  clock.advance(250);
  assertEquals([counts(), outbox.noteTaken()], [[512, 88, 512], 0]);
  clock.advance(1_000);
  assertEquals(outbox.noteTaken(), 0);
  const message = "Spans dropped: too many wait to be exported";
  assertEquals(logger.lines, [
    { level: "warning", message, fields: { dropped: 100, maxWaiting: 600 } },
    { level: "warning", message, fields: { dropped: 788, maxWaiting: 600 } },
  ]);
});

Deno.test("span outbox: before it is open spans wait, up to the limit", () => {
  const { clock, logger, outbox, add, counts } = startOutbox(10);
  outbox.open();
  add(4);
  clock.advance(250);
  assertEquals(outbox.suspend(), 4);
  add(12);
  clock.advance(1_000);
  assertEquals(counts(), [4]);
  outbox.open();
  assertEquals(counts(), [4, 10]);
  outbox.close();
  assertEquals([clock.waiting, logger.lines.length], [0, 1]);
});

Deno.test("span outbox: the end sends what is left, and later spans are dropped", () => {
  const { clock, logger, outbox, add, counts } = startOutbox(10);
  outbox.open();
  add(3);
  outbox.close();
  add(1);
  clock.advance(1_000);
  assertEquals([counts(), clock.waiting, logger.lines], [[3], 0, []]);
});
