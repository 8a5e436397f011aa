import type { Redis } from "ioredis";
import type { Clock } from "../../base/clock.ts";
import type { Figures } from "../../base/figures.ts";
import { answeredWithin } from "../../base/wait.ts";
import type { Caller, Hit } from "../../ratelimit/counter_cache.ts";
import { Breaker } from "../breaker.ts";
import type { Ask } from "../hit_batch.ts";
import type { KvBatch, LateExpiry } from "./batch.ts";
import type { KvConnection } from "./connection.ts";
import { KvExpiries } from "./expiries.ts";
import { KvFailure } from "./failure.ts";
import { type Gathered, KvGathering } from "./batcher.ts";
import { type InFlight, KvInFlight } from "./in_flight.ts";
import { KvPool, type KvPoolOptions } from "./pool.ts";
import { shortened } from "./resp.ts";

/** How often keys of windows that are over are forgotten, and expiries that were refused are sent again. */
const SWEEP_INTERVAL_MS = 1_000;
/**
 * Expiries that were set after their counters are set once more after so many sweeps: by then it is known
 * whether a replica has taken over, which may have the counter alone.
 */
const SWEEPS_TO_CONFIRM = 5;
/** Most expiries that wait for that. */
const MAX_UNCONFIRMED = 10_000;
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
  /** Takes an expiry to the node that has its key by now; answers whether there is one. None when absent. */
  readonly placeExpiry?: ((expiry: LateExpiry) => boolean) | undefined;
}

/** How hits are asked for. */
export interface AskOptions {
  readonly caller?: Caller | undefined;
  /** ASKING goes before each command: the node is about to take the slot over. */
  readonly asking?: boolean;
}

/** One node of a key-value cache: what gathers in one turn is one round trip on one of its connections. */
export class KvNode {
  readonly #options: KvNodeOptions;
  readonly #pool: KvPool;
  readonly #breaker: Breaker;
  readonly #expiries = new KvExpiries();
  readonly #inFlight: KvInFlight;
  readonly #gathering: KvGathering;
  /** Expiries that were refused or not answered; they are sent again after a pause. */
  readonly #refused: LateExpiry[] = [];
  /** Expiries to be set once more, by the sweeps until then. */
  readonly #unconfirmed: LateExpiry[][] = Array.from({ length: SWEEPS_TO_CONFIRM }, () => []);
  #cancelSweep: () => void;
  #timeouts = 0;

  constructor(options: KvNodeOptions) {
    this.#options = options;
    const { clock, random } = options;
    this.#breaker = new Breaker({ clock, random });
    this.#inFlight = new KvInFlight({ ...options, onExpired: (inFlight) => this.#expired(inFlight) });
    this.#gathering = new KvGathering({
      ...options,
      inFlight: () => this.#inFlight.size,
      refusal: () => this.#refusal(),
      take: (startedAt) => this.#pool.take(() => this.#inFlight.left(startedAt)),
      write: (gathered, connection) => this.#write(gathered, connection),
      unneeded: (connection) => this.#unneeded(connection),
    });
    this.#pool = new KvPool({
      ...options,
      events: {
        // It may lead to another server than those before, or to one that has lost what it knew.
        connected: () => {
          this.#expiries.clear();
          this.#gathering.sendOwed();
        },
        free: () => this.#gathering.writeDue(),
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
  get figures(): Figures {
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
      const ask: Ask = {
        hits,
        counts: [],
        states: undefined,
        caller: options.caller,
        resolve,
        reject: (failed) => reject(this.#errorOf(failureOf(failed))),
      };
      const refused = this.#gathering.add(ask, options.asking === true);
      if (refused !== undefined) reject(this.#errorOf(refusal(hits, refused)));
    });
  }

  /** Sends one command, such as `["DEL", "key"]`, and answers what came back. */
  async command(args: readonly string[]): Promise<unknown> {
    const { clock, timeoutMs } = this.#options;
    const connection = this.#pool.shared();
    if (connection === undefined) throw new Error(this.#pool.reason);
    const overdue = () => new Error(noAnswer(timeoutMs));
    return await answeredWithin(connection.command(args), timeoutMs, clock, overdue);
  }

  /** Takes expiries of keys that this node has now. */
  owe(late: readonly LateExpiry[]): void {
    this.#gathering.owe(late);
  }

  /** Fails whoever waits, and lets go of connections and timers. */
  close(): Promise<void> {
    this.#gathering.fail("it is closed", "all");
    for (const { batch } of this.#inFlight.takeAll()) this.#fail(batch, "it is closed");
    for (const late of [...this.#unsent(), ...this.#unconfirmed.flat()]) this.#options.placeExpiry?.(late);
    this.#cancelSweep();
    this.#pool.close();
    return Promise.resolve();
  }

  #errorOf(failure: KvFailure): Error {
    return this.#options.errorOf?.(failure) ?? failure;
  }

  /** Why no hits can be asked for; where they can, the breaker has let them pass. */
  #refusal(): string | undefined {
    if (!this.#pool.connected) return this.#pool.reason;
    if (!this.#breaker.tryPass()) return `it failed again and again, last: ${this.#breaker.reason}`;
    return undefined;
  }

  #write({ batch, startedAt }: Gathered, connection: KvConnection): void {
    const commands = batch.commands(this.#expiries);
    // Its late expiries were set by others meanwhile.
    if (commands.replies === 0) return this.#unneeded(connection);
    const inFlight = { batch, startedAt, connection };
    this.#inFlight.add(inFlight);
    const { clock } = this.#options;
    const writtenAt = clock.elapsed();
    connection.write(commands, (replies) => {
      const tookMs = clock.elapsed() - writtenAt;
      this.#answered(inFlight, replies, tookMs);
    });
  }

  #unneeded(connection: KvConnection): void {
    this.#breaker.released();
    this.#pool.give(connection);
  }

  #answered(inFlight: InFlight, replies: readonly unknown[], tookMs: number): void {
    if (!this.#inFlight.delete(inFlight)) return;
    const { batch, connection } = inFlight;
    if (!connection.usable) {
      // The client has answered for a connection that is gone, in its own words.
      const { reason } = connection;
      const after = batch.settle(replies.map((reply) => told(reply, reason)), this.#expiries);
      this.#gathering.owe([...after.follow, ...after.retry]);
      this.#confirm(after.confirm);
      this.#breaker.failed(reason);
      return;
    }
    this.#options.roundTrip?.(tookMs);
    const wrong = replies.find((reply) => reply instanceof Error && WRONG_SERVER.test(reply.message));
    const { follow, retry, confirm } = batch.settle(replies, this.#expiries);
    if (retry.length > 0) this.#refused.push(...retry);
    if (confirm.length > 0) this.#confirm(confirm);
    if (wrong instanceof Error) {
      const reason = shortened(wrong.message);
      this.#breaker.failed(reason);
      this.#gathering.owe(follow);
      this.#pool.renewAll(reason);
      return;
    }
    this.#breaker.succeeded();
    this.#gathering.addExpiries(follow);
    this.#gathering.sendOwed();
    this.#pool.give(connection);
  }

  /** Fails a batch that was written: its counters may be new and without an expiry. */
  #fail(batch: KvBatch, reason: string): void {
    this.#gathering.owe(batch.lose(this.#expiries));
    batch.fail(reason);
  }

  #lost(connection: KvConnection, reason: string): void {
    for (const { batch } of this.#inFlight.takeAll(connection)) {
      this.#breaker.failed(reason);
      this.#fail(batch, reason);
    }
    if (this.#pool.connected) return;
    this.#breaker.released();
    this.#gathering.fail(reason, "all");
  }

  /** An answer that comes too late might still come, so its connection ends. */
  #expired({ batch, connection }: InFlight): void {
    const reason = noAnswer(this.#options.timeoutMs);
    this.#timeouts++;
    this.#breaker.failed(reason);
    this.#fail(batch, reason);
    this.#pool.renew(connection, reason);
  }

  /** No connection was free for as long as the settings say: what waits for one fails. */
  #exhausted(reason: string): void {
    // With batches under way the server has yet to show whether it works.
    if (this.#inFlight.size > 0) this.#breaker.released();
    else this.#breaker.failed(reason);
    this.#gathering.fail(reason, "due");
  }

  #scheduleSweep(): () => void {
    const { clock } = this.#options;
    return clock.after(SWEEP_INTERVAL_MS, () => {
      this.#expiries.sweep(clock.now() / 1000);
      this.#retryExpiries();
      this.#cancelSweep = this.#scheduleSweep();
    });
  }

  #retryExpiries(): void {
    const { connected } = this.#pool;
    this.#refused.push(...this.#unconfirmed.shift() ?? []);
    this.#unconfirmed.push([]);
    for (const late of connected ? this.#refused.splice(0) : this.#unsent()) {
      if (this.#options.placeExpiry?.(late) !== true) this.#gathering.owe([late]);
    }
    if (connected) this.#gathering.sendOwed();
  }

  #confirm(late: readonly LateExpiry[]): void {
    const waiting = this.#unconfirmed.reduce((sum, { length }) => sum + length, 0);
    this.#unconfirmed.at(-1)?.push(...late.slice(0, MAX_UNCONFIRMED - waiting));
  }

  #unsent(): LateExpiry[] {
    return [...this.#refused.splice(0), ...this.#gathering.takeOwed()];
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
