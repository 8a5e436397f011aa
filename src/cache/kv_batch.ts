import { type Ask, HitBatch, type HitGroup } from "./hit_batch.ts";
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
const MAX_COUNT = 2 ** 53;
const REDIRECTION = /^(?:MOVED|ASK) /;
const ASKING = "*1\r\n$6\r\nASKING\r\n";

/** Which keys need no EXPIRE; told of those that got one, and of those that turned out to be new. */
export interface Expiries {
  /** Whether an expiry at least as late has been answered for this key. */
  covers(key: string, windowEnd: number): boolean;
  remember(key: string, windowEnd: number): void;
  forget(key: string): void;
}

/** An EXPIRE that has to follow, because its counter turned out to be new. */
export interface LateExpiry {
  readonly key: string;
  readonly expiresInSeconds: number;
  readonly windowEnd: number;
}

/** What goes to one node of the key-value cache in one write. */
export class KvBatch {
  /** ASKING goes before each command: the node is about to take the slot over. */
  readonly asking: boolean;
  #hits = new HitBatch();
  readonly #late: LateExpiry[] = [];
  /** By position of the groups: whether an EXPIRE goes with it. */
  readonly #expires: boolean[] = [];

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
    let text = "";
    let replies = 0;
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
    for (const { key, expiresInSeconds } of this.#late) {
      text += respCommand("EXPIRE", respKey(key), String(expiresInSeconds));
      replies++;
    }
    return { text, replies };
  }

  /** Hands out the answers, in the order of the commands; answers the expiries that have to follow. */
  settle(replies: readonly unknown[], expiries: Expiries): LateExpiry[] {
    const each = this.asking ? 2 : 1;
    const follow: LateExpiry[] = [];
    let at = each - 1;
    const { groups } = this.#hits;
    for (let index = 0; index < groups.length; index++) {
      const group = groups[index];
      if (group === undefined) continue;
      const expires = this.#expires[index] === true;
      const count = countOf(replies[at]);
      const expired = expires ? replies[at + each] : undefined;
      at += expires ? 2 * each : each;
      group.outcome = outcomeOf(count, expired);
      learn(group, { count, expires, expired }, expiries, follow);
    }
    at -= each - 1;
    for (const { key, windowEnd } of this.#late) {
      if (replies[at++] === 1) expiries.remember(key, windowEnd);
    }
    this.#hits.settle();
    return follow;
  }

  /** Fails every caller. */
  fail(state: string): void {
    this.#hits.fail(state);
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

/** A counter that comes back as what was added to it is new, whatever was known of its key. */
function learn(
  group: HitGroup,
  reply: { count: number | string; expires: boolean; expired: unknown },
  expiries: Expiries,
  follow: LateExpiry[],
): void {
  const { key, total, expiresInSeconds, windowEnd } = group;
  if (reply.expired === 1) expiries.remember(key, windowEnd);
  if (reply.expires || total <= 0 || reply.count !== total) return;
  expiries.forget(key);
  follow.push({ key, expiresInSeconds, windowEnd });
}

function commandOf({ total }: HitGroup, key: string): string {
  if (total < 0) return respCommand("EVAL", respKey(GIVE_BACK_SCRIPT), respKey("1"), key, String(-total));
  return total === 0 ? `*2\r\n$3\r\nGET\r\n${key}` : `*3\r\n$6\r\nINCRBY\r\n${key}${respKey(String(total))}`;
}

/** An answer as a count: counters that do not exist are 0. A text says what is wrong. */
function countOf(reply: unknown): number | string {
  if (typeof reply === "number") return reply;
  if (reply === null) return 0;
  if (reply instanceof Error) return OVERFLOW.test(reply.message) ? MAX_COUNT : shortened(reply.message);
  const text = String(reply);
  return WHOLE_NUMBER.test(text)
    ? Number(text)
    : `the counter is "${shortened(text)}", which is not a whole number`;
}
