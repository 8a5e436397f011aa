import { assertEquals } from "@std/assert";
import type { SpanList } from "../../src/telemetry/tracing_span_list.ts";
import { SpanOutbox } from "../../src/telemetry/tracing_span_outbox.ts";
import { KeptLog } from "../http/http_fixture.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { namesIn, spanNamed } from "./tracing_exporter_double.ts";

/** An outbox whose lists are kept. */
function startOutbox() {
  const [clock, logger, posted] = [new FakeClock(), new KeptLog(), [] as SpanList[]];
  const outbox = new SpanOutbox({ clock, logger, post: (list) => void posted.push(list) });
  const add = (count: number) => {
    for (let at = 0; at < count; at++) outbox.add(spanNamed(`${at}`));
  };
  return { clock, logger, posted, outbox, add, counts: () => posted.map((list) => namesIn(list).length) };
}

Deno.test("span outbox: spans are sent together, when 256 wait or 100 ms after the first", () => {
  const { clock, posted, outbox, add, counts } = startOutbox();
  outbox.open(1_000);
  add(2);
  clock.advance(99);
  assertEquals(counts(), []);
  clock.advance(1);
  assertEquals(posted.map(namesIn), [["0", "1"]]);
  add(257);
  assertEquals(counts(), [2, 256]);
  clock.advance(100);
  assertEquals([counts(), clock.waiting], [[2, 256, 1], 0]);
});

Deno.test("span outbox: what waits here and what was not taken are bounded together", () => {
  const { clock, logger, outbox, add, counts } = startOutbox();
  outbox.open(300);
  add(400);
  clock.advance(100);
  assertEquals([counts(), logger.lines], [[256, 44], []]);
  // The first list is taken, so there is room again.
  assertEquals(outbox.noteTaken(), 44);
  add(1_000);
  outbox.noteTaken();
  clock.advance(100);
  assertEquals([counts(), outbox.noteTaken()], [[256, 44, 256], 0]);
  clock.advance(1_000);
  assertEquals(outbox.noteTaken(), 0);
  assertEquals(logger.lines.map(({ message }) => message), [
    "Dropped 100 spans: 300 wait to be exported",
    "Dropped 744 spans: 300 wait to be exported",
  ]);
});

Deno.test("span outbox: while nobody takes spans they wait, up to the bound", () => {
  const { clock, logger, outbox, add, counts } = startOutbox();
  outbox.open(10);
  add(4);
  clock.advance(100);
  assertEquals(outbox.suspend(), 4);
  add(12);
  clock.advance(1_000);
  assertEquals(counts(), [4]);
  outbox.open(10);
  assertEquals(counts(), [4, 10]);
  outbox.close();
  assertEquals([clock.waiting, logger.lines.length], [0, 1]);
});

Deno.test("span outbox: the end sends what is left, and nothing is taken after it", () => {
  const { clock, logger, outbox, add, counts } = startOutbox();
  outbox.open(10);
  add(3);
  outbox.close();
  add(1);
  clock.advance(1_000);
  assertEquals([counts(), clock.waiting, logger.lines], [[3], 0, []]);
});
