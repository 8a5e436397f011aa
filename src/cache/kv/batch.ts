import { type Ask, HitBatch, type HitGroup } from "../hit_batch.ts";
import { respCommand, respKey, shortened } from "./resp.ts";

/** Gives hits back: the counter stops at 0, and one that does not exist is not made. */
const GIVE_BACK_SCRIPT = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local count = redis.call('DECRBY', KEYS[1], ARGV[1])
if count >= 0 then return count end
redis.call('INCRBY', KEYS[1], -count)
return 0`;

const WHOLE_NUMBER = /^-?\d{1,20}$/;
/** Of a counter that can go no higher, which is over every limit. */
const OVERFLOW = /increment or decrement would overflow/;
/** As many hits as one call may have; a number beyond it is not exact. */
const MAX_COUNT = 2 ** 53;
const REDIRECTION = /^(?:MOVED|ASK) /;
const ASKING = "*1\r\n$6\r\nASKING\r\n";

/** Which keys need no EXPIRE; told of those that got one, and of those that turned out to be new. */
export interface Expiries {
  /** Grows whenever something is forgotten: what was written before is no proof of an expiry any more. */
  readonly generation: number;
  /** Whether an expiry at least as late has been answered for this key. */
  covers(key: string, windowEnd: number): boolean;
  remember(key: string, windowEnd: number): void;
  forget(key: string): void;
}

/** An EXPIRE that has to follow: the counter is new, or it is unknown whether it has one. */
export interface LateExpiry {
  readonly key: string;
  readonly expiresInSeconds: number;
  readonly windowEnd: number;
  /** It was obeyed once already. */
  readonly isSecond?: true;
}

/** Expiries that have to be sent after a batch. */
export interface ExpiriesAfter {
  /** Of counters that turned out to be new. */
  readonly follow: LateExpiry[];
  /** Refused or unanswered: the same node may refuse them again. */
  readonly retry: LateExpiry[];
  /** Obeyed after their counters: a replica that takes over now may have these without the expiries. */
  readonly confirm: LateExpiry[];
}

/** What goes to one node of the key-value cache in one write. */
export class KvBatch {
  /** ASKING goes before each command: the node is about to take the slot over. */
  readonly asking: boolean;
  #hits = new HitBatch();
  readonly #late: LateExpiry[] = [];
  /** By position of the groups: whether an EXPIRE goes with it. */
  readonly #expires: boolean[] = [];
  /** That of the expiries when it was written. */
  #generation = 0;

  constructor(options: { readonly asking: boolean }) {
    this.asking = options.asking;
  }

  /** Whether there is nothing to send. */
  get empty(): boolean {
    return this.#hits.empty && this.#late.length === 0;
  }

  /** How many keys it moves. */
  get size(): number {
    return this.#hits.groups.length;
  }

  /** Takes the hits of a caller. */
  add(ask: Ask): void {
    this.#hits.add(ask);
  }

  /** Expiries that nobody waits for. */
  get late(): readonly LateExpiry[] {
    return this.#late;
  }

  /** Takes an expiry that nobody waits for. */
  addExpiry(expiry: LateExpiry): void {
    this.#late.push(expiry);
  }

  /** Leaves out the hits of those who do not wait any more. */
  dropGone(): void {
    this.#hits = this.#hits.withoutGone();
  }

  /** The commands as they go over the wire, one character an octet, and how many answers they bring. */
  commands(expiries: Expiries): { text: string; replies: number } {
    const before = this.asking ? ASKING : "";
    const each = this.asking ? 2 : 1;
    this.#generation = expiries.generation;
    let text = "";
    let replies = 0;
    // First, so that none shortens a longer expiry of the groups.
    for (const { key, expiresInSeconds } of this.#takeLate(expiries)) {
      text += respCommand("EXPIRE", respKey(key), String(expiresInSeconds));
      replies++;
    }
    for (const group of this.#hits.groups) {
      const key = respKey(group.key);
      text += before + commandOf(group, key);
      replies += each;
      // On its way from node to node nothing is known of a key.
      const expires = group.total > 0 && (this.asking || !expiries.covers(group.key, group.windowEnd));
      this.#expires.push(expires);
      if (!expires) continue;
      text += before + respCommand("EXPIRE", key, String(group.expiresInSeconds));
      replies += each;
    }
    return { text, replies };
  }

  /** Hands out the answers, in the order of the commands; answers the expiries that have to be sent. */
  settle(replies: readonly unknown[], expiries: Expiries): ExpiriesAfter {
    const each = this.asking ? 2 : 1;
    const after: ExpiriesAfter = { follow: [], retry: [], confirm: [] };
    const isCurrent = this.#generation === expiries.generation;
    let at = 0;
    for (const late of this.#late) {
      const reply = replies[at++];
      if (reply !== 0 && reply !== 1) after.retry.push(late);
      if (reply !== 1) continue;
      if (isCurrent) expiries.remember(late.key, late.windowEnd);
      if (late.isSecond !== true) after.confirm.push({ ...late, isSecond: true });
    }
    at += each - 1;
    const { groups } = this.#hits;
    for (let index = 0; index < groups.length; index++) {
      const group = groups[index];
      if (group === undefined) continue;
      const expires = this.#expires[index] === true;
      const reply = replies[at];
      const expired = expires ? replies[at + each] : undefined;
      at += expires ? 2 * each : each;
      group.outcome = outcomeOf(countOf(reply, group), expired);
      if (group.total <= 0) continue;
      if (expired !== 1) learn(group, { reply, expires, expired }, expiries, after);
      else if (isCurrent) expiries.remember(group.key, group.windowEnd);
    }
    this.#hits.settle();
    return after;
  }

  /**
   * Its replies are lost: it is unknown which counters were created, so that none is covered any more.
   * Answers the expiries that have to be sent again. Callers are failed apart from this.
   */
  lose(expiries: Expiries): LateExpiry[] {
    const unknown = [...this.#late];
    for (const group of this.#hits.groups) {
      if (group.total > 0) unknown.push(forget(group, expiries));
    }
    return unknown;
  }

  /** Fails every caller. */
  fail(state: string): void {
    this.#hits.fail(state);
  }

  /** The late expiries of this write: those that were set meanwhile are left out. */
  #takeLate(expiries: Expiries): readonly LateExpiry[] {
    if (this.#late.length === 0) return this.#late;
    const needed = this.#late.filter(({ key, windowEnd, isSecond }) => {
      return !expiries.covers(key, isSecond === true ? windowEnd + 1 : windowEnd);
    });
    this.#late.splice(0, this.#late.length, ...needed);
    return this.#late;
  }
}

/**
 * An expiry that was refused fails the hit, unless its key has moved to another node in between: told so,
 * the cluster would send the hit there, which was counted here. The next hit of the key sets its expiry.
 */
function outcomeOf(count: number | string, expired: unknown): number | string {
  if (!(expired instanceof Error)) return count;
  return typeof count === "number" && REDIRECTION.test(expired.message) ? count : shortened(expired.message);
}

/**
 * What is to be done for the expiry of a counter whose EXPIRE was not sent, or was not obeyed. A counter that
 * comes back as what was added to it is new, whatever was known of its key; one without an answer may be.
 */
function learn(
  group: HitGroup,
  { reply, expires, expired }: { reply: unknown; expires: boolean; expired: unknown },
  expiries: Expiries,
  after: ExpiriesAfter,
): void {
  if (isRefusal(reply)) return;
  if (typeof reply !== "number" || expires) {
    const late = forget(group, expiries);
    // An expiry that finds no counter has none to set.
    if (expired !== 0) after.retry.push(late);
  } else if (reply === group.total) after.follow.push(forget(group, expiries));
}

function forget({ key, expiresInSeconds, windowEnd }: HitGroup, expiries: Expiries): LateExpiry {
  expiries.forget(key);
  return { key, expiresInSeconds, windowEnd };
}

/** The server itself has refused the command: it did nothing. */
function isRefusal(reply: unknown): boolean {
  return reply instanceof Error && reply.name === "ReplyError";
}

function commandOf({ total }: HitGroup, key: string): string {
  if (total < 0) return respCommand("EVAL", respKey(GIVE_BACK_SCRIPT), respKey("1"), key, String(-total));
  return total === 0 ? `*2\r\n$3\r\nGET\r\n${key}` : `*3\r\n$6\r\nINCRBY\r\n${key}${respKey(String(total))}`;
}

/** An answer as a count: counters that do not exist are 0 when read. A text says what is wrong. */
function countOf(reply: unknown, { total }: HitGroup): number | string {
  if (reply instanceof Error) return OVERFLOW.test(reply.message) ? MAX_COUNT : shortened(reply.message);
  if (total > 0) {
    if (typeof reply === "number" && reply >= total && reply <= MAX_COUNT) return reply;
    return `it answered ${shortened(String(reply))} to INCRBY ${total}`;
  }
  if (typeof reply === "number") return reply;
  if (reply === null) return 0;
  const text = String(reply);
  return WHOLE_NUMBER.test(text)
    ? Number(text)
    : `the counter is "${shortened(text)}", which is not a whole number`;
}
