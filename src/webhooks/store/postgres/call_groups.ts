import { setImmediate } from "node:timers";
import type { Clock } from "../../../base/clock.ts";
import { StoreError } from "../store.ts";
import type { Work } from "../work.ts";
import { mayConcernOneCall, PoolTimeoutError } from "./error.ts";

/** The result of a call that a group leaves unchanged: it is run by itself afterwards. */
export const ALONE = Symbol("alone");

/** How calls of one operation run together, in one transaction. */
export interface GroupedOperation<A extends readonly unknown[], T> {
  /** Whether a call may be in a group; all may when absent. */
  joins?(...call: A): boolean;
  /** The bytes of a call that count for the size of its group; 0 when absent. */
  bytes?(...call: A): number;
  /** The results in the order of the calls. */
  work(calls: readonly A[]): Work<readonly (T | typeof ALONE)[]>;
}

/** What groups of calls work with. */
export interface CallGroupsOptions {
  readonly clock: Clock;
  readonly operation: GroupedOperation<readonly unknown[], unknown>;
  /** Most calls that wait, and for how long. */
  readonly maxWaiting: number;
  readonly waitMs: number;
  /** Runs a transaction of so many calls. */
  perform<T>(work: () => Work<T>, calls: () => number): Promise<T>;
}

interface Call {
  readonly args: readonly unknown[];
  /** By the clock's `elapsed`. */
  readonly since: number;
  readonly alone: () => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

const MAX_CALLS = 64;
const MAX_BYTES = 1_048_576;
/** Most transactions that run concurrently; while they do, the next group gathers. */
const MAX_RUNNING = 2;
/** A transaction that takes longer, such as one that waits for a lock, makes room for another, up to so many. */
const SLOW_MS = 100;
const MAX_OPEN = 4;

/**
 * Gathers concurrent calls of an operation into groups, each one transaction. When the statement of a group fails,
 * its calls are run one by one, so that a call fails only by itself.
 */
export class CallGroups {
  readonly #options: CallGroupsOptions;
  #waiting: Call[] = [];
  /** Transactions that are open, and those of them that are not slow. */
  #open = 0;
  #running = 0;
  #isScheduled = false;

  constructor(options: CallGroupsOptions) {
    this.#options = options;
  }

  /** How many calls wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Runs a call in the next group; `alone` runs it by itself. */
  call(args: readonly unknown[], alone: () => Promise<unknown>): Promise<unknown> {
    const { clock, maxWaiting } = this.#options;
    const { length } = this.#waiting;
    if (length >= maxWaiting) {
      return Promise.reject(new StoreError("busy", `Cannot use the store: ${length} operations wait for it`));
    }
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.push({ args, since: clock.elapsed(), alone, resolve, reject });
    this.#schedule();
    return promise;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    if (this.#running >= MAX_RUNNING || this.#open >= MAX_OPEN) return;
    this.#isScheduled = true;
    // After everything that has arrived by then.
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#run();
    });
  }

  async #run(): Promise<void> {
    const { clock, operation, perform } = this.#options;
    this.#open++;
    this.#running++;
    const begun = clock.elapsed();
    let isCounted = true;
    const uncount = () => {
      if (isCounted) this.#running--;
      isCounted = false;
      this.#schedule();
    };
    const cancel = clock.after(SLOW_MS, uncount);
    let group: readonly Call[] | undefined;
    try {
      const results = await perform(() => {
        // Once there is a connection, until when more may have come; a repeated transaction has the same calls.
        group ??= this.#take();
        return group.length === 0 ? none() : operation.work(group.map(({ args }) => args));
      }, () => group?.length ?? 0);
      for (const [index, call] of (group ?? []).entries()) {
        if (results[index] === ALONE) runAlone(call);
        else call.resolve(results[index]);
      }
    } catch (error) {
      // Without a free connection only those are refused that have waited for one all the time.
      const failed = group ?? this.#withdraw(error instanceof PoolTimeoutError ? begun : Infinity);
      const areSeparate = failed.length > 1 && group !== undefined && mayConcernOneCall(error);
      for (const call of failed) {
        if (areSeparate) runAlone(call);
        else call.reject(error);
      }
    } finally {
      cancel();
      this.#open--;
      uncount();
    }
  }

  /** Takes out the calls that have waited since then, or for longer. */
  #withdraw(since: number): readonly Call[] {
    const isLater = (call: Call) => call.since > since;
    const withdrawn = this.#waiting.filter((call) => !isLater(call));
    this.#waiting = this.#waiting.filter(isLater);
    return withdrawn;
  }

  /** The calls of the next group; refuses those that have waited for too long. */
  #take(): readonly Call[] {
    const { clock, operation, waitMs } = this.#options;
    const end = clock.elapsed() - waitMs;
    const group: Call[] = [];
    let bytes = 0;
    let taken = 0;
    for (const call of this.#waiting) {
      bytes += operation.bytes?.(...call.args) ?? 0;
      if (group.length === MAX_CALLS || group.length > 0 && bytes > MAX_BYTES) break;
      taken++;
      if (call.since > end) group.push(call);
      else call.reject(new StoreError("busy", `Cannot use the store: it was not free within ${waitMs} ms`));
    }
    this.#waiting.splice(0, taken);
    return group;
  }
}

function runAlone({ alone, resolve, reject }: Call): void {
  alone().then(resolve, reject);
}

// deno-lint-ignore require-yield -- no statement
function* none(): Work<readonly never[]> {
  return [];
}
