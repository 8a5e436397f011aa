import { HitBatch, type HitGroup } from "../hit_batch.ts";
import type { KvExpiries, LateExpiry } from "./expiries.ts";
import { ReplyError, respArgument, respCommand, shortened } from "./resp.ts";

/** Gives hits back: the counter stops at 0, and one that does not exist is not made. */
const GIVE_BACK = respArgument(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local count = redis.call('DECRBY', KEYS[1], ARGV[1])
if count >= 0 then return count end
redis.call('INCRBY', KEYS[1], -count)
return 0`);

const WHOLE_NUMBER = /^-?\d{1,20}$/;
/** The error of a counter that can go no higher, which is over every limit. */
const OVERFLOW = /increment or decrement would overflow/;
/** A larger number is not exact. */
const MAX_COUNT = 2 ** 53;
const REDIRECTION = /^(?:MOVED|ASK) /;
const ASKING = respCommand("ASKING");

/** The expiries to be sent after a batch. */
export interface ExpiriesAfter {
  /** Of counters that turned out to be new. */
  readonly follow: LateExpiry[];
  /** Refused or unanswered: the same node may refuse them again. */
  readonly retry: LateExpiry[];
  /** Set after their counters, which a replica that takes over now may have without the expiries. */
  readonly confirm: LateExpiry[];
}

/** What goes to one node of the key-value cache in one write. */
export class KvBatch extends HitBatch {
  /** The expiries of other batches that go with this one. */
  late: LateExpiry[];
  readonly #asking: boolean;
  /** By position of the groups: whether an EXPIRE goes with it. */
  readonly #expires: boolean[] = [];
  /** The generation of the expiries when it was written. */
  #generation = 0;

  /** With `asking`, ASKING goes before each command; `late` expiries go first. */
  constructor({ asking, late = [] }: { readonly asking: boolean; readonly late?: LateExpiry[] }) {
    super();
    this.#asking = asking;
    this.late = late;
  }

  override get isEmpty(): boolean {
    return super.isEmpty && this.late.length === 0;
  }

  /** The commands in the form of the protocol, one character a byte, and how many replies they bring. */
  commands(expiries: KvExpiries): { text: string; replies: number } {
    const before = this.#asking ? ASKING : "";
    const each = this.#asking ? 2 : 1;
    this.late = this.late.filter(({ key, windowEnd, isSecond }) => {
      return !expiries.covers(key, isSecond === true ? windowEnd + 1 : windowEnd);
    });
    this.#generation = expiries.generation;
    let text = "";
    let replies = 0;
    // First, so that none shortens a longer expiry of the groups.
    for (const { key, expiresInSeconds } of this.late) {
      text += expireCommand(respArgument(key), expiresInSeconds);
      replies++;
    }
    for (const group of this.groups) {
      const key = respArgument(group.key);
      text += before + commandOf(group, key);
      replies += each;
      // Nothing is known of a key that moves from node to node.
      const expires = group.total > 0 && (this.#asking || !expiries.covers(group.key, group.windowEnd));
      this.#expires.push(expires);
      if (!expires) continue;
      text += before + expireCommand(key, group.expiresInSeconds);
      replies += each;
    }
    return { text, replies };
  }

  /** Settles the callers with the replies, in the order of the commands; returns the expiries to be sent. */
  settle(replies: readonly unknown[], expiries: KvExpiries): ExpiriesAfter {
    const each = this.#asking ? 2 : 1;
    const after: ExpiriesAfter = { follow: [], retry: [], confirm: [] };
    const isCurrent = this.#generation === expiries.generation;
    let at = 0;
    for (const late of this.late) {
      const reply = replies[at++];
      if (reply !== 0 && reply !== 1) after.retry.push(late);
      if (reply !== 1) continue;
      if (isCurrent) expiries.remember(late.key, late.windowEnd);
      if (late.isSecond !== true) after.confirm.push({ ...late, isSecond: true });
    }
    at += each - 1;
    let index = 0;
    for (const group of this.groups) {
      const expires = this.#expires[index++] === true;
      const reply = replies[at];
      const expired = expires ? replies[at + each] : undefined;
      at += expires ? 2 * each : each;
      group.outcome = outcomeOf(countOf(reply, group), expired);
      if (group.total <= 0) continue;
      if (expired !== 1) learn(group, { reply, expires, expired }, expiries, after);
      else if (isCurrent) expiries.remember(group.key, group.windowEnd);
    }
    this.settleAsks();
    return after;
  }

  /** Its replies are lost, so any counter may be new; returns the expiries to be sent again. */
  lose(expiries: KvExpiries): LateExpiry[] {
    const unknown = [...this.late];
    for (const group of this.groups) {
      if (group.total > 0) unknown.push(forget(group, expiries));
    }
    return unknown;
  }
}

/** A refused expiry fails the hit, unless the key has moved: the cluster would count the hit there again. */
function outcomeOf(count: number | string, expired: unknown): number | string {
  if (!(expired instanceof Error)) return count;
  return typeof count === "number" && REDIRECTION.test(expired.message) ? count : shortened(expired.message);
}

/** Notes what the expiry requires: a counter equal to what was added is new, and one without a reply may be. */
function learn(
  group: HitGroup,
  { reply, expires, expired }: { reply: unknown; expires: boolean; expired: unknown },
  expiries: KvExpiries,
  after: ExpiriesAfter,
): void {
  // The server refused the command and did nothing.
  if (reply instanceof ReplyError) return;
  if (typeof reply !== "number" || expires) {
    const late = forget(group, expiries);
    // An expiry that finds no counter has none to set.
    if (expired !== 0) after.retry.push(late);
  } else if (reply === group.total) after.follow.push(forget(group, expiries));
}

function forget({ key, expiresInSeconds, windowEnd }: HitGroup, expiries: KvExpiries): LateExpiry {
  expiries.forget(key);
  return { key, expiresInSeconds, windowEnd };
}

function expireCommand(key: string, seconds: number): string {
  return `*3\r\n$6\r\nEXPIRE\r\n${key}${respArgument(String(seconds))}`;
}

function commandOf({ total }: HitGroup, key: string): string {
  if (total === 0) return `*2\r\n$3\r\nGET\r\n${key}`;
  if (total > 0) return `*3\r\n$6\r\nINCRBY\r\n${key}${respArgument(String(total))}`;
  return respCommand("EVAL", GIVE_BACK, respArgument("1"), key, respArgument(String(-total)));
}

/** The count in a reply, or a text that says what is wrong. */
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
