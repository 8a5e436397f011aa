import { assertEquals } from "#assert";
import type { ByteSink } from "../../../src/base/line_writer.ts";
import { jsonLines, stdoutCarrier } from "../../../src/stats/stdout_sink.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

const HEAD = { timestamp: "2026-01-01T12:00:00.000Z" };
const TAGS = { tags: { env: "prod" } };

Deno.test("standard output: one JSON object for each statistic, with the tags", () => {
  const format = jsonLines(new Map([["env", "prod"]]), { now: () => Date.UTC(2026, 0, 1, 12) });
  const sample = { values: [4, 1, 2, 3], seen: 40, sumMs: 100.00049 };
  const lines = [format.counter('a"b', 3), format.gauge("g", -1.5), ...format.timer("t", sample)];
  assertEquals(lines.map((line) => JSON.parse(line)), [
    { ...HEAD, type: "counter", name: 'a"b', value: 3, ...TAGS },
    { ...HEAD, type: "gauge", name: "g", value: -1.5, ...TAGS },
    { ...HEAD, type: "timer", name: "t", count: 40, sum_ms: 100, p50_ms: 2, p99_ms: 4, ...TAGS },
  ]);
});

/** Accepts writes when the test allows it. */
class SlowSink implements ByteSink {
  readonly written: string[] = [];
  #taken = Promise.withResolvers<void>();

  async write(bytes: Uint8Array): Promise<number> {
    await this.#taken.promise;
    this.written.push(new TextDecoder().decode(bytes));
    return bytes.length;
  }

  take(): void {
    this.#taken.resolve();
  }
}

Deno.test("standard output: a slice is one write, and the next follows when it is written", async () => {
  const sink = new SlowSink();
  const carrier = stdoutCarrier(sink, new FakeClock());
  await carrier.prepare(false);
  let isSent = false;
  const sent = carrier.send(["{1}", "{2}"]).then(() => void (isSent = true));
  await Promise.resolve();
  assertEquals(isSent, false);
  sink.take();
  await sent;
  assertEquals(sink.written, ["{1}\n{2}\n"]);
});

Deno.test("standard output: the end does not wait for a reader that is not there", async () => {
  const carrier = stdoutCarrier(new SlowSink(), new FakeClock());
  const sent = carrier.send(["{1}"]);
  await carrier.close();
  await sent;
  assertEquals(carrier.usable, false);
});
