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
    receiver.counted(takeTogether(hits, (addend) => this.#takeEach(addend, caller)));
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
      if (typeof taken !== "number") return taken;
      const limit = this.#limits[index];
      return takenIn(taken, typeof limit === "number" ? limit : 0);
    });
  }
}

/** Takes hits in all windows or in none: looks at them first, with 0 hits. */
export function takeTogether(hits: number, takeEach: (hits: number) => readonly Taken[]): Taken {
  const looked = hits < 0 ? [] : takeEach(0);
  const passes = looked.every(({ available }) => Math.max(1, hits) <= available);
  const taken = hits !== 0 && passes ? takeEach(hits) : looked;
  const windows = passes
    ? taken
    : taken.map((one) => ({ ...one, granted: Math.max(1, hits) <= one.available }));
  const [first] = windows;
  if (first === undefined) throw new TypeError("There are no windows");
  return { ...first, granted: passes, windows };
}

/** The count of a fixed window as the outcome of hits that passed, if it is below the limit. */
export function takenIn(used: number, limit: number): Taken {
  return { granted: true, used, available: Math.max(0, limit - used), retryMs: 0, freeMs: 0 };
}
