import { assertEquals } from "#assert";
import { type ByteSink, LineWriter } from "../../../src/base/line_writer.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

/** A sink whose writes end as the test says: with how many bytes were taken, or by an error. */
class ScriptedSink implements ByteSink {
  text = "";
  readonly #writes: ((taken: number | Error) => void)[] = [];

  async write(bytes: Uint8Array): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number | Error>();
    this.#writes.push(resolve);
    const taken = await promise;
    if (taken instanceof Error) throw taken;
    const count = Math.min(taken, bytes.length);
    this.text += new TextDecoder().decode(bytes.subarray(0, count));
    return count;
  }

  /** Ends the write under way; without an argument it takes everything. */
  async end(taken: number | Error = Infinity): Promise<void> {
    this.#writes.shift()?.(taken);
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  }

  /** Ends this write and all that follow. */
  async endAll(): Promise<void> {
    while (this.#writes.length > 0) await this.end();
  }
}

/** A writer into a scripted sink, which reports dropped lines in its own stream. */
function bed() {
  const sink = new ScriptedSink();
  const clock = new FakeClock();
  const writer: LineWriter = new LineWriter({ sink, clock, onRoom: (n) => writer.write(`dropped ${n}`) });
  return { sink, clock, writer };
}

Deno.test("line writer: one write at a time, lines that wait go together, in order", async () => {
  const { sink, writer } = bed();
  for (const line of ["a", "b", "c"]) writer.write(line);
  await sink.end();
  assertEquals(sink.text, "a\n");
  await sink.end(1);
  await sink.endAll();
  await writer.drained();
  assertEquals(sink.text, "a\nb\nc\n");
});

Deno.test("line writer: a failed write is repeated later, without what was taken", async () => {
  const { sink, clock, writer } = bed();
  writer.write("abc");
  await sink.end(2);
  for (let round = 0; round < 3; round++) {
    await sink.end(new Error("No space left on device"));
    clock.advance(250);
    await Promise.resolve();
  }
  writer.write("d");
  await sink.endAll();
  await writer.drained();
  assertEquals([sink.text, clock.waiting, writer.dropped], ["abc\nd\n", 0, 0]);
});

Deno.test("line writer: what has no room is dropped, counted, and reported once when there is room", async () => {
  const { sink, writer } = bed();
  const line = "x".repeat(1_023);
  for (let count = 0; count < 2_000; count++) writer.write(line);
  // 1,025 lines fit into 1 Mi characters.
  assertEquals(writer.dropped, 975);
  await sink.endAll();
  const lines = sink.text.trimEnd().split("\n");
  assertEquals([lines.length, lines.filter((one) => one === line).length], [1_026, 1_025]);
  assertEquals(lines.filter((one) => one !== line), ["dropped 975"]);
  writer.write("later");
  await sink.endAll();
  assertEquals([sink.text.endsWith("\nlater\n"), writer.dropped], [true, 975]);
});

Deno.test("line writer: a line of any length is written when none waits", async () => {
  const { sink, writer } = bed();
  writer.write("x".repeat(2_000_000));
  await sink.endAll();
  assertEquals([sink.text.length, writer.dropped], [2_000_001, 0]);
});
