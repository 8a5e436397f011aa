import type { Ask, WaitingAsk } from "../hit_batch.ts";
import { shortened } from "../server_connection.ts";
import type { KvScriptCounter } from "./counters.ts";
import { ReplyError, type RespWriter } from "./resp.ts";
import { parseTaken, type ScriptCall, writeScriptCall } from "./scripts/script.ts";

type TakeAsk = Ask<KvScriptCounter>;

/** Conditional hits that go out as one call of a script. */
interface TakeGroup extends ScriptCall {
  readonly addends: number[];
  readonly holders: string[];
  /** In the order of the addends. */
  readonly asks: TakeAsk[];
  expiresInSeconds: readonly number[];
}

/** The error of a server that has not seen the script since it started or since SCRIPT FLUSH. */
const UNKNOWN_SCRIPT = /^NOSCRIPT\b/;

/** The conditional hits of a batch. Those of one key and one limit are one call, answered in the order of arrival. */
export class KvTakes {
  readonly #groups: TakeGroup[] = [];
  /** The group that further hits of a key join. */
  readonly #open = new Map<string, TakeGroup>();
  /** The calls are sent with their scripts. */
  #isWithSource = false;

  get size(): number {
    return this.#groups.length;
  }

  add(ask: TakeAsk): void {
    const { key, keys, limit, holder, expiresInSeconds } = ask.counter;
    let group = this.#open.get(key);
    if (group?.limit !== limit) {
      group = { keys, limit, addends: [], holders: [], asks: [], expiresInSeconds };
      this.#open.set(key, group);
      this.#groups.push(group);
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
    const asks = this.#groups.flatMap((group) => group.asks);
    if (!asks.some(isDropped)) return;
    this.#groups.length = 0;
    this.#open.clear();
    for (const ask of asks) {
      if (isDropped(ask)) ask.fail(state);
      else this.add(ask);
    }
  }

  /** Writes the calls, each after these bytes. */
  write(writer: RespWriter, before: Uint8Array): void {
    for (const group of this.#groups) writeScriptCall(writer.bytes(before), group, this.#isWithSource);
  }

  /**
   * Settles the callers with the reply at `first` and each so many behind it. Returns the calls whose script the server
   * does not know, to be sent with it: their callers are settled then.
   */
  settle(replies: readonly unknown[], first: number, each: number): KvTakes | undefined {
    let again: KvTakes | undefined;
    for (const [index, group] of this.#groups.entries()) {
      const reply = replies[first + index * each];
      if (reply instanceof ReplyError && UNKNOWN_SCRIPT.test(reply.message) && !this.#isWithSource) {
        again ??= new KvTakes();
        again.#isWithSource = true;
        again.#groups.push(group);
      } else settleGroup(group, reply);
    }
    return again;
  }

  /** Fails what was not answered. */
  fail(state: string): void {
    for (const group of this.#groups) failGroup(group, state);
  }
}

function settleGroup(group: TakeGroup, reply: unknown): void {
  if (reply instanceof Error) return failGroup(group, shortened(reply.message));
  const taken = parseTaken(reply, group);
  if (taken === undefined) return failGroup(group, `it answered ${shortened(String(reply))} to a script`);
  for (const [index, ask] of group.asks.entries()) {
    const one = taken[index];
    if (one !== undefined) ask.receiver.counted(one);
  }
}

function failGroup({ asks }: TakeGroup, state: string): void {
  for (const ask of asks) ask.fail(state);
}
