import type { Hit } from "../ratelimit/counter_cache.ts";
import { MAX_DURATION_SECONDS } from "../ratelimit/window.ts";
import { respCommand, respKey } from "./resp.ts";

/** Gives hits back: the counter stops at 0, and one that does not exist is not made. */
const GIVE_BACK_SCRIPT = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local count = redis.call('DECRBY', KEYS[1], ARGV[1])
if count >= 0 then return count end
redis.call('INCRBY', KEYS[1], -count)
return 0`;

/** One caller of a batch. */
export interface Ask {
  /** Counts after each of its hits, filled in from the answers. */
  readonly counts: number[];
  /** What went wrong with one of its hits. */
  failure: string | undefined;
  resolve(counts: number[]): void;
  reject(state: string): void;
}

/** Hits of one key that go out as one command. */
interface Group {
  readonly hit: Hit;
  /** Sum of what is added; 0 when the counter is only read. */
  total: number;
  readonly giveBack: boolean;
  /** Longest expiry that a hit asks for, in seconds, and the latest end of a window. */
  expiresInSeconds: number;
  windowEnd: number;
  /** An EXPIRE goes with it. */
  expires: boolean;
}

/** One hit of a caller: its place in the group of its key. */
interface Member {
  readonly ask: Ask;
  readonly position: number;
  readonly group: Group;
  /** What the group had added once this hit was counted. */
  readonly prefix: number;
}

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

/**
 * The hits that go out in one write. Hits of one key are one command, and each caller's own count is
 * worked out from its answer in the order of arrival, exactly as if each hit had been sent.
 */
export class KvBatch {
  readonly asks: Ask[] = [];
  readonly #groups: Group[] = [];
  /** The group of a key that further hits join; giving back ends it, because it stops at 0. */
  readonly #open = new Map<string, Group>();
  readonly #members: Member[] = [];
  readonly #late: LateExpiry[] = [];

  /** Whether there is nothing to send. */
  get empty(): boolean {
    return this.#groups.length === 0 && this.#late.length === 0;
  }

  /** Takes the hits of a caller. */
  add(ask: Ask, hits: readonly Hit[]): void {
    this.asks.push(ask);
    for (let position = 0; position < hits.length; position++) {
      const hit = hits[position];
      if (hit === undefined) continue;
      const group = hit.addend < 0 ? this.#giveBack(hit) : this.#join(hit);
      this.#members.push({ ask, position, group, prefix: group.total });
    }
  }

  /** Takes an expiry that nobody waits for. */
  addExpiry(expiry: LateExpiry): void {
    this.#late.push(expiry);
  }

  /** The commands as they go over the wire, one character an octet, and how many answers they bring. */
  commands(expiries: Expiries): { text: string; replies: number } {
    let text = "";
    let replies = 0;
    for (const group of this.#groups) {
      const key = respKey(group.hit.key);
      text += commandOf(group, key);
      replies++;
      group.expires = group.total > 0 && !expiries.covers(group.hit.key, group.windowEnd);
      if (!group.expires) continue;
      text += respCommand("EXPIRE", key, String(group.expiresInSeconds));
      replies++;
    }
    for (const { key, expiresInSeconds } of this.#late) {
      text += respCommand("EXPIRE", respKey(key), String(expiresInSeconds));
      replies++;
    }
    return { text, replies };
  }

  /** Hands out the answers, in the order of the commands; answers the expiries that have to follow. */
  settle(replies: readonly unknown[], expiries: Expiries): LateExpiry[] {
    const counts = new Map<Group, number | string>();
    const follow: LateExpiry[] = [];
    let at = 0;
    for (const group of this.#groups) {
      const count = countOf(replies[at++]);
      const expired = group.expires ? replies[at++] : undefined;
      counts.set(group, expired instanceof Error ? expired.message : count);
      this.#learn(group, count, expired, { expiries, follow });
    }
    for (const { key, windowEnd } of this.#late) {
      if (replies[at++] === 1) expiries.remember(key, windowEnd);
    }
    for (const { ask, position, group, prefix } of this.#members) {
      const count = counts.get(group);
      // Below 0 only where somebody else has written to the counter.
      if (typeof count === "number") ask.counts[position] = Math.max(0, count - group.total + prefix);
      else ask.failure = count ?? "an answer is missing";
    }
    for (const ask of this.asks) {
      if (ask.failure === undefined) ask.resolve(ask.counts);
      else ask.reject(ask.failure);
    }
    return follow;
  }

  /** Fails every caller. */
  fail(state: string): void {
    for (const ask of this.asks) ask.reject(state);
  }

  #join(hit: Hit): Group {
    let group = this.#open.get(hit.key);
    if (group === undefined) {
      group = groupOf(hit, false);
      this.#open.set(hit.key, group);
      this.#groups.push(group);
    } else if (hit.windowEnd > group.windowEnd || hit.expiresInSeconds > group.expiresInSeconds) {
      group.windowEnd = Math.max(group.windowEnd, hit.windowEnd);
      group.expiresInSeconds = Math.max(
        group.expiresInSeconds,
        Math.min(hit.expiresInSeconds, MAX_DURATION_SECONDS),
      );
    }
    group.total += hit.addend;
    return group;
  }

  #giveBack(hit: Hit): Group {
    const group = groupOf(hit, true);
    this.#open.delete(hit.key);
    this.#groups.push(group);
    return group;
  }

  /** A counter that comes back as what was added to it is new, whatever was known of its key. */
  #learn(
    group: Group,
    count: number | string,
    expired: unknown,
    { expiries, follow }: { expiries: Expiries; follow: LateExpiry[] },
  ): void {
    const { hit: { key }, expiresInSeconds, windowEnd } = group;
    if (expired === 1) expiries.remember(key, windowEnd);
    if (group.expires || group.total === 0 || count !== group.total) return;
    expiries.forget(key);
    follow.push({ key, expiresInSeconds, windowEnd });
  }
}

function groupOf(hit: Hit, giveBack: boolean): Group {
  const expiresInSeconds = Math.min(hit.expiresInSeconds, MAX_DURATION_SECONDS);
  return { hit, total: 0, giveBack, expiresInSeconds, windowEnd: hit.windowEnd, expires: false };
}

function commandOf({ hit, total, giveBack }: Group, key: string): string {
  if (giveBack) return respCommand("EVAL", respKey(GIVE_BACK_SCRIPT), respKey("1"), key, String(-hit.addend));
  return total === 0 ? `*2\r\n$3\r\nGET\r\n${key}` : `*3\r\n$6\r\nINCRBY\r\n${key}${respKey(String(total))}`;
}

/** An answer as a count: counters that do not exist are 0. A text says what is wrong. */
function countOf(reply: unknown): number | string {
  if (typeof reply === "number") return reply;
  if (reply === null) return 0;
  if (reply instanceof Error) return reply.message;
  const text = String(reply);
  return /^-?\d+$/.test(text) ? Number(text) : `the counter is "${text}", which is not a whole number`;
}
