import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import type { Figures } from "../../base/figures.ts";
import { hostPort } from "../../base/host_port.ts";
import type { Caller, Hit } from "../../ratelimit/counter_cache.ts";
import { CacheError } from "../../ratelimit/errors.ts";
import { Breaker } from "../breaker.ts";
import type { Ask } from "../hit_batch.ts";
import { McBatch, McRemoval, type Overshoot } from "./batch.ts";
import type { McAddress, McConnection, McExchange } from "./connection.ts";
import { McPool } from "./pool.ts";
import type { McTally } from "./tally.ts";
import type { TlsFiles } from "../tls_files.ts";

/** Most hits that wait for one node; more would only grow old. */
const MAX_WAITING_HITS = 50_000;

/** How one node is asked. */
export interface McNodeOptions {
  readonly address: McAddress;
  /** What TLS is spoken with; read anew for each connection. Plain TCP when absent. */
  readonly tls?: TlsFiles | undefined;
  /** Longest time from asking to the answer, in milliseconds. */
  readonly timeoutMs: number;
  /** How many connections are held at most; 0 is taken as 1. */
  readonly maxIdleConnections: number;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly tally: McTally;
  /** Called when the first connection is there, and when none can be had: with the reason, once an outage. */
  readonly onConnection?: ((connected: boolean, reason: string) => void) | undefined;
  /** Told of each write that was answered: the milliseconds from then to its last reply, with fractions. */
  readonly roundTrip?: ((ms: number) => void) | undefined;
}

/** Hits that gather for the next write. */
interface Gathering {
  readonly batch: McBatch;
  /** By the clock that is never set back, as all times here. */
  readonly startedAt: number;
  hits: number;
}

/** What was written and waits for its replies. */
interface InFlight {
  readonly exchange: McExchange;
  readonly startedAt: number;
  readonly writtenAt: number;
  readonly hits: number;
  readonly connection: McConnection;
}

/** One node of a memcached-style cache: what gathers in one turn is one write on one of its connections. */
export class McNode {
  /** `host:port`, for errors. */
  readonly address: string;
  readonly #options: McNodeOptions;
  readonly #pool: McPool;
  readonly #breaker: Breaker;
  /** In the order in which they began. */
  readonly #inFlight = new Map<McExchange, InFlight>();
  #gathering: Gathering | undefined;
  #waitingHits = 0;
  #cancelDeadline: (() => void) | undefined;
  #retired: PromiseWithResolvers<void> | undefined;

  constructor(options: McNodeOptions) {
    this.#options = options;
    this.address = hostPort(options.address);
    const { clock, random } = options;
    this.#breaker = new Breaker({ clock, random });
    this.#pool = new McPool({
      ...options,
      events: {
        ready: () => this.#flush(),
        answered: (connection, exchange, replies) => this.#answered(connection, exchange, replies),
        lost: (connection, reason) => this.#lost(connection, reason),
        down: (reason) => this.#failGathering(reason),
      },
    });
  }

  /** Settles at the first connection. */
  get ready(): Promise<void> {
    return this.#pool.ready;
  }

  /** Whether counters can be asked now. */
  get connected(): boolean {
    return this.#pool.connected;
  }

  /** How it fares now. */
  get gauges(): Figures["gauges"] {
    return {
      cx_active: () => this.#pool.size,
      breaker_open: () => this.#breaker.open ? 1 : 0,
    };
  }

  /** How often its breaker opened. */
  get breakerOpened(): number {
    return this.#breaker.opened;
  }

  /** Moves counters and answers the counts after each step, in order; rejects with `CacheError`. */
  ask(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    return new Promise((resolve, reject) => {
      const gathering = this.#gather(hits.length);
      if (typeof gathering === "string") return reject(this.#error(gathering));
      const ask: Ask = {
        hits,
        counts: [],
        states: undefined,
        caller,
        resolve,
        reject: (failed) => reject(this.#errorOf(failed)),
      };
      gathering.batch.add(ask);
      gathering.hits += hits.length;
      this.#waitingHits += hits.length;
    });
  }

  /** Forgets counters; rejects with `CacheError`. */
  async remove(keys: readonly string[]): Promise<void> {
    const connection = this.#pool.take();
    if (connection === undefined) throw this.#error(this.#pool.reason);
    const removal = new McRemoval(keys);
    this.#write(removal, connection, { startedAt: this.#options.clock.elapsed(), hits: 0 });
    try {
      await removal.done;
    } catch (error) {
      throw this.#error(errorText(error));
    }
  }

  /** Waits for whoever still waits, which the time limit bounds, and closes. Nobody asks any more. */
  async retire(): Promise<void> {
    this.#retired = Promise.withResolvers();
    this.#settled();
    await this.#retired.promise;
    this.close();
  }

  /** Fails whoever waits, and lets go of connections and timers. */
  close(): void {
    this.#pool.close();
    this.#failGathering("it is closed");
    for (const { exchange } of this.#inFlight.values()) exchange.failed("it is closed");
    this.#inFlight.clear();
    this.#waitingHits = 0;
    this.#settled();
  }

  /** Where hits gather now, or why they cannot be asked for. */
  #gather(hits: number): Gathering | string {
    if (!this.#pool.hopeful) return this.#pool.reason;
    if (this.#waitingHits > 0 && this.#waitingHits + hits > MAX_WAITING_HITS) {
      return `${this.#waitingHits} hits wait for it already`;
    }
    if (this.#gathering !== undefined) return this.#gathering;
    if (!this.#breaker.tryPass()) return `it failed again and again, last: ${this.#breaker.reason}`;
    return this.#begin();
  }

  #begin(): Gathering {
    const { clock, tally } = this.#options;
    const batch = new McBatch({
      now: () => clock.now(),
      tally,
      onOvershoot: (overshoot) => this.#takeOff(overshoot),
    });
    // Without a connection it waits for one, and is written as soon as that is there.
    queueMicrotask(() => this.#flush());
    return this.#gathering = { batch, startedAt: clock.elapsed(), hits: 0 };
  }

  #takeOff(overshoot: Overshoot): void {
    (this.#gathering ?? this.#begin()).batch.addOvershoot(overshoot);
  }

  #flush(): void {
    const gathering = this.#gathering;
    if (gathering === undefined) return;
    gathering.batch.dropGone();
    if (gathering.batch.empty) {
      this.#gathering = undefined;
      this.#waitingHits -= gathering.hits;
      this.#breaker.released();
      this.#settled();
      return;
    }
    const connection = this.#pool.take();
    if (connection === undefined) return;
    this.#gathering = undefined;
    this.#write(gathering.batch, connection, gathering);
  }

  #write(
    exchange: McExchange,
    connection: McConnection,
    { startedAt, hits }: { startedAt: number; hits: number },
  ): void {
    const writtenAt = this.#options.clock.elapsed();
    this.#inFlight.set(exchange, { exchange, startedAt, writtenAt, hits, connection });
    this.#arm();
    connection.write(exchange);
  }

  #answered(connection: McConnection, exchange: McExchange, replies: readonly string[]): void {
    const inFlight = this.#inFlight.get(exchange);
    // Its time is over: those who asked were told so.
    if (inFlight === undefined) return;
    this.#forget(inFlight);
    const { roundTrip, clock } = this.#options;
    roundTrip?.(clock.elapsed() - inFlight.writtenAt);
    const misfit = exchange.answered(replies);
    if (misfit === undefined) this.#breaker.succeeded();
    else {
      this.#breaker.failed(misfit);
      connection.end(misfit);
    }
    this.#settled();
  }

  #lost(connection: McConnection, reason: string): void {
    const failed = [...this.#inFlight.values()].filter((inFlight) => inFlight.connection === connection);
    // However much was under way on it, that is one failure.
    if (failed.length > 0) this.#breaker.failed(reason);
    for (const inFlight of failed) this.#fail(inFlight, reason);
    this.#settled();
  }

  #fail(inFlight: InFlight, reason: string): void {
    this.#forget(inFlight);
    inFlight.exchange.failed(reason);
  }

  #failGathering(reason: string): void {
    const gathering = this.#gathering;
    if (gathering === undefined) return;
    this.#gathering = undefined;
    this.#waitingHits -= gathering.hits;
    this.#breaker.failed(reason);
    gathering.batch.failed(reason);
    this.#settled();
  }

  #forget({ exchange, hits }: InFlight): void {
    this.#inFlight.delete(exchange);
    this.#waitingHits -= hits;
  }

  /** Something was taken off the list of those who wait. */
  #settled(): void {
    if (this.#inFlight.size > 0) return;
    this.#cancelDeadline?.();
    this.#cancelDeadline = undefined;
    if (this.#gathering === undefined) this.#retired?.resolve();
  }

  /** One timer for everything in flight: it ends in the order in which it began. */
  #arm(): void {
    if (this.#cancelDeadline !== undefined) return;
    const [oldest] = this.#inFlight.values();
    if (oldest === undefined) return;
    // A timer counts whole milliseconds, and leaves out what is beyond them.
    this.#cancelDeadline = this.#options.clock.after(Math.ceil(this.#left(oldest)), () => {
      this.#cancelDeadline = undefined;
      this.#expire();
      this.#arm();
    });
  }

  #left({ startedAt }: InFlight): number {
    const { clock, timeoutMs } = this.#options;
    return Math.max(0, startedAt + timeoutMs - clock.elapsed());
  }

  /** Gives up what has no time left. Its connection takes nothing more, and ends when nobody waits for it. */
  #expire(): void {
    for (const inFlight of [...this.#inFlight.values()]) {
      if (this.#left(inFlight) > 0) break;
      this.#options.tally.timeouts++;
      const reason = `no answer within ${this.#options.timeoutMs} ms`;
      this.#breaker.failed(reason);
      this.#pool.retire(inFlight.connection, reason);
      this.#fail(inFlight, reason);
    }
    const needed = new Set([...this.#inFlight.values()].map(({ connection }) => connection));
    this.#pool.endRetired(needed);
    this.#settled();
  }

  #error(state: string): CacheError {
    return this.#errorOf({ hits: [], counts: [], states: [state] });
  }

  #errorOf({ hits, counts, states }: Pick<Ask, "hits" | "counts" | "states">): CacheError {
    const state = states?.find((text) => text !== undefined) ?? "an answer is missing";
    const message = `Cannot ask memcached-style cache "${this.address}": ${state}`;
    const came = counts.length === 0 ? [] : hits.map((_, position) => counts[position]);
    return new CacheError("mc", message, { counts: came });
  }
}
