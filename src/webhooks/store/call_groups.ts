import type { Clock } from "../../base/clock.ts";
import { atTurnEnd, TurnTask } from "../../base/turn.ts";
import { APART } from "./list_operation.ts";
import { StoreError } from "./store.ts";

/** The result of a call that failed while others of its group did not. */
export class FailedCall {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** The limits of groups of calls, and their transactions. */
interface CallGroupsOptions<C> {
  readonly clock: Clock;
  /** Most calls that wait. */
  readonly maxWaiting: number;
  /** Longest wait; no limit when absent. */
  readonly waitMs?: number | undefined;
  /** Most calls of a group. */
  readonly maxCalls: number;
  /** The bytes of a call that count for the size of its group; 0 when absent. */
  readonly bytesOf?: ((call: C) => number) | undefined;
  /** Most groups that run concurrently; while they do, the next one gathers. */
  readonly maxRunning: number;
  /** With those that take long, such as one that waits for a lock, and so make room for another. */
  readonly maxOpen: number;
  /**
   * Runs a group, whose calls are those that `take` returns: what arrives until then is among them. Returns their results
   * in order, of which one may be `APART` or a `FailedCall`.
   */
  run(take: () => readonly C[]): Promise<readonly unknown[]>;
  /** Runs a call by itself. */
  runApart(call: C): Promise<unknown>;
  /** True for an error of a group that one of its calls may have caused; none is when absent. */
  mayConcernOneCall?(error: unknown): boolean;
  /** True for an error because of which only those calls are refused that have waited since the group began to. */
  isTimeout?(error: unknown): boolean;
}

interface WaitingCall<C> {
  readonly call: C;
  /** By the clock's `elapsed`. */
  readonly since: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

const MAX_BYTES = 1_048_576;
/** A group that takes longer makes room for another. */
const SLOW_MS = 100;

/**
 * Gathers the calls of a turn of the event loop into groups, each one transaction. When the statement of a group fails,
 * its calls are run one by one, so that a call fails only by itself.
 */
export class CallGroups<C> {
  readonly #options: CallGroupsOptions<C>;
  readonly #task = new TurnTask(() => void this.#run(), atTurnEnd);
  #waiting: WaitingCall<C>[] = [];
  /** Groups that run, and those of them that are not slow. */
  #open = 0;
  #running = 0;

  constructor(options: CallGroupsOptions<C>) {
    this.#options = options;
  }

  /** The number of calls that wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Runs a call in the next group. */
  call(call: C): Promise<unknown> {
    const { clock, maxWaiting } = this.#options;
    const { length } = this.#waiting;
    if (length >= maxWaiting) {
      return Promise.reject(new StoreError("busy", `Cannot use the store: ${length} operations wait for it`));
    }
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.push({ call, since: clock.elapsed(), resolve, reject });
    this.#schedule();
    return promise;
  }

  /** Runs all that wait now. */
  flush(): void {
    while (this.#waiting.length > 0) void this.#run();
  }

  #schedule(): void {
    const { maxRunning, maxOpen } = this.#options;
    if (this.#waiting.length === 0 || this.#running >= maxRunning || this.#open >= maxOpen) return;
    this.#task.request();
  }

  async #run(): Promise<void> {
    if (this.#waiting.length === 0) return;
    const { clock, maxRunning, maxOpen, run, runApart } = this.#options;
    const { mayConcernOneCall = () => false, isTimeout = () => false } = this.#options;
    this.#open++;
    this.#running++;
    const begun = clock.elapsed();
    let isCounted = true;
    const uncount = () => {
      if (isCounted) this.#running--;
      isCounted = false;
      this.#schedule();
    };
    const cancel = maxOpen > maxRunning ? clock.after(SLOW_MS, uncount) : () => {};
    const apart = ({ call, resolve, reject }: WaitingCall<C>) => void runApart(call).then(resolve, reject);
    let group: readonly WaitingCall<C>[] | undefined;
    try {
      // A repeated transaction has the same calls.
      const results = await run(() => (group ??= this.#take()).map(({ call }) => call));
      for (const [index, one] of (group ?? []).entries()) {
        const result = results[index];
        if (result === APART) apart(one);
        else if (result instanceof FailedCall) one.reject(result.error);
        else one.resolve(result);
      }
    } catch (error) {
      // Without a free connection only those are refused that have waited for one all the time.
      const failed = group ?? this.#withdraw(isTimeout(error) ? begun : Infinity);
      const areSeparate = failed.length > 1 && group !== undefined && mayConcernOneCall(error);
      for (const one of failed) {
        if (areSeparate) apart(one);
        else one.reject(error);
      }
    } finally {
      cancel();
      this.#open--;
      uncount();
    }
  }

  /** Takes out the calls that have waited since then, or for longer. */
  #withdraw(since: number): readonly WaitingCall<C>[] {
    const isLater = (call: WaitingCall<C>) => call.since > since;
    const withdrawn = this.#waiting.filter((call) => !isLater(call));
    this.#waiting = this.#waiting.filter(isLater);
    return withdrawn;
  }

  /** The calls of the next group; refuses those that have waited for too long. */
  #take(): readonly WaitingCall<C>[] {
    const { clock, maxCalls, bytesOf = () => 0, waitMs = Infinity } = this.#options;
    const end = clock.elapsed() - waitMs;
    const group: WaitingCall<C>[] = [];
    let bytes = 0;
    let taken = 0;
    for (const one of this.#waiting) {
      bytes += bytesOf(one.call);
      if (group.length === maxCalls || group.length > 0 && bytes > MAX_BYTES) break;
      taken++;
      if (one.since > end) group.push(one);
      else one.reject(new StoreError("busy", `Cannot use the store: it was not free within ${waitMs} ms`));
    }
    this.#waiting.splice(0, taken);
    return group;
  }
}
