import { assertEquals } from "#assert";
import { EndedCalls } from "../../../../src/grpc/native/ended_calls.ts";

/** Takes note of the reported durations. */
class Durations {
  readonly told: number[] = [];
  started(): void {}
  ended(ms: number): void {
    this.told.push(ms);
  }
}

Deno.test("ended calls: all that ended before the same output share one reading of the clock", () => {
  let [now, readings] = [0, 0];
  const ended = new EndedCalls(() => {
    readings++;
    return now;
  });
  const [one, other] = [new Durations(), new Durations()];
  ended.flush();
  ended.note(one, 1);
  ended.note(other, 2.5);
  ended.note(one, 4);
  now = 10;
  assertEquals([one.told, other.told, readings], [[], [], 0]);
  ended.flush();
  ended.flush();
  assertEquals([one.told, other.told, readings], [[9, 6], [7.5], 1]);
  ended.note(other, 9);
  ended.flush();
  assertEquals([one.told, other.told, readings], [[9, 6], [7.5, 1], 2]);
});

Deno.test("ended calls: however many end together, few are kept, and each is reported once", () => {
  let readings = 0;
  const ended = new EndedCalls(() => {
    readings++;
    return 5_000;
  });
  const durations = new Durations();
  for (let call = 0; call < 1_000; call++) ended.note(durations, call);
  assertEquals([durations.told.length, readings], [768, 3]);
  ended.flush();
  assertEquals(durations.told, Array.from({ length: 1_000 }, (_, call) => 5_000 - call));
});
