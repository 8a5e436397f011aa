import { assertEquals, assertThrows } from "#assert";
import { EarlyRuleWorker, type RuleWorkerHandle } from "../../../src/config/rule_worker.ts";

/** A worker that does nothing; a test lets it fail. */
class IdleWorker implements RuleWorkerHandle {
  isTerminated = false;
  onmessage: RuleWorkerHandle["onmessage"] = null;
  onmessageerror: RuleWorkerHandle["onmessageerror"] = null;
  onerror: RuleWorkerHandle["onerror"] = null;

  postMessage(): void {}

  terminate(): void {
    this.isTerminated = true;
  }

  /** Fails; returns whether that would end the process. */
  endsProcess(): boolean {
    const event = new ErrorEvent("error", { cancelable: true });
    this.onerror?.(event);
    return !event.defaultPrevented;
  }
}

/** The workers that were created, and the early one. */
function scene(create = () => new IdleWorker()) {
  const workers: IdleWorker[] = [];
  const early = new EarlyRuleWorker(() => {
    const worker = create();
    workers.push(worker);
    return worker;
  });
  return { workers, early };
}

Deno.test("rule worker: the early one is taken once, and closing ends only one that was not taken", () => {
  const { workers, early } = scene();
  early.start();
  assertEquals(workers.length, 1);
  const taken = [early.take(), early.take()];
  early.close();
  assertEquals(taken, workers);
  assertEquals(workers.map(({ isTerminated }) => isTerminated), [false, false]);
  early.start();
  early.close();
  assertEquals(workers.map(({ isTerminated }) => isTerminated), [false, false, true]);
});

Deno.test("rule worker: without an early one, each is started when it is taken", () => {
  const { workers, early } = scene();
  assertEquals([early.take(), workers.length], [workers[0], 1]);
});

Deno.test("rule worker: one that fails before it is taken ends nothing, and the next one is taken", () => {
  const { workers, early } = scene();
  early.start();
  assertEquals(workers[0]?.endsProcess(), false);
  assertEquals([early.take(), workers.length], [workers[1], 2]);
});

Deno.test("rule worker: without a thread the start goes on, and taking one throws", () => {
  let isOut = true;
  const { workers, early } = scene(() => {
    if (isOut) throw new Error("no thread");
    return new IdleWorker();
  });
  early.start();
  const { message } = assertThrows(() => early.take());
  isOut = false;
  assertEquals([message, early.take()], ["no thread", workers[0]]);
});
