import type { Counted } from "../ratelimit/algorithms/taken.ts";
import type { Caller, CountReceiver, Hit } from "../ratelimit/counter_cache.ts";
import { MAX_DURATION_SECONDS } from "../ratelimit/window.ts";

/** The hits of one caller, and their outcome. */
export interface Ask<Asked = Hit, Answer = number> {
  readonly hits: readonly Asked[];
  /** Counts after each of its hits, or what became of them, filled in from the answers. */
  readonly counts: Answer[];
  /** By position: what went wrong with a hit; absent while nothing did. */
  states: string[] | undefined;
  readonly caller: Caller | undefined;
  /** As in `WaitingAsk`. */
  waitsFrom?: number | undefined;
  /** Every hit has its count. */
  resolve(counts: Answer[]): void;
  /** Not every hit has: `states` and `counts` say which. */
  reject(ask: FailedAsk): void;
}

/** An ask that may wait for a connection. */
export interface WaitingAsk extends Pick<Ask, "caller"> {
  /** When it joined a batch that waited already, by `clock.elapsed()`; absent where it was in it before. */
  waitsFrom?: number | undefined;
}

/** What an error is made of. */
export type FailedAsk = Pick<Ask<unknown, Counted>, "hits" | "counts" | "states">;

/** Hits of one key that go out as one step. */
export interface HitGroup {
  readonly key: string;
  /** The first of them. */
  readonly hit: Hit;
  /** Sum of what is added; 0 when the counter is only read; below 0 when hits are given back. */
  total: number;
  /** Longest expiry that a hit asks for, in seconds, and the latest end of a window. */
  expiresInSeconds: number;
  windowEnd: number;
  /** The counter after the whole group, or a text that says what is wrong. */
  outcome: number | string;
}

/** One hit of a caller: its place in the group of its key. */
interface Member {
  readonly ask: Ask;
  readonly position: number;
  readonly group: HitGroup;
  /** What the group had added once this hit was counted. */
  readonly prefix: number;
}

const NO_ANSWER = "an answer is missing";
/** Why a hit failed that was not sent. */
export const GONE = "its caller is gone";
let lastNumber = 0;

/**
 * Asks for hits: `add` takes the ask into a batch, or returns why it cannot. Resolves with the counts;
 * rejects with the error that `errorOf` makes of an ask without all of them.
 */
export function askFor<Asked, Answer extends Counted>(
  hits: readonly Asked[],
  caller: Caller | undefined,
  errorOf: (ask: FailedAsk) => Error,
  add: (ask: Ask<Asked, Answer>) => string | undefined,
): Promise<Answer[]> {
  return new Promise((resolve, reject) => {
    const failed = (ask: FailedAsk) => reject(errorOf(ask));
    const ask: Ask<Asked, Answer> = { hits, counts: [], states: undefined, caller, resolve, reject: failed };
    const refusal = add(ask);
    if (refusal !== undefined) failAsk(ask, refusal);
  });
}

/** A single hit whose caller waits by callback, and its place in the group of its key. */
export class SingleAsk {
  readonly hit: Hit;
  readonly caller: Caller | undefined;
  readonly receiver: CountReceiver;
  readonly #errorOf: (ask: FailedAsk) => Error;
  waitsFrom: number | undefined = undefined;
  group: HitGroup | undefined = undefined;
  /** As in `Member`. */
  prefix = 0;

  constructor(
    hit: Hit,
    caller: Caller | undefined,
    receiver: CountReceiver,
    errorOf: (ask: FailedAsk) => Error,
  ) {
    this.hit = hit;
    this.caller = caller;
    this.receiver = receiver;
    this.#errorOf = errorOf;
  }

  fail(state: string): void {
    this.receiver.failed(this.#errorOf({ hits: [this.hit], counts: [], states: [state] }));
  }
}

/** Why an ask failed. */
export function stateOf({ states }: Pick<Ask, "states">): string {
  return states?.find((state) => state !== undefined) ?? NO_ANSWER;
}

/**
 * Hits that are sent together. The hits of one key are one group; the count of each caller follows from the
 * group's outcome in the order of arrival, as if each hit had been sent alone.
 */
export class HitBatch {
  readonly groups: HitGroup[] = [];
  readonly #asks: Ask[] = [];
  /** The group that further hits of a key join; giving back ends it, because it stops at 0. */
  readonly #open = new Map<string, HitGroup>();
  readonly #members: Member[] = [];
  #singles: SingleAsk[] = [];
  /** No other batch has it: hits that are used again keep it and the position of their group. */
  #number = ++lastNumber;

  get isEmpty(): boolean {
    return this.#asks.length === 0 && this.#singles.length === 0;
  }

  /** How many steps it takes. */
  get size(): number {
    return this.groups.length;
  }

  add(ask: Ask): void {
    this.#insert(ask);
  }

  addOne(ask: SingleAsk): void {
    this.#insertOne(ask);
  }

  /** Fails callers that no longer wait, and leaves out their hits. */
  dropGone(): void {
    this.drop(isGone, GONE);
  }

  /** Fails some callers, and leaves out their hits. */
  drop(isDropped: (ask: WaitingAsk) => boolean, state: string): void {
    if (!this.#asks.some(isDropped) && !this.#singles.some(isDropped)) return;
    const asks = this.#asks.splice(0);
    const singles = this.#singles;
    this.#singles = [];
    this.#number = ++lastNumber;
    this.groups.length = 0;
    this.#members.length = 0;
    this.#open.clear();
    for (const ask of asks) {
      if (isDropped(ask)) failAsk(ask, state);
      else this.#insert(ask);
    }
    for (const ask of singles) {
      if (isDropped(ask)) ask.fail(state);
      else this.#insertOne(ask);
    }
  }

  fail(state: string): void {
    for (const ask of this.#asks) failAsk(ask, state);
    for (const ask of this.#singles) ask.fail(state);
  }

  /** Settles every caller by the outcomes of the groups. */
  protected settleAsks(): void {
    for (const ask of this.#singles) {
      const { group, prefix } = ask;
      if (typeof group?.outcome === "number") ask.receiver.counted(countIn(group, group.outcome, prefix));
      else ask.fail(group?.outcome ?? NO_ANSWER);
    }
    for (const { ask, position, group, prefix } of this.#members) {
      const { outcome } = group;
      if (typeof outcome !== "number") (ask.states ??= [])[position] = outcome;
      else ask.counts[position] = countIn(group, outcome, prefix);
    }
    for (const ask of this.#asks) {
      if (ask.states === undefined) ask.resolve(ask.counts);
      else ask.reject(ask);
    }
  }

  #insert(ask: Ask): void {
    this.#asks.push(ask);
    const { hits } = ask;
    for (let position = 0; position < hits.length; position++) {
      const hit = hits[position];
      if (hit === undefined) continue;
      const group = hit.addend < 0 ? this.#giveBack(hit) : this.#join(hit);
      this.#members.push({ ask, position, group, prefix: group.total });
    }
  }

  #insertOne(ask: SingleAsk): void {
    this.#singles.push(ask);
    const { hit } = ask;
    const group = hit.addend < 0 ? this.#giveBack(hit) : this.#join(hit);
    ask.group = group;
    ask.prefix = group.total;
  }

  #join(hit: Hit): HitGroup {
    const { kept } = hit;
    let group = kept?.batch === this.#number ? this.groups[kept.group] : this.#open.get(hit.key);
    if (group === undefined) {
      group = this.#begin(hit, 0);
      if (kept === undefined) this.#open.set(hit.key, group);
      else {
        kept.batch = this.#number;
        kept.group = this.groups.length - 1;
      }
    } else if (hit.windowEnd > group.windowEnd || hit.expiresInSeconds > group.expiresInSeconds) {
      const seconds = Math.min(hit.expiresInSeconds, MAX_DURATION_SECONDS);
      group.windowEnd = Math.max(group.windowEnd, hit.windowEnd);
      group.expiresInSeconds = Math.max(group.expiresInSeconds, seconds);
    }
    group.total += hit.addend;
    return group;
  }

  #giveBack(hit: Hit): HitGroup {
    this.#open.delete(hit.key);
    // Hits that are used again find no group by the number that they keep.
    this.#number = ++lastNumber;
    return this.#begin(hit, hit.addend);
  }

  #begin(hit: Hit, total: number): HitGroup {
    const { key, windowEnd } = hit;
    const seconds = Math.min(hit.expiresInSeconds, MAX_DURATION_SECONDS);
    const group = { key, hit, total, expiresInSeconds: seconds, windowEnd, outcome: NO_ANSWER };
    this.groups.push(group);
    return group;
  }
}

/** Whether its caller no longer waits. */
export function isGone({ caller }: Pick<Ask, "caller">): boolean {
  return caller?.cancelled === true;
}

/** The counter after a member of a group. */
function countIn({ total }: HitGroup, outcome: number, prefix: number): number {
  // Below 0 only where another program has written to the counter.
  return total < 0 ? outcome : Math.max(0, outcome - total + prefix);
}

/** Fails every hit of an ask. */
export function failAsk<Asked, Answer extends Counted>(ask: Ask<Asked, Answer>, state: string): void {
  ask.states ??= [];
  for (let position = 0; position < ask.hits.length; position++) ask.states[position] = state;
  ask.reject(ask);
}
