import type { Taken } from "../../ratelimit/algorithms/taken.ts";
import type { ConditionalHit } from "../../ratelimit/counter_cache.ts";
import { MAX_DURATION_SECONDS } from "../../ratelimit/window.ts";
import { type Ask, failAsk, type WaitingAsk } from "../hit_batch.ts";
import { shortened } from "../server_connection.ts";
import { ReplyError, type RespWriter } from "./resp.ts";
import { parseTaken, type ScriptCall, writeScriptCall } from "./scripts/script.ts";

/** Conditional hits of one caller. */
export type TakeAsk = Ask<ConditionalHit, Taken>;

/** Conditional hits that go out as one call of a script. */
interface TakeGroup extends ScriptCall {
  readonly addends: number[];
  /** Where the answer to each addend goes. */
  readonly members: { readonly ask: TakeAsk; readonly position: number }[];
  expiresInSeconds: number;
}

/** The error of a server that has not seen the script since it started or since SCRIPT FLUSH. */
const UNKNOWN_SCRIPT = /^NOSCRIPT\b/;

/** The conditional hits of a batch. Those of one key and one limit are one call, answered in the order of arrival. */
export class KvTakes {
  readonly #asks: TakeAsk[] = [];
  readonly #groups: TakeGroup[] = [];
  /** The group that further hits of a key join. */
  readonly #open = new Map<string, TakeGroup>();
  /** The calls are sent with their scripts. */
  #isWithSource = false;

  get size(): number {
    return this.#groups.length;
  }

  add(ask: TakeAsk): void {
    this.#asks.push(ask);
    for (const [position, hit] of ask.hits.entries()) {
      const { key, limit, addend } = hit;
      const expiresInSeconds = Math.min(hit.expiresInSeconds, MAX_DURATION_SECONDS);
      let group = this.#open.get(key);
      if (group?.limit !== limit) {
        group = { key, limit, addends: [], members: [], expiresInSeconds };
        this.#open.set(key, group);
        this.#groups.push(group);
      }
      group.expiresInSeconds = Math.max(group.expiresInSeconds, expiresInSeconds);
      group.addends.push(addend);
      group.members.push({ ask, position });
    }
  }

  /** Fails some callers, and leaves out their hits. */
  drop(isDropped: (ask: WaitingAsk) => boolean, state: string): void {
    if (!this.#asks.some(isDropped)) return;
    const asks = this.#asks.splice(0);
    this.#groups.length = 0;
    this.#open.clear();
    for (const ask of asks) {
      if (isDropped(ask)) failAsk(ask, state);
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
    const unknown = this.#groups.filter((group, index) => {
      const reply = replies[first + index * each];
      if (reply instanceof ReplyError && UNKNOWN_SCRIPT.test(reply.message) && !this.#isWithSource) {
        return true;
      }
      note(group, reply);
      return false;
    });
    if (unknown.length === 0) {
      this.#end();
      return undefined;
    }
    const again = new KvTakes();
    again.#isWithSource = true;
    again.#asks.push(...this.#asks);
    again.#groups.push(...unknown);
    return again;
  }

  /** Fails what was not answered. */
  fail(state: string): void {
    for (const group of this.#groups) noteState(group, state);
    this.#end();
  }

  #end(): void {
    for (const ask of this.#asks) {
      if (ask.states === undefined) ask.resolve(ask.counts);
      else ask.reject(ask);
    }
  }
}

function note(group: TakeGroup, reply: unknown): void {
  if (reply instanceof Error) return noteState(group, shortened(reply.message));
  const taken = parseTaken(reply, group);
  if (taken === undefined) return noteState(group, `it answered ${shortened(String(reply))} to a script`);
  for (const [index, { ask, position }] of group.members.entries()) {
    const one = taken[index];
    if (one !== undefined) ask.counts[position] = one;
  }
}

function noteState({ members }: TakeGroup, state: string): void {
  for (const { ask, position } of members) (ask.states ??= [])[position] = state;
}
