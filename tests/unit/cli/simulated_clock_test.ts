import { assertEquals } from "#assert";
import { SimulatedClock } from "../../../src/cli/simulate.ts";

Deno.test("simulated clock: stands where it was moved to, never goes back, and runs what is late once", () => {
  const clock = new SimulatedClock();
  const runs: number[] = [];
  const again = () => {
    runs.push(clock.now());
    clock.after(1_000, again);
  };
  clock.after(1_000, again);
  const cancel = clock.after(500, () => runs.push(-1));
  cancel();
  cancel();
  for (const time of [999, 1_000, 500, 1_999, 9_000_000, 9_000_500, 9_001_000]) clock.moveTo(time);
  assertEquals([runs, clock.now(), clock.elapsed()], [[1_000, 9_000_000, 9_001_000], 9_001_000, 9_001_000]);
});

Deno.test("simulated clock: a timer that another one cancels does not run", () => {
  const clock = new SimulatedClock();
  const runs: string[] = [];
  let cancel = () => {};
  clock.after(1, () => {
    runs.push("first");
    cancel();
  });
  cancel = clock.after(2, () => runs.push("second"));
  clock.moveTo(10);
  assertEquals(runs, ["first"]);
});
