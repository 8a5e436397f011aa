import { errorText } from "../../base/error_text.ts";
import { backoffMs } from "../../base/backoff.ts";
import type { Metrics } from "../../base/metrics.ts";
import { Pool } from "../../net/pool.ts";
import type { MC_NODE_METRICS } from "../metrics.ts";
import { hostPort } from "../../base/host_port.ts";
import type { Caller, CountReceiver } from "../../ratelimit/decision/counter_cache.ts";
import { CacheError } from "../../ratelimit/errors.ts";
import { Batcher } from "../batcher.ts";
import { Breaker } from "../breaker.ts";
import { Ask } from "../hit_batch.ts";
import { RequestTimeouts, type TimedRequest } from "../request_timeouts.ts";
import { McBatch, type McCounter, type McExchange, McRemoval } from "./batch.ts";
import { noAnswer, SETTLED_MS } from "../server_connection.ts";
import type { ConnectionEvents, SharedCacheOptions } from "../shared_cache_options.ts";
import type { TlsFiles } from "../tls_files.ts";
import { type McConnection, type McConnectionOptions, openMcConnection } from "./connection.ts";
import type { McTally } from "./tally.ts";

/** Waits between attempts to connect. */
const RECONNECT = { firstMs: 50, longestMs: 2_000 };
/** Most hits that wait for one node. */
const MAX_WAITING_HITS = 50_000;

/** Options of every node. */
export interface McNodesOptions extends SharedCacheOptions {
  readonly tls?: TlsFiles | undefined;
  /** Most connections that are held; 0 is taken as 1. */
  readonly maxIdleConnections: number;
}

/** Options of one node. */
interface McNodeOptions extends McConnectionOptions, McNodesOptions, ConnectionEvents {
  readonly tally: McTally;
}

interface Request extends TimedRequest {
  readonly exchange: McExchange;
  readonly hits: number;
  readonly connection: McConnection;
}

/** One node of a memcached-style cache: what gathers in one turn is one write on one of its connections. */
export class McNode {
  readonly address: string;
  readonly #options: McNodeOptions;
  readonly #pool: Pool<McConnection>;
  readonly #breaker: Breaker;
  readonly #inFlight: RequestTimeouts<Request>;
  readonly #batcher: Batcher<Ask<McCounter>, McBatch, McConnection>;
  readonly #errorOf = (state: string): CacheError => {
    return new CacheError("mc", `Cannot query memcached-style cache "${this.address}": ${state}`);
  };
  #waitingHits = 0;
  #retired: PromiseWithResolvers<void> | undefined;

  constructor(options: McNodeOptions) {
    const { clock, tally } = options;
    this.#options = options;
    this.address = hostPort(options.address);
    this.#breaker = new Breaker(options);
    this.#inFlight = new RequestTimeouts({ ...options, onTimeout: (requests) => this.#timedOut(requests) });
    this.#batcher = new Batcher<Ask<McCounter>, McBatch, McConnection>({
      windowMs: 0,
      clock,
      createBatch: () =>
        new McBatch({
          now: () => clock.now(),
          tally,
          onOvershoot: (overshoot) => this.#batcher.batch.addOvershoot(overshoot),
        }),
      take: () => this.#pool.take(),
      write: (exchange, connection, startedAt) => {
        this.#write({ exchange, connection, startedAt, hits: exchange.takes });
      },
      dropped: ({ takes }, connection) => {
        this.#breaker.released();
        this.#pool.give(connection);
        this.#release(takes);
      },
    });
    this.#pool = this.#openPool();
  }

  get ready(): Promise<void> {
    return this.#pool.ready.promise;
  }

  get connected(): boolean {
    return this.#pool.connected;
  }

  get metrics(): Metrics<typeof MC_NODE_METRICS> {
    return {
      counters: { breaker_opened: () => this.#breaker.opened },
      gauges: { cx_active: () => this.#pool.size, breaker_open: () => this.#breaker.isOpen ? 1 : 0 },
    };
  }

  /** Takes hits of a counter. */
  take(counter: McCounter, hits: number, caller: Caller | undefined, receiver: CountReceiver): void {
    const ask = new Ask(counter, hits, { caller, receiver, errorOf: this.#errorOf });
    const refusal = this.#refusal();
    if (refusal !== undefined) return ask.fail(refusal);
    this.#waitingHits++;
    this.#batcher.add(ask);
  }

  /** Removes counters; rejects with `CacheError`. */
  async remove(keys: readonly string[]): Promise<void> {
    const connection = this.#pool.take();
    if (connection === undefined) throw this.#errorOf(this.#pool.reason);
    const exchange = new McRemoval(keys);
    this.#write({ exchange, connection, startedAt: this.#options.clock.elapsed(), hits: 0 });
    await exchange.done.catch((error) => {
      throw this.#errorOf(errorText(error));
    });
  }

  /** Waits for the callers that still wait, which the timeout limits, and closes. No more calls may follow. */
  async retire(): Promise<void> {
    this.#retired = Promise.withResolvers();
    this.#release(0);
    await this.#retired.promise;
    this.close();
  }

  close(): void {
    this.#pool.close();
    this.#failGathering("it is closed");
    for (const request of this.#inFlight.takeAll()) this.#fail(request, "it is closed");
  }

  #openPool(): Pool<McConnection> {
    const { maxIdleConnections, tally, random, onConnection } = this.#options;
    return new Pool({
      minSize: 1,
      maxSize: Math.max(1, maxIdleConnections),
      isShared: true,
      settledMs: SETTLED_MS,
      clock: this.#options.clock,
      retryDelayMs: (failures) => backoffMs(failures, random(), RECONNECT),
      open: (lost, signal) => openMcConnection(this.#options, lost, signal),
      events: {
        opened: () => void tally.cx_total++,
        free: () => this.#batcher.flush(),
        lost: (reason) => {
          if (!this.#pool.connected) this.#failGathering(reason);
        },
        connected: (isConnected, reason) => onConnection?.(isConnected, reason),
      },
    });
  }

  #refusal(): string | undefined {
    if (!this.#pool.isHopeful) return this.#pool.reason;
    if (this.#waitingHits >= MAX_WAITING_HITS) {
      return `${this.#waitingHits} hits wait for it already`;
    }
    if (this.#batcher.startedAt !== undefined || this.#breaker.tryPass()) return undefined;
    return this.#breaker.refusal;
  }

  #write(request: Request): void {
    const { exchange, connection } = request;
    const { clock } = this.#options;
    const writtenAt = clock.elapsed();
    this.#inFlight.add(request);
    const { text, replies } = exchange.commands();
    connection.send(text, replies, (answers) => {
      this.#answered(request, answers, clock.elapsed() - writtenAt);
    });
  }

  #answered(request: Request, replies: readonly (string | Error)[], tookMs: number): void {
    if (!this.#inFlight.delete(request)) return;
    const { exchange, connection, hits } = request;
    if (!connection.isUsable) return this.#lost(connection, [request, ...this.#inFlight.takeAll(connection)]);
    this.#options.roundTrip?.(tookMs);
    const misfit = exchange.answered(replies as readonly string[]);
    if (misfit === undefined) this.#breaker.succeeded();
    else {
      this.#breaker.failed(misfit);
      this.#pool.retire(connection, misfit);
    }
    this.#pool.give(connection);
    this.#release(hits);
  }

  /** However many requests they are, it is one failure. */
  #lost({ reason }: McConnection, requests: readonly Request[]): void {
    this.#breaker.failed(reason);
    for (const request of requests) this.#fail(request, reason);
  }

  /** The connections of these requests take nothing more, and end once no request waits on them. */
  #timedOut(requests: readonly Request[]): void {
    const reason = noAnswer(this.#options.timeoutMs);
    for (const request of requests) {
      this.#options.tally.timeouts++;
      this.#breaker.failed(reason);
      this.#pool.retire(request.connection, reason);
      this.#fail(request, reason);
    }
    for (const { connection } of requests) this.#pool.give(connection);
  }

  #failGathering(reason: string): void {
    const batch = this.#batcher.giveUp();
    if (batch === undefined) return;
    this.#breaker.failed(reason);
    batch.fail(reason);
    this.#release(batch.takes);
  }

  #fail({ exchange, hits }: Request, reason: string): void {
    exchange.fail(reason);
    this.#release(hits);
  }

  /** These hits do not wait any more. */
  #release(hits: number): void {
    this.#waitingHits -= hits;
    if (this.#inFlight.size === 0 && this.#batcher.startedAt === undefined) this.#retired?.resolve();
  }
}
