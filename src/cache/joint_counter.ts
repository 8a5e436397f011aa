import type { Counted, Taken } from "../ratelimit/algorithms/taken.ts";
import type { Caller, Counter, CountReceiver, JointHit } from "../ratelimit/decision/counter_cache.ts";

/** The counters of several windows whose counts are known before `take` returns: looked at first, then taken. */
export class JointCounter implements Counter {
  readonly #counters: readonly Counter[];
  readonly #limits: JointHit["joint"]["limits"];

  constructor({ windows, joint }: JointHit, counterOf: (hit: JointHit["windows"][number]) => Counter) {
    this.#counters = windows.map(counterOf);
    this.#limits = joint.limits;
  }

  take(hits: number, caller: Caller | undefined, receiver: CountReceiver): void {
    const looked = hits < 0 ? [] : this.#takeEach(0, caller);
    const passes = looked.every(({ available }) => Math.max(1, hits) <= available);
    const taken = hits !== 0 && passes ? this.#takeEach(hits, caller) : looked;
    const windows = passes
      ? taken
      : taken.map((one) => ({ ...one, granted: Math.max(1, hits) <= one.available }));
    const [first] = windows;
    if (first === undefined) receiver.failed(new TypeError("There are no windows"));
    else receiver.counted({ ...first, granted: passes, windows });
  }

  #takeEach(hits: number, caller: Caller | undefined): Taken[] {
    return this.#counters.map((counter, index) => {
      let taken: Counted = 0;
      const receiver: CountReceiver = {
        counted: (count) => taken = count,
        failed: (error) => {
          throw error;
        },
      };
      counter.take(hits, caller, receiver);
      return typeof taken === "number" ? takenIn(taken, this.#limits[index]) : taken;
    });
  }
}

/** The count of a fixed window as the outcome of hits that passed, if it is below the limit. */
function takenIn(used: number, limit: JointHit["joint"]["limits"][number] | undefined): Taken {
  const available = Math.max(0, (typeof limit === "number" ? limit : 0) - used);
  return { granted: true, used, available, retryMs: 0, freeMs: 0 };
}
