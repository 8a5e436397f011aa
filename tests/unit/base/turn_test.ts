import { assertEquals } from "#assert";
import { afterDelay, type Defer, TurnBatch, TurnMemo, TurnTask } from "../../../src/base/turn.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

/** Runs what was deferred when the test says so. */
class Deferred {
  readonly #waiting = new Set<() => void>();
  readonly defer: Defer = (run) => {
    this.#waiting.add(run);
    return () => this.#waiting.delete(run);
  };

  end(): number {
    const due = [...this.#waiting];
    this.#waiting.clear();
    for (const run of due) run();
    return due.length;
  }
}

Deno.test("turn: a task runs once for all requests, and not after it was cancelled", () => {
  const turn = new Deferred();
  let runs = 0;
  const task = new TurnTask(() => runs++, turn.defer);
  task.request();
  task.request();
  assertEquals([turn.end(), turn.end(), runs], [1, 0, 1]);
  task.request();
  task.cancel();
  assertEquals([turn.end(), runs], [0, 1]);
});

Deno.test("turn: a batch sends what was added, in order, at most so many items at a time", () => {
  const turn = new Deferred();
  const sent: (readonly number[])[] = [];
  const batch = new TurnBatch<number>((items) => sent.push(items), { defer: turn.defer, maxItems: 2 });
  for (const item of [1, 2, 3]) batch.add(item);
  assertEquals([sent, batch.size], [[], 3]);
  turn.end();
  assertEquals([sent.splice(0), batch.size], [[[1, 2]], 1]);
  turn.end();
  assertEquals([sent.splice(0), turn.end()], [[[3]], 0]);
  batch.add(4);
  batch.drop();
  batch.add(5);
  batch.flush();
  assertEquals([sent, turn.end()], [[[5]], 0]);
});

Deno.test("turn: the calls of one task share a value", async () => {
  let created = 0;
  const memo = new TurnMemo<string, number>();
  const get = () => memo.get("key", () => ++created);
  assertEquals([get(), get()], [1, 1]);
  await Promise.resolve();
  assertEquals(get(), 2);
});

Deno.test("turn: a delay without length is the end of the task, and a long one is a timer", async () => {
  const clock = new FakeClock();
  const runs: string[] = [];
  afterDelay(0, clock)(() => runs.push("task"));
  afterDelay(0, clock)(() => runs.push("cancelled"))();
  afterDelay(5, clock)(() => runs.push("timer"));
  await Promise.resolve();
  assertEquals(runs, ["task"]);
  clock.advance(5);
  assertEquals(runs, ["task", "timer"]);
});
