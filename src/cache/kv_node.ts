import type { Redis } from "ioredis";
import type { Clock } from "../base/clock.ts";
import type { Caller, Hit } from "../ratelimit/counter_cache.ts";
import { Breaker } from "./breaker.ts";
import type { CacheFigures } from "./figures.ts";
import type { Ask } from "./hit_batch.ts";
import { KvBatch, type LateExpiry } from "./kv_batch.ts";
import { KvExpiries } from "./kv_expiries.ts";
import { KvFailure } from "./kv_failure.ts";
import { type InFlight, KvInFlight } from "./kv_in_flight.ts";
import { KvPool, type KvPoolOptions } from "./kv_pool.ts";
import { shortened } from "./resp.ts";
import { startSoon } from "./start_soon.ts";
import type { KvConnection } from "./kv_connection.ts";

/** How often keys of windows that are over are forgotten. */
const SWEEP_INTERVAL_MS = 10_000;
/**
 * With so many batches under way a further one is held back, because few large ones cost the server and
 * this process less than many small ones (measured: a third more calls), unless it moves so many keys,
 * or for so long.
 */
const EAGER_BATCHES = 3;
const LARGE_BATCH_KEYS = 64;
const LONGEST_HOLD_MS = 5;
/** Most expiries that are kept while there is no connection. */
const MAX_OWED = 10_000;
const SLOTS = ["plain", "asking"] as const;
const SLOTS_REVERSED = ["asking", "plain"] as const;
/** Answers of a server that is not, or not yet, the one to ask. Whoever is behind its name now may be. */
const WRONG_SERVER = /^(?:READONLY|LOADING|MASTERDOWN)\b/;

/** How one node is asked. */
export interface KvNodeOptions extends Pick<KvPoolOptions, "poolSize" | "onEmpty" | "onEmptyWaitMs"> {
  /** For errors; holds no password. */
  readonly address: string;
  /** A client that is not connected yet. */
  readonly createClient: () => Redis;
  /** Number of the database that holds the counters; 0 when absent. */
  readonly database?: number;
  /** Longest time from asking to the answer, in milliseconds. */
  readonly timeoutMs: number;
  /** For how long hits gather before they are written, in milliseconds. */
  readonly windowMs: number;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  /** What callers are to get in place of a failure; the failure itself when absent. */
  readonly errorOf?: (failure: KvFailure) => Error;
  /** Called when the first connection is there, and when none is left: with the reason, once an outage. */
  readonly onConnection?: ((connected: boolean, reason: string) => void) | undefined;
  /** Told of each batch that was answered: the milliseconds from its write to its answer, with fractions. */
  readonly roundTrip?: ((ms: number) => void) | undefined;
}

/** How hits are asked for. */
export interface AskOptions {
  readonly caller?: Caller | undefined;
  /** ASKING goes before each command: the node is about to take the slot over. */
  readonly asking?: boolean;
}

/** Hits that gather for the next write, or wait for a connection to be written on. */
interface Gathering {
  readonly batch: KvBatch;
  readonly startedAt: number;
  /** It has gathered for long enough. */
  due: boolean;
  /** It is not to be held back any longer. */
  urgent: boolean;
  /** Ends the timers that make it due, and urgent. */
  cancel: () => void;
  cancelHold: (() => void) | undefined;
}

/** One node of a key-value cache: what gathers in one turn is one round trip on one of its connections. */
export class KvNode {
  readonly #options: KvNodeOptions;
  readonly #pool: KvPool;
  readonly #breaker: Breaker;
  readonly #expiries = new KvExpiries();
  readonly #inFlight: KvInFlight;
  /** Those with ASKING are apart. */
  #gathering: { plain: Gathering | undefined; asking: Gathering | undefined } = {
    plain: undefined,
    asking: undefined,
  };
  /** Expiries that could not be sent yet. */
  readonly #owed: LateExpiry[] = [];
  #cancelSweep: () => void;
  #timeouts = 0;

  constructor(options: KvNodeOptions) {
    this.#options = options;
    const { clock, random } = options;
    this.#breaker = new Breaker({ clock, random });
    this.#inFlight = new KvInFlight({ ...options, onExpired: (inFlight) => this.#expired(inFlight) });
    this.#pool = new KvPool({
      ...options,
      events: {
        // It may be another server, or have lost what it knew.
        connected: () => this.#expiries.clear(),
        free: () => this.#writeDue(),
        lost: (connection, reason) => this.#lost(connection, reason),
        exhausted: (reason) => this.#exhausted(reason),
      },
    });
    this.#cancelSweep = this.#scheduleSweep();
  }

  /** Settles at the first connection. */
  get ready(): Promise<void> {
    return this.#pool.ready;
  }

  /** Whether counters can be asked now. */
  get connected(): boolean {
    return this.#pool.connected;
  }

  /** Its connections, and how it fares. */
  get figures(): CacheFigures {
    const { counters, gauges } = this.#pool.figures;
    return {
      counters: {
        ...counters,
        timeouts: () => this.#timeouts,
        breaker_opened: () => this.#breaker.opened,
      },
      gauges: {
        ...gauges,
        breaker_open: () => this.#breaker.open ? 1 : 0,
        batches_in_flight: () => this.#inFlight.size,
      },
    };
  }

  /** Moves counters and answers the counts after each step, in order; rejects with `KvFailure`. */
  ask(hits: readonly Hit[], options: AskOptions = {}): Promise<number[]> {
    if (hits.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const gathering = this.#gather(options.asking === true);
      const ask: Ask = {
        hits,
        counts: [],
        states: undefined,
        caller: options.caller,
        resolve,
        reject: (failed) => reject(this.#errorOf(failureOf(failed))),
      };
      if (typeof gathering === "string") reject(this.#errorOf(refusal(hits, gathering)));
      else this.#add(gathering, ask);
    });
  }

  /** Sends one command, such as `["DEL", "key"]`, and answers what came back. */
  async command(args: readonly string[]): Promise<unknown> {
    const { clock, timeoutMs } = this.#options;
    const connection = this.#pool.shared();
    if (connection === undefined) throw new Error(this.#pool.reason);
    const timeout = Promise.withResolvers<never>();
    const cancel = clock.after(timeoutMs, () => timeout.reject(new Error(noAnswer(timeoutMs))));
    try {
      return await Promise.race([connection.command(args), timeout.promise]);
    } finally {
      cancel();
    }
  }

  /** Fails whoever waits, and lets go of connections and timers. */
  close(): Promise<void> {
    this.#failWaiting("it is closed");
    for (const { batch } of this.#inFlight.takeAll()) batch.fail("it is closed");
    this.#cancelSweep();
    this.#pool.close();
    return Promise.resolve();
  }

  #errorOf(failure: KvFailure): Error {
    return this.#options.errorOf?.(failure) ?? failure;
  }

  /** Where hits gather now, or why they cannot be asked for. */
  #gather(asking: boolean): Gathering | string {
    const slot = asking ? "asking" : "plain";
    const known = this.#gathering[slot];
    if (known !== undefined) return known;
    if (!this.#pool.connected) return this.#pool.reason;
    if (!this.#breaker.tryPass()) return `it failed again and again, last: ${this.#breaker.reason}`;
    return this.#begin(slot);
  }

  #add(gathering: Gathering, ask: Ask): void {
    gathering.batch.add(ask);
    if (gathering.due && gathering.batch.size >= LARGE_BATCH_KEYS) this.#writeDue();
  }

  #begin(slot: "plain" | "asking"): Gathering {
    const { clock, windowMs } = this.#options;
    const batch = new KvBatch({ asking: slot === "asking" });
    const gathering: Gathering = {
      batch,
      startedAt: clock.now(),
      due: false,
      urgent: false,
      cancel: () => {},
      cancelHold: undefined,
    };
    gathering.cancel = startSoon(windowMs, clock, () => {
      gathering.due = true;
      this.#writeFrom(slot);
    });
    if (slot === "plain") {
      for (const expiry of this.#owed.splice(0)) batch.addExpiry(expiry);
    }
    return this.#gathering[slot] = gathering;
  }

  /** Writes what has gathered for long enough, as far as connections are free. */
  #writeDue(): void {
    const { plain, asking } = this.#gathering;
    const isAskingFirst = asking !== undefined && plain !== undefined && asking.startedAt < plain.startedAt;
    for (const slot of isAskingFirst ? SLOTS_REVERSED : SLOTS) this.#writeFrom(slot);
  }

  #writeFrom(slot: "plain" | "asking"): void {
    const gathering = this.#gathering[slot];
    if (gathering?.due !== true || this.#isHeldBack(gathering, slot)) return;
    const connection = this.#pool.take(() => this.#inFlight.left(gathering.startedAt));
    if (connection === undefined) return;
    gathering.batch.dropGone();
    if (gathering.batch.empty) {
      this.#gathering[slot] = undefined;
      gathering.cancelHold?.();
      this.#breaker.released();
      return this.#pool.give(connection);
    }
    this.#gathering[slot] = undefined;
    gathering.cancelHold?.();
    this.#write(gathering, connection);
  }

  #isHeldBack(gathering: Gathering, slot: "plain" | "asking"): boolean {
    if (gathering.urgent || this.#inFlight.size < EAGER_BATCHES) return false;
    if (gathering.batch.size >= LARGE_BATCH_KEYS) return false;
    gathering.cancelHold ??= this.#options.clock.after(LONGEST_HOLD_MS, () => {
      gathering.urgent = true;
      this.#writeFrom(slot);
    });
    return true;
  }

  #write({ batch, startedAt }: Gathering, connection: KvConnection): void {
    const inFlight = { batch, startedAt, connection };
    this.#inFlight.add(inFlight);
    const { clock } = this.#options;
    const writtenAt = clock.elapsed();
    connection.write(batch.commands(this.#expiries), (replies) => {
      const tookMs = clock.elapsed() - writtenAt;
      this.#answered(inFlight, replies, tookMs);
    });
  }

  #answered(inFlight: InFlight, replies: readonly unknown[], tookMs: number): void {
    if (!this.#inFlight.delete(inFlight)) return;
    const { batch, connection } = inFlight;
    if (!connection.usable) {
      // The client has answered for a connection that is gone, in its own words.
      const { reason } = connection;
      this.#owe(batch.settle(replies.map((reply) => told(reply, reason)), this.#expiries));
      this.#breaker.failed(reason);
      return;
    }
    this.#options.roundTrip?.(tookMs);
    const wrong = replies.find((reply) => reply instanceof Error && WRONG_SERVER.test(reply.message));
    const follow: readonly LateExpiry[] = batch.settle(replies, this.#expiries);
    if (wrong instanceof Error) {
      const reason = shortened(wrong.message);
      this.#breaker.failed(reason);
      this.#owe(follow);
      this.#pool.renewAll(reason);
      return;
    }
    this.#breaker.succeeded();
    if (follow.length > 0) {
      const gathering = this.#gathering.plain ?? this.#begin("plain");
      for (const expiry of follow) gathering.batch.addExpiry(expiry);
    }
    this.#pool.give(connection);
  }

  #lost(connection: KvConnection, reason: string): void {
    for (const { batch } of this.#inFlight.takeAll(connection)) {
      this.#breaker.failed(reason);
      this.#owe(batch.late);
      batch.fail(reason);
    }
    if (this.#pool.connected) return;
    this.#breaker.released();
    this.#failWaiting(reason);
  }

  /** An answer that comes too late might still come, so its connection ends. */
  #expired({ batch, connection }: InFlight): void {
    const reason = noAnswer(this.#options.timeoutMs);
    this.#timeouts++;
    this.#breaker.failed(reason);
    this.#owe(batch.late);
    batch.fail(reason);
    this.#pool.renew(connection, reason);
  }

  /** No connection was free for as long as the settings say: what waits for one fails. */
  #exhausted(reason: string): void {
    // With batches under way the server has yet to show whether it works.
    if (this.#inFlight.size > 0) this.#breaker.released();
    else this.#breaker.failed(reason);
    this.#failWaiting(reason, ({ due }) => due);
  }

  #failWaiting(reason: string, fails: (gathering: Gathering) => boolean = () => true): void {
    for (const slot of SLOTS) {
      const gathering = this.#gathering[slot];
      if (gathering === undefined || !fails(gathering)) continue;
      this.#gathering[slot] = undefined;
      gathering.cancel();
      gathering.cancelHold?.();
      this.#owe(gathering.batch.late);
      gathering.batch.fail(reason);
    }
  }

  /** Keeps expiries that could not be sent for the next batch: their keys would stay for good. */
  #owe(late: readonly LateExpiry[]): void {
    for (const expiry of late) {
      if (this.#owed.length < MAX_OWED) this.#owed.push(expiry);
    }
  }

  #scheduleSweep(): () => void {
    const { clock } = this.#options;
    return clock.after(SWEEP_INTERVAL_MS, () => {
      this.#expiries.sweep(clock.now() / 1000);
      this.#cancelSweep = this.#scheduleSweep();
    });
  }
}

/** An answer, or why there is none where the client made one up. */
function told(reply: unknown, reason: string): unknown {
  return reply instanceof Error && reply.name !== "ReplyError" ? new Error(reason) : reply;
}

function failureOf({ counts, states, hits }: Ask): KvFailure {
  const message = states?.find((state) => state !== undefined) ?? "an answer is missing";
  return new KvFailure(message, {
    counts: hits.map((_, position) => counts[position]),
    states: hits.map((_, position) => states?.[position]),
  });
}

function refusal(hits: readonly Hit[], state: string): KvFailure {
  return new KvFailure(state, { counts: hits.map(() => undefined), states: hits.map(() => state) });
}

function noAnswer(timeoutMs: number): string {
  return `no answer within ${timeoutMs} ms`;
}
