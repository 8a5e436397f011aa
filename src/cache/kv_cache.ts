import type { Redis } from "ioredis";
import type { Clock } from "../base/clock.ts";
import type { CounterCache, Hit } from "../ratelimit/counter_cache.ts";
import { CacheError } from "../ratelimit/errors.ts";
import { type Ask, KvBatch, type LateExpiry } from "./kv_batch.ts";
import { writeBatch } from "./kv_batch_command.ts";
import { KvExpiries } from "./kv_expiries.ts";

/** How often keys of windows that are over are forgotten. */
const SWEEP_INTERVAL_MS = 10_000;

/** How the counters are asked. */
export interface KvCacheOptions {
  /** Owned by the cache from now on; it is connected and closed here. */
  readonly client: Redis;
  /** Address for errors; holds no password. */
  readonly address: string;
  /** Number of the database that holds the counters; 0 when absent. */
  readonly database?: number;
  /** Longest wait for the answer to a batch, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Called when the connection is there, and when it is not: with the reason, once an outage. */
  readonly onConnection?: (connected: boolean, reason: string) => void;
}

/** A batch that was written and waits for its answers. */
interface InFlight {
  readonly batch: KvBatch;
  readonly writtenAt: number;
}

/** Counters in a key-value cache that speaks the Redis protocol. What gathers in one turn is one round trip. */
export class KvCache implements CounterCache {
  readonly #options: KvCacheOptions;
  readonly #ready = Promise.withResolvers<void>();
  readonly #expiries = new KvExpiries();
  /** In the order in which they were written. */
  readonly #inFlight = new Set<InFlight>();
  #gathering: KvBatch | undefined;
  #cancelDeadline: (() => void) | undefined;
  #cancelSweep: () => void;
  #lastReason = "";
  /** The connection is there and in the right database. */
  #usable = false;
  #down = false;
  #closed = false;

  constructor(options: KvCacheOptions) {
    this.#options = options;
    const { client } = options;
    client.on("ready", () => this.#select());
    client.on("error", (error: Error) => void (this.#lastReason = error.message));
    client.on("close", () => this.#disconnected());
    client.connect().catch((error: unknown) => void (this.#lastReason = messageOf(error)));
    this.#cancelSweep = this.#scheduleSweep();
  }

  /** Settles at the first connection. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Whether counters can be asked now. */
  get connected(): boolean {
    return this.#usable && this.#options.client.status === "ready";
  }

  add(hits: readonly Hit[]): Promise<number[]> {
    if (!this.connected) {
      const reason = this.#lastReason === "" ? "" : `: ${this.#lastReason}`;
      return Promise.reject(this.#error(`no connection${reason}`));
    }
    return new Promise((resolve, reject) => {
      const ask: Ask = {
        counts: [],
        failure: undefined,
        resolve,
        reject: (state) => reject(this.#error(state)),
      };
      this.#gather().add(ask, hits);
    });
  }

  read(hits: readonly Hit[]): Promise<number[]> {
    return this.add(hits.map((hit) => ({ ...hit, addend: 0 })));
  }

  async remove(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    if (!this.connected) throw this.#error("no connection");
    const timeout = Promise.withResolvers<never>();
    const { client, clock, timeoutMs } = this.#options;
    const cancel = clock.after(
      timeoutMs,
      () => timeout.reject(this.#error(`no answer within ${timeoutMs} ms`)),
    );
    try {
      await Promise.race([client.del(...keys), timeout.promise]);
    } catch (error) {
      throw error instanceof CacheError ? error : this.#error(messageOf(error));
    } finally {
      cancel();
    }
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#failAll("it is closed");
    this.#cancelSweep();
    this.#options.client.disconnect();
    return Promise.resolve();
  }

  /** The batch that goes out at the end of this turn. */
  #gather(): KvBatch {
    if (this.#gathering !== undefined) return this.#gathering;
    queueMicrotask(() => this.#flush());
    return this.#gathering = new KvBatch();
  }

  #flush(): void {
    const batch = this.#gathering;
    this.#gathering = undefined;
    if (batch === undefined || batch.empty) return;
    const inFlight: InFlight = { batch, writtenAt: this.#options.clock.now() };
    this.#inFlight.add(inFlight);
    this.#armDeadline();
    writeBatch(this.#options.client, batch.commands(this.#expiries), {
      answered: (replies) => this.#answered(inFlight, replies),
    });
  }

  #answered(inFlight: InFlight, replies: readonly unknown[]): void {
    if (!this.#inFlight.delete(inFlight)) return;
    if (this.#inFlight.size === 0) this.#disarmDeadline();
    const follow: LateExpiry[] = inFlight.batch.settle(replies, this.#expiries);
    for (const expiry of follow) this.#gather().addExpiry(expiry);
  }

  /** One timer for all batches: they end in the order in which they began. */
  #armDeadline(): void {
    if (this.#cancelDeadline !== undefined) return;
    const [oldest] = this.#inFlight;
    if (oldest === undefined) return;
    const { clock, timeoutMs } = this.#options;
    const left = Math.max(0, oldest.writtenAt + timeoutMs - clock.now());
    this.#cancelDeadline = clock.after(left, () => {
      this.#cancelDeadline = undefined;
      const now = clock.now();
      for (const inFlight of [...this.#inFlight]) {
        if (now - inFlight.writtenAt < timeoutMs) break;
        this.#inFlight.delete(inFlight);
        inFlight.batch.fail(`no answer within ${timeoutMs} ms`);
      }
      this.#armDeadline();
    });
  }

  #disarmDeadline(): void {
    this.#cancelDeadline?.();
    this.#cancelDeadline = undefined;
  }

  #scheduleSweep(): () => void {
    const { clock } = this.#options;
    return clock.after(SWEEP_INTERVAL_MS, () => {
      this.#expiries.sweep(clock.now() / 1000);
      this.#cancelSweep = this.#scheduleSweep();
    });
  }

  /** The client itself would go on in database 0 when the server refuses the right one. */
  #select(): void {
    const { client, database = 0 } = this.#options;
    if (database === 0) return this.#connected();
    client.select(database).then(() => this.#connected(), (error: unknown) => {
      this.#lastReason = `database ${database} was refused: ${messageOf(error)}`;
      client.disconnect(true);
    });
  }

  #connected(): void {
    this.#usable = true;
    this.#down = false;
    this.#lastReason = "";
    // The server may be another one, or have lost what it knew.
    this.#expiries.clear();
    this.#ready.resolve();
    this.#options.onConnection?.(true, "");
  }

  #disconnected(): void {
    this.#usable = false;
    const reason = this.#lastReason === "" ? "the connection was closed" : this.#lastReason;
    this.#failAll(reason);
    if (this.#down || this.#closed) return;
    this.#down = true;
    this.#options.onConnection?.(false, reason);
  }

  /** The client leaves commands in flight unsettled when the connection goes; nobody may wait for them. */
  #failAll(state: string): void {
    const batches = [...this.#inFlight].map(({ batch }) => batch);
    if (this.#gathering !== undefined) batches.push(this.#gathering);
    this.#inFlight.clear();
    this.#gathering = undefined;
    this.#disarmDeadline();
    for (const batch of batches) batch.fail(state);
  }

  #error(state: string): CacheError {
    return new CacheError("kv", `Cannot ask key-value cache "${this.#options.address}": ${state}`);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
