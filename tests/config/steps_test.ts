import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { runSteps, runStepsInTurns, type Steps } from "../../src/config/steps.ts";

function* counting(to: number, note: (step: number) => void): Steps<string> {
  for (let step = 1; step <= to; step++) {
    note(step);
    yield;
  }
  return `${to} steps`;
}

function* failing(): Steps<string> {
  yield;
  throw new Error("in the middle");
}

Deno.test("steps: at once or in turns, the result is the same", async () => {
  for (const to of [0, 1, 3]) {
    const seen: number[] = [];
    const note = (step: number) => void seen.push(step);
    assertEquals(runSteps(counting(to, note)), `${to} steps`);
    assertEquals(await runStepsInTurns(counting(to, note)), `${to} steps`);
    const once = Array.from({ length: to }, (_, index) => index + 1);
    assertEquals(seen, [...once, ...once]);
  }
});

Deno.test("steps: a timer that is due has its turn between two steps", async () => {
  const seen: string[] = [];
  await runStepsInTurns(counting(2, (step) => {
    setTimeout(() => seen.push(`timer ${step}`), 0);
    seen.push(`step ${step}`);
  }));
  assertEquals(seen, ["step 1", "timer 1", "step 2", "timer 2"]);
});

Deno.test("steps: an error ends them", async () => {
  assertEquals(assertThrows(() => runSteps(failing())).message, "in the middle");
  assertEquals((await assertRejects(() => runStepsInTurns(failing()))).message, "in the middle");
});
