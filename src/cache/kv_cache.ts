import type { ChainableCommander, Redis } from "ioredis";
import type { Clock } from "../base/clock.ts";
import type { CounterCache, Hit } from "../ratelimit/counter_cache.ts";
import { CacheError } from "../ratelimit/errors.ts";
import { MAX_DURATION_SECONDS } from "../ratelimit/window.ts";

/** Gives hits back: the counter stops at 0, and one that does not exist is not made. */
const GIVE_BACK_SCRIPT = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local count = redis.call('DECRBY', KEYS[1], ARGV[1])
if count >= 0 then return count end
redis.call('INCRBY', KEYS[1], -count)
return 0`;

/** How the counters are asked. */
export interface KvCacheOptions {
  /** Owned by the cache from now on; it is connected and closed here. */
  readonly client: Redis;
  /** Address for errors; holds no password. */
  readonly address: string;
  /** Longest wait for the answer to a batch, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Called when the connection is there, and when it is not: with the reason, once an outage. */
  readonly onConnection?: (connected: boolean, reason: string) => void;
}

type Command = (pipeline: ChainableCommander) => void;

/** What one call asks: its commands, and which of the answers are its counts. */
interface Ask {
  readonly commands: readonly Command[];
  readonly counts: readonly number[];
  resolve(counts: number[]): void;
  reject(error: CacheError): void;
}

/** Counters in a key-value cache that speaks the Redis protocol. What gathers in one turn is one round trip. */
export class KvCache implements CounterCache {
  readonly #options: KvCacheOptions;
  readonly #ready = Promise.withResolvers<void>();
  readonly #inFlight = new Set<(error: CacheError) => void>();
  #gathering: Ask[] = [];
  #lastReason = "";
  #down = false;
  #closed = false;

  constructor(options: KvCacheOptions) {
    this.#options = options;
    const { client } = options;
    client.on("ready", () => this.#connected());
    client.on("error", (error: Error) => void (this.#lastReason = error.message));
    client.on("close", () => this.#disconnected());
    client.connect().catch((error: unknown) => void (this.#lastReason = messageOf(error)));
  }

  /** Settles at the first connection. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Whether counters can be asked now. */
  get connected(): boolean {
    return this.#options.client.status === "ready";
  }

  add(hits: readonly Hit[]): Promise<number[]> {
    const commands: Command[] = [];
    const counts: number[] = [];
    for (const hit of hits) {
      counts.push(commands.length);
      addCommands(hit, commands);
    }
    return this.#ask(commands, counts);
  }

  read(hits: readonly Hit[]): Promise<number[]> {
    return this.#ask(hits.map(({ key }) => (pipeline) => pipeline.get(key)), [...hits.keys()]);
  }

  async remove(keys: readonly string[]): Promise<void> {
    if (keys.length > 0) await this.#ask(keys.map((key) => (pipeline) => pipeline.del(key)), []);
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#failAll("it is closed");
    this.#options.client.disconnect();
    return Promise.resolve();
  }

  #ask(commands: readonly Command[], counts: readonly number[]): Promise<number[]> {
    if (!this.connected) {
      const reason = this.#lastReason === "" ? "" : `: ${this.#lastReason}`;
      return Promise.reject(this.#error(`no connection${reason}`));
    }
    return new Promise((resolve, reject) => {
      if (this.#gathering.length === 0) queueMicrotask(() => this.#flush());
      this.#gathering.push({ commands, counts, resolve, reject });
    });
  }

  #flush(): void {
    const asks = this.#gathering;
    this.#gathering = [];
    if (asks.length === 0) return;
    const pipeline = this.#options.client.pipeline();
    for (const { commands } of asks) {
      for (const command of commands) command(pipeline);
    }
    const fail = (error: CacheError) => {
      cancelDeadline();
      this.#inFlight.delete(fail);
      for (const ask of asks) ask.reject(error);
    };
    const { clock, timeoutMs } = this.#options;
    const cancelDeadline = clock.after(
      timeoutMs,
      () => fail(this.#error(`no answer within ${timeoutMs} ms`)),
    );
    this.#inFlight.add(fail);
    pipeline.exec().then((answers) => {
      if (!this.#inFlight.delete(fail)) return;
      cancelDeadline();
      this.#answer(asks, answers ?? []);
    }).catch((error: unknown) => fail(this.#error(messageOf(error))));
  }

  #answer(asks: readonly Ask[], answers: readonly [Error | null, unknown][]): void {
    let first = 0;
    for (const ask of asks) {
      const own = answers.slice(first, first + ask.commands.length);
      first += ask.commands.length;
      try {
        for (const [error] of own) if (error !== null) throw error;
        ask.resolve(ask.counts.map((position) => countOf(own[position]?.[1])));
      } catch (error) {
        ask.reject(this.#error(messageOf(error)));
      }
    }
  }

  #connected(): void {
    this.#down = false;
    this.#lastReason = "";
    this.#ready.resolve();
    this.#options.onConnection?.(true, "");
  }

  #disconnected(): void {
    const reason = this.#lastReason === "" ? "the connection was closed" : this.#lastReason;
    this.#failAll(reason);
    if (this.#down || this.#closed) return;
    this.#down = true;
    this.#options.onConnection?.(false, reason);
  }

  /** The client leaves commands in flight unsettled when the connection goes; nobody may wait for them. */
  #failAll(reason: string): void {
    const error = this.#error(reason);
    for (const fail of [...this.#inFlight]) fail(error);
    const gathering = this.#gathering;
    this.#gathering = [];
    for (const ask of gathering) ask.reject(error);
  }

  #error(state: string): CacheError {
    return new CacheError("kv", `Cannot ask key-value cache "${this.#options.address}": ${state}`);
  }
}

function addCommands(hit: Hit, commands: Command[]): void {
  const { key, addend } = hit;
  if (addend === 0) {
    commands.push((pipeline) => pipeline.get(key));
  } else if (addend < 0) {
    commands.push((pipeline) => pipeline.eval(GIVE_BACK_SCRIPT, 1, key, String(-addend)));
  } else {
    const seconds = Math.min(hit.expiresInSeconds, MAX_DURATION_SECONDS);
    commands.push((pipeline) => pipeline.incrby(key, addend), (pipeline) => pipeline.expire(key, seconds));
  }
}

/** An answer as a count: counters that do not exist are 0. */
function countOf(answer: unknown): number {
  if (answer === null) return 0;
  const count = typeof answer === "string" ? Number(answer) : answer;
  if (typeof count === "number" && !Number.isNaN(count)) return count;
  throw new TypeError(`Cannot read counter: ${JSON.stringify(answer)} is not a number`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
