import type { Ask, WaitingAsk } from "../hit_batch.ts";
import { shortened } from "../server_connection.ts";
import { KvConditionalCounter, type KvScriptCounter } from "./counters.ts";
import { ReplyError, type RespWriter } from "./resp.ts";
import {
  isStateLimit,
  parseTaken,
  type ScriptCall,
  type ScriptTake,
  writeScriptCall,
} from "./scripts/script.ts";
import type { Taken } from "../../ratelimit/algorithms/taken.ts";

type TakeAsk = Ask<KvScriptCounter>;

/** Conditional hits of one counter. */
interface TakeGroup extends ScriptTake {
  readonly limit: ScriptCall["limit"];
  readonly addends: number[];
  readonly holders: string[];
  /** In the order of the addends. */
  readonly asks: TakeAsk[];
  expiresInSeconds: readonly number[];
}

/** One call of a script. */
interface TakeCall extends ScriptCall {
  readonly takes: TakeGroup[];
  readonly isWithSource: boolean;
}

/** The error of a server that has not seen the script since it started or since SCRIPT FLUSH. */
const UNKNOWN_SCRIPT = /^NOSCRIPT\b/;
/** A server does nothing else during a call. */
const MOST_PER_CALL = 64;
/** A counter that was left out so often is not sent with others: a proxy has its key on another server. */
const MOST_LEFT_OUT = 3;

/**
 * The conditional hits of a batch. Those of one key and one limit are answered in the order of arrival. Counters of one
 * limit that were seen before are one call, except in a cluster, where their keys have different slots.
 */
export class KvTakes {
  #calls: TakeCall[] = [];
  /** The group that further hits of a key join. */
  readonly #open = new Map<string, TakeGroup>();
  /** The call that further counters with a limit join. */
  readonly #joined = new Map<ScriptCall["limit"], TakeCall>();

  #size = 0;

  /** The number of counters. */
  get size(): number {
    return this.#size;
  }

  /** The number of calls. */
  get calls(): number {
    return this.#calls.length;
  }

  add(ask: TakeAsk): void {
    const { key, keys, limit, holder, expiresInSeconds } = ask.counter;
    let group = this.#open.get(key);
    if (group?.limit !== limit) {
      // Calls with the new limit follow those with the other one.
      if (group !== undefined) this.#joined.clear();
      group = { keys, limit, addends: [], holders: [], asks: [], expiresInSeconds };
      this.#size++;
      this.#open.set(key, group);
      this.#callFor(ask.counter).push(group);
    } else if (group.expiresInSeconds !== expiresInSeconds) {
      group.expiresInSeconds = group.expiresInSeconds.map((seconds, index) =>
        Math.max(seconds, expiresInSeconds[index] ?? 0)
      );
    }
    group.addends.push(ask.hits);
    if (holder !== undefined) group.holders.push(holder);
    group.asks.push(ask);
  }

  /** Fails some callers, and leaves out their hits. */
  drop(isDropped: (ask: WaitingAsk) => boolean, state: string): void {
    // Groups of one key are in the order of arrival, and keys do not depend on each other.
    if (!this.#calls.some(({ takes }) => takes.some((group) => group.asks.some(isDropped)))) return;
    const asks = this.#calls.flatMap(({ takes }) => takes.flatMap((group) => group.asks));
    this.#calls = [];
    this.#size = 0;
    this.#open.clear();
    this.#joined.clear();
    for (const ask of asks) {
      if (isDropped(ask)) ask.fail(state);
      else this.add(ask);
    }
  }

  /** Writes the calls, each after these bytes. */
  write(writer: RespWriter, before: Uint8Array): void {
    for (const call of this.#calls) writeScriptCall(writer.bytes(before), call, call.isWithSource);
  }

  /**
   * Settles the callers with the reply at `first` and each so many behind it. Returns the calls to be sent then, whose
   * callers still wait: with a script that the server does not know, and alone what was refused or left out with others.
   */
  settle(replies: readonly unknown[], first: number, each: number): KvTakes | undefined {
    const again = new KvTakes();
    for (const [index, call] of this.#calls.entries()) {
      const reply = replies[first + index * each];
      const { takes, isWithSource } = call;
      const isRefused = reply instanceof ReplyError;
      if (isRefused && UNKNOWN_SCRIPT.test(reply.message) && !isWithSource) {
        again.#calls.push({ ...call, isWithSource: true });
      } else if (isRefused && takes.length > 1) {
        // It has counted nothing, perhaps because of one of the keys.
        for (const group of takes) again.#repeatAlone(group);
      } else {
        for (const group of settleCall(call, reply)) again.#repeatAlone(group);
      }
    }
    return again.calls === 0 ? undefined : again;
  }

  /** Fails what was not answered. */
  fail(state: string): void {
    for (const { takes } of this.#calls) {
      for (const group of takes) failGroup(group, state);
    }
  }

  #repeatAlone(group: TakeGroup): void {
    this.#calls.push({ limit: group.limit, takes: [group], isWithSource: false });
    for (const { counter } of group.asks) {
      if (!(counter instanceof KvConditionalCounter)) continue;
      counter.isHeld = false;
      counter.leftOut++;
    }
  }

  #callFor(counter: KvScriptCounter): TakeGroup[] {
    const { limit } = counter;
    const joined = canJoin(counter) ? this.#joined.get(limit) : undefined;
    if (joined !== undefined && joined.takes.length < MOST_PER_CALL) return joined.takes;
    const call: TakeCall = { limit, takes: [], isWithSource: false };
    this.#calls.push(call);
    if (canJoin(counter)) this.#joined.set(limit, call);
    return call.takes;
  }
}

function canJoin(counter: KvScriptCounter): boolean {
  return counter instanceof KvConditionalCounter && counter.isHeld && counter.leftOut < MOST_LEFT_OUT &&
    counter.slot === undefined && isStateLimit(counter.limit);
}

/** Settles the callers of a call, and returns the groups that it has left out. */
function settleCall(call: TakeCall, reply: unknown): TakeGroup[] {
  const { takes } = call;
  const outcomes = reply instanceof Error ? undefined : parseTaken(reply, call);
  if (outcomes === undefined) {
    const state = reply instanceof Error
      ? reply.message
      : `it answered ${shortened(String(reply))} to a script`;
    for (const group of takes) failGroup(group, shortened(state));
    return [];
  }
  return takes.filter((group, index) => {
    const taken = outcomes[index];
    if (taken !== null) settleGroup(group, taken ?? []);
    return taken === null;
  });
}

function settleGroup({ asks }: TakeGroup, taken: readonly Taken[]): void {
  for (let index = 0; index < asks.length; index++) {
    const ask = asks[index];
    const one = taken[index];
    if (ask === undefined || one === undefined) continue;
    if (ask.counter instanceof KvConditionalCounter) ask.counter.isHeld = one.used > 0;
    ask.receiver.counted(one);
  }
}

function failGroup({ asks }: TakeGroup, state: string): void {
  for (const ask of asks) ask.fail(state);
}
