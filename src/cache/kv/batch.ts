import { type Ask, HitBatch, type HitGroup, type WaitingAsk } from "../hit_batch.ts";
import type { KvCommands } from "./connection.ts";
import type { KvExpiries, LateExpiry } from "./expiries.ts";
import { type KvAsk, KvWindowCounter } from "./counters.ts";
import { KvTakes } from "./takes.ts";
import { shortened } from "../server_connection.ts";
import { ReplyError, respArgument, respCommand, RespWriter } from "./resp.ts";

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
/** A larger number is not exact, and over every limit anyway. */
const MAX_COUNT = 2 ** 53;
const REDIRECTION = /^(?:MOVED|ASK) /;
const ASKING = respCommand("ASKING");
const NOTHING = new Uint8Array(0);
const ONE = respArgument("1");
/** Commands up to their key. */
const GET = beginning(2, "GET");
const INCRBY = beginning(3, "INCRBY");
const EXPIRE = beginning(3, "EXPIRE");
const EVAL = beginning(5, "EVAL", GIVE_BACK, ONE);

function beginning(parts: number, name: string, ...args: readonly Uint8Array[]): Uint8Array {
  const writer = new RespWriter().text(`*${parts}\r\n`).bytes(respArgument(name));
  for (const arg of args) writer.bytes(arg);
  return writer.finish();
}

type WindowGroup = HitGroup<KvWindowCounter>;

/** Commands to send after a batch. */
interface AfterBatch {
  /** Calls of scripts that the node did not know. */
  again: KvBatch | undefined;
  /** Of counters that turned out to be new. */
  readonly follow: LateExpiry[];
  /** Refused or unanswered: the same node may refuse them again. */
  readonly retry: LateExpiry[];
  /** Set after their counters, which a replica that takes over now may have without the expiries. */
  readonly confirm: LateExpiry[];
}

/** The commands of one write to a node of the key-value cache. */
export class KvBatch extends HitBatch<KvWindowCounter> {
  /** The expiries of other batches that go with this one. */
  late: LateExpiry[];
  #takes = new KvTakes();
  readonly #asking: boolean;
  /** By position of the groups: whether an EXPIRE goes with it. */
  readonly #expires: boolean[] = [];
  /** The generation of the expiries when it was written. */
  #generation: object | undefined;

  /** With `asking`, ASKING goes before each command; `late` expiries go first. */
  constructor({ asking, late = [] }: { readonly asking: boolean; readonly late?: LateExpiry[] }) {
    super();
    this.#asking = asking;
    this.late = late;
  }

  override get isEmpty(): boolean {
    return super.isEmpty && this.#takes.calls === 0 && this.late.length === 0;
  }

  override get size(): number {
    return super.size + this.#takes.size;
  }

  override add(ask: KvAsk): void {
    if (isOfWindow(ask)) super.add(ask);
    else this.#takes.add(ask);
  }

  override drop(isDropped: (ask: WaitingAsk) => boolean, state: string): void {
    super.drop(isDropped, state);
    this.#takes.drop(isDropped, state);
  }

  override fail(state: string): void {
    super.fail(state);
    this.#takes.fail(state);
  }

  /** The commands in the form of the protocol. */
  commands(expiries: KvExpiries): KvCommands {
    const before = this.#asking ? ASKING : NOTHING;
    const each = this.#asking ? 2 : 1;
    this.late = this.late.filter(({ key, windowEnd, isSecond }) => {
      return !expiries.covers(key, isSecond === true ? windowEnd + 1 : windowEnd);
    });
    this.#generation = expiries.generation;
    const writer = new RespWriter();
    let replies = 0;
    // First, so that none shortens a longer expiry of the groups.
    for (const { key, expiresInSeconds } of this.late) {
      writer.bytes(EXPIRE).argument(key).argument(expiresInSeconds);
      replies++;
    }
    for (const group of this.groups) {
      writeCommand(writer.bytes(before), group);
      replies += each;
      // Nothing is known of a key that moves from node to node.
      const expires = group.total > 0 && (this.#asking || !isCovered(group, expiries));
      this.#expires.push(expires);
      if (!expires) continue;
      writeKey(writer.bytes(before).bytes(EXPIRE), group.counter).argument(group.expiresInSeconds);
      replies += each;
    }
    this.#takes.write(writer, before);
    replies += each * this.#takes.calls;
    return { data: writer.take(), replies, written: (data) => RespWriter.give(data) };
  }

  /** Settles the callers with the replies, in the order of the commands; returns what is to be sent after it. */
  answered(replies: readonly unknown[], expiries: KvExpiries): AfterBatch {
    const each = this.#asking ? 2 : 1;
    const after: AfterBatch = { again: undefined, follow: [], retry: [], confirm: [] };
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
      else if (isCurrent) expiries.remember(group.counter.key, group.windowEnd);
    }
    this.settle();
    const takes = this.#takes.settle(replies, at, each);
    if (takes !== undefined) {
      after.again = new KvBatch({ asking: this.#asking });
      after.again.#takes = takes;
    }
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

function isOfWindow(ask: KvAsk): ask is Ask<KvWindowCounter> {
  return ask.counter instanceof KvWindowCounter;
}

/** A refused expiry fails the hit, unless the key has moved: the cluster would count the hit there again. */
function outcomeOf(count: number | string, expired: unknown): number | string {
  if (!(expired instanceof Error)) return count;
  return typeof count === "number" && REDIRECTION.test(expired.message) ? count : shortened(expired.message);
}

/** Notes what the expiry requires: a counter equal to what was added is new, and one without a reply may be. */
function learn(
  group: WindowGroup,
  { reply, expires, expired }: { reply: unknown; expires: boolean; expired: unknown },
  expiries: KvExpiries,
  after: AfterBatch,
): void {
  // The server refused the command and did nothing.
  if (reply instanceof ReplyError) return;
  if (typeof reply !== "number" || expires) {
    const late = forget(group, expiries);
    // An expiry that finds no counter has none to set.
    if (expired !== 0) after.retry.push(late);
  } else if (reply === deltaOf(group.total)) after.follow.push(forget(group, expiries));
}

function forget(
  { counter: { key }, expiresInSeconds, windowEnd }: WindowGroup,
  expiries: KvExpiries,
): LateExpiry {
  expiries.forget(key);
  return { key, expiresInSeconds, windowEnd };
}

/** True if the expiry of a group is set; its counter keeps the proof. */
function isCovered({ counter, windowEnd }: WindowGroup, expiries: KvExpiries): boolean {
  const isOwnWindow = counter.windowEnd === windowEnd;
  if (isOwnWindow && counter.expiry === expiries.generation) return true;
  if (!expiries.covers(counter.key, windowEnd)) return false;
  if (isOwnWindow) counter.expiry = expiries.generation;
  return true;
}

/** Writes the key; that of a kept command is copied. */
function writeKey(writer: RespWriter, { key, keptHits, bytes, start, end }: KvWindowCounter): RespWriter {
  if (keptHits === 0) return writer.argument(key);
  const numberLength = keptHits === 1 ? ONE.length : respArgument(String(deltaOf(keptHits))).length;
  return writer.part(bytes, start + INCRBY.length, end - numberLength);
}

function writeCommand(writer: RespWriter, { total, counter }: WindowGroup): void {
  if (total > 0 && counter.keptHits === 0 && counter.isRepeated) keepCommand(counter, total);
  if (total > 0 && total === counter.keptHits) writer.part(counter.bytes, counter.start, counter.end);
  else if (total > 0) writeKey(writer.bytes(INCRBY), counter).argument(deltaOf(total));
  else if (total === 0) writeKey(writer.bytes(GET), counter);
  else writeKey(writer.bytes(EVAL), counter).argument(-total);
}

/** Commands of repeated counters are next to each other: many small arrays would take more memory and time. */
const SLAB_BYTES = 65_536;
let slab = NOTHING;
let slabUsed = 0;

function keepCommand(counter: KvWindowCounter, hits: number): void {
  const command = writeKey(new RespWriter().bytes(INCRBY), counter).argument(deltaOf(hits)).finish();
  if (slabUsed + command.length > slab.length) {
    slab = new Uint8Array(Math.max(SLAB_BYTES, command.length));
    slabUsed = 0;
  }
  slab.set(command, slabUsed);
  counter.keptHits = hits;
  counter.bytes = slab;
  counter.start = slabUsed;
  counter.end = slabUsed += command.length;
}

/** The server takes no number of 2^63, which hits of many callers together may reach. */
function deltaOf(hits: number): number {
  return Math.min(hits, MAX_COUNT);
}

/** The outcome in a reply, or a text that says what is wrong. */
function countOf(reply: unknown, { total }: WindowGroup): number | string {
  if (reply instanceof Error) return OVERFLOW.test(reply.message) ? MAX_COUNT : shortened(reply.message);
  if (total > 0) {
    const delta = deltaOf(total);
    if (typeof reply === "number" && reply >= delta) return Math.min(reply - delta, MAX_COUNT);
    return `it answered ${shortened(String(reply))} to INCRBY ${total}`;
  }
  if (typeof reply === "number") return reply;
  if (reply === null) return 0;
  const text = String(reply);
  return WHOLE_NUMBER.test(text)
    ? Number(text)
    : `the counter is "${shortened(text)}", which is not a whole number`;
}
