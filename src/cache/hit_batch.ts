import type { Caller, CountReceiver, Hit } from "../ratelimit/decision/counter_cache.ts";
import { MAX_DURATION_SECONDS } from "../ratelimit/decision/window.ts";

/** A counter in a fixed window at a node, and its place in the batch that it was in last. */
export class NodeCounter {
  readonly key: string;
  readonly windowEnd: number;
  readonly expiresInSeconds: number;
  /** True if it was in an earlier batch: no other one need find its group by the key. */
  isRepeated = false;
  /** The batch that it was in last, and the position of its group there. */
  batch = 0;
  group = 0;

  constructor({ key, windowEnd, expiresInSeconds }: Pick<Hit, "key" | "windowEnd" | "expiresInSeconds">) {
    this.key = key;
    this.windowEnd = windowEnd;
    this.expiresInSeconds = Math.min(expiresInSeconds, MAX_DURATION_SECONDS);
  }
}

/** Hits of a counter that a caller waits for. */
export class Ask<C> {
  readonly counter: C;
  readonly hits: number;
  readonly caller: Caller | undefined;
  readonly receiver: CountReceiver;
  readonly #errorOf: (state: string) => Error;
  /** When it joined a batch that waited already, by `clock.elapsed()`; absent where it was in it before. */
  waitsFrom: number | undefined = undefined;
  /** The group of its key, and what that had added once this was counted. */
  group: HitGroup | undefined = undefined;
  prefix = 0;

  /** `errorOf` creates the error for a reason why there is no count. */
  constructor(
    counter: C,
    hits: number,
    { caller, receiver, errorOf }: {
      readonly caller: Caller | undefined;
      readonly receiver: CountReceiver;
      readonly errorOf: (state: string) => Error;
    },
  ) {
    this.counter = counter;
    this.hits = hits;
    this.caller = caller;
    this.receiver = receiver;
    this.#errorOf = errorOf;
  }

  /** True if its caller no longer waits. */
  get isGone(): boolean {
    return this.caller?.cancelled === true;
  }

  fail(state: string): void {
    this.receiver.failed(this.#errorOf(state));
  }
}

/** An ask without its counter. */
export type WaitingAsk = Pick<Ask<unknown>, "isGone" | "waitsFrom">;

/** Hits of one key that go out as one step. */
export interface HitGroup<C extends NodeCounter = NodeCounter> {
  /** The first of them. */
  readonly counter: C;
  /** Sum of what is added; 0 when the counter is only read; below 0 when hits are given back. */
  total: number;
  /** The longest expiry, in seconds, and the latest end of a window. */
  expiresInSeconds: number;
  windowEnd: number;
  /** The counter before the group, or after one that gives back; or a text that says what is wrong. */
  outcome: number | string;
}

const NO_ANSWER = "an answer is missing";
/** Why a hit failed that was not sent. */
const GONE = "its caller is gone";
let lastNumber = 0;

/**
 * Hits that are sent together. The hits of one key are one group; the count of each caller follows from the
 * group's outcome in the order of arrival, as if each hit had been sent alone.
 */
export class HitBatch<C extends NodeCounter = NodeCounter> {
  readonly groups: HitGroup<C>[] = [];
  #asks: Ask<C>[] = [];
  /** The group that further hits of a key join; giving back ends it, because it stops at 0. */
  readonly #open = new Map<string, HitGroup<C>>();
  /** No other batch has it: counters keep it and the position of their group. */
  #number = ++lastNumber;

  get isEmpty(): boolean {
    return this.#asks.length === 0;
  }

  /** The number of steps that it takes. */
  get size(): number {
    return this.groups.length;
  }

  add(ask: Ask<C>): void {
    this.#asks.push(ask);
    const group = ask.hits < 0 ? this.#giveBack(ask) : this.#join(ask);
    ask.group = group;
    ask.prefix = group.total;
  }

  /** Fails callers that no longer wait, and leaves out their hits. */
  dropGone(): void {
    this.drop((ask) => ask.isGone, GONE);
  }

  /** Fails some callers, and leaves out their hits. */
  drop(isDropped: (ask: WaitingAsk) => boolean, state: string): void {
    if (!this.#asks.some(isDropped)) return;
    const asks = this.#asks;
    this.#asks = [];
    this.#number = ++lastNumber;
    this.groups.length = 0;
    this.#open.clear();
    for (const ask of asks) {
      if (isDropped(ask)) ask.fail(state);
      else this.add(ask);
    }
  }

  fail(state: string): void {
    for (const ask of this.#asks) ask.fail(state);
  }

  /** Settles every caller by the outcomes of the groups. */
  protected settle(): void {
    for (const ask of this.#asks) {
      const { group, prefix } = ask;
      if (typeof group?.outcome === "number") ask.receiver.counted(countIn(group, group.outcome, prefix));
      else ask.fail(group?.outcome ?? NO_ANSWER);
    }
  }

  #join({ counter, hits }: Ask<C>): HitGroup<C> {
    let group = counter.batch === this.#number ? this.groups[counter.group] : this.#open.get(counter.key);
    if (group === undefined) {
      counter.isRepeated = counter.batch !== 0;
      counter.batch = this.#number;
      counter.group = this.groups.length;
      group = this.#begin(counter, 0);
      if (!counter.isRepeated) this.#open.set(counter.key, group);
    } else if (counter.windowEnd > group.windowEnd || counter.expiresInSeconds > group.expiresInSeconds) {
      group.windowEnd = Math.max(group.windowEnd, counter.windowEnd);
      group.expiresInSeconds = Math.max(group.expiresInSeconds, counter.expiresInSeconds);
    }
    group.total += hits;
    return group;
  }

  #giveBack({ counter, hits }: Ask<C>): HitGroup<C> {
    this.#open.delete(counter.key);
    // Counters find no group by the number that they keep.
    this.#number = ++lastNumber;
    return this.#begin(counter, hits);
  }

  #begin(counter: C, total: number): HitGroup<C> {
    const { windowEnd, expiresInSeconds } = counter;
    const group = { counter, total, expiresInSeconds, windowEnd, outcome: NO_ANSWER };
    this.groups.push(group);
    return group;
  }
}

/** The counter after a member of a group; not by its total, which may be too large to be exact. */
function countIn({ total }: HitGroup, outcome: number, prefix: number): number {
  // Below 0 only where another program has written to the counter.
  return total < 0 ? outcome : Math.max(0, outcome + prefix);
}
