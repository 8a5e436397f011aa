import type { Metrics } from "../../base/metrics.ts";
import { Pool } from "../../net/pool.ts";
import type { KV_NODE_METRICS } from "../metrics.ts";
import { withTimeout } from "../../base/wait.ts";
import type { Caller, CountReceiver } from "../../ratelimit/decision/counter_cache.ts";
import { Batcher } from "../batcher.ts";
import { Breaker } from "../breaker.ts";
import { Ask } from "../hit_batch.ts";
import { RequestTimeouts, type TimedRequest } from "../request_timeouts.ts";
import type { ConnectionEvents, SharedCacheOptions } from "../shared_cache_options.ts";
import { KvBatch } from "./batch.ts";
import { noAnswer, SETTLED_MS, shortened } from "../server_connection.ts";
import type { KvConnection } from "./connection.ts";
import { ConnectionWait, type ConnectionWaitOptions } from "./connection_wait.ts";
import type { KvServer } from "./connections.ts";
import type { KvAsk, KvCounter } from "./counters.ts";
import { KvExpiries, KvLateExpiries, type LateExpiry } from "./expiries.ts";

/** Interval in which keys of windows that are over are forgotten, and refused expiries are sent again. */
const SWEEP_INTERVAL_MS = 1_000;
/** Most late expiries that go with one batch. */
const LATE_PER_BATCH = 1_000;
/** Errors of a server that cannot count now, also in a script; its name may resolve to another one by now. */
const WRONG_SERVER = /^(?:READONLY|LOADING|MASTERDOWN)\b|: -READONLY /;

/** Options of a node. */
export interface KvNodeOptions extends SharedCacheOptions, ConnectionEvents, ConnectionWaitOptions, KvServer {
  readonly poolSize: number;
  /** For how long hits gather before they are written, in milliseconds. */
  readonly windowMs: number;
  /** The error for a reason why there is no count; one with that message by default. */
  readonly errorOf?: (state: string) => Error;
  /** Gives an expiry to the node that has its key by now; returns whether there is one. */
  readonly placeExpiry?: ((expiry: LateExpiry) => boolean) | undefined;
}

/** Who takes hits, and how. */
export interface KvTakeOptions {
  readonly caller: Caller | undefined;
  readonly receiver: CountReceiver;
  /** Send ASKING before each command: the node is about to take the slot over. */
  readonly asking?: boolean;
}

interface Request extends TimedRequest {
  readonly batch: KvBatch;
  readonly connection: KvConnection;
}

/** One node of a key-value cache: what gathers in one turn is one round trip on one of its connections. */
export class KvNode {
  readonly #options: KvNodeOptions;
  readonly #pool: Pool<KvConnection>;
  readonly #wait: ConnectionWait;
  readonly #breaker: Breaker;
  readonly #expiries = new KvExpiries();
  readonly #late = new KvLateExpiries();
  readonly #inFlight: RequestTimeouts<Request>;
  readonly #plain: Batcher<KvAsk, KvBatch, KvConnection>;
  readonly #asking: Batcher<KvAsk, KvBatch, KvConnection>;
  readonly #errorOf: (state: string) => Error;
  #cancelSweep: () => void;
  readonly #tally = { timeouts: 0, exhausted: 0 };

  constructor(options: KvNodeOptions) {
    this.#options = options;
    this.#errorOf = options.errorOf ?? ((state) => new Error(state));
    this.#breaker = new Breaker(options);
    this.#plain = this.#batcher(false);
    this.#asking = this.#batcher(true);
    this.#inFlight = new RequestTimeouts({ ...options, onTimeout: (requests) => this.#timedOut(requests) });
    this.#pool = this.#openPool();
    this.#wait = new ConnectionWait(options, {
      create: () => {
        // At most as many again as the pool holds, so that a server that hangs is not flooded.
        if (this.#pool.fullSize < 2 * options.poolSize) this.#pool.open();
      },
      exhausted: (reason, waitedMs) => this.#exhausted(reason, waitedMs),
    });
    this.#cancelSweep = this.#scheduleSweep();
  }

  /** Settles at the first connection. */
  get ready(): Promise<void> {
    return this.#pool.ready.promise;
  }

  get connected(): boolean {
    return this.#pool.connected;
  }

  get metrics(): Metrics<typeof KV_NODE_METRICS> {
    return {
      counters: {
        cx_total: () => this.#pool.tally.opened,
        cx_local_close: () => this.#pool.tally.closed,
        exhausted: () => this.#tally.exhausted,
        timeouts: () => this.#tally.timeouts,
        breaker_opened: () => this.#breaker.opened,
      },
      gauges: {
        cx_active: () => this.#pool.size,
        breaker_open: () => this.#breaker.isOpen ? 1 : 0,
        batches_in_flight: () => this.#inFlight.size,
      },
    };
  }

  /** Takes hits of a counter. */
  take(counter: KvCounter, hits: number, { caller, receiver, asking }: KvTakeOptions): void {
    const batcher = asking === true ? this.#asking : this.#plain;
    const ask = new Ask(counter, hits, { caller, receiver, errorOf: this.#errorOf }) as KvAsk;
    const refusal = batcher.startedAt === undefined ? this.#refusal() : undefined;
    if (refusal === undefined) batcher.add(ask);
    else ask.fail(refusal);
  }

  /** Sends one command, such as `["DEL", "key"]`, and returns the reply; a timeout ends its connection. */
  async command(...command: Parameters<KvConnection["command"]>): Promise<unknown> {
    const { clock, timeoutMs } = this.#options;
    const connection = this.#pool.any();
    if (connection === undefined) throw new Error(this.#pool.reason);
    return await withTimeout(connection.command(...command), timeoutMs, clock, () => {
      const reason = noAnswer(timeoutMs);
      this.#pool.retire(connection, reason);
      return new Error(reason);
    });
  }

  /** Takes expiries of keys that this node has now. */
  owe(late: readonly LateExpiry[]): void {
    this.#late.owe(late);
  }

  close(): Promise<void> {
    this.#failGathering("it is closed");
    for (const { batch } of this.#inFlight.takeAll()) this.#fail(batch, "it is closed");
    for (const late of this.#late.takeAll()) this.#options.placeExpiry?.(late);
    this.#cancelSweep();
    this.#wait.end();
    this.#pool.close();
    return Promise.resolve();
  }

  #openPool(): Pool<KvConnection> {
    const { poolSize, onConnection } = this.#options;
    return new Pool({
      ...this.#options,
      minSize: poolSize,
      maxSize: poolSize,
      isShared: false,
      settledMs: SETTLED_MS,
      events: {
        opened: () => {
          this.#expiries.clear();
          this.#sendOwed();
        },
        free: () => this.#flush(),
        lost: (reason) => {
          if (this.#pool.connected) return;
          this.#wait.end();
          this.#breaker.released();
          this.#failGathering(reason);
        },
        connected: (isConnected, reason) => onConnection?.(isConnected, reason),
      },
    });
  }

  #batcher(asking: boolean): Batcher<KvAsk, KvBatch, KvConnection> {
    const { windowMs, clock } = this.#options;
    return new Batcher({
      windowMs,
      clock,
      inFlight: () => this.#inFlight.size,
      createBatch: () => new KvBatch({ asking, late: asking ? [] : this.#late.takeOwed(LATE_PER_BATCH) }),
      take: (startedAt, waitingSince) => {
        const connection = this.#pool.take();
        if (connection !== undefined) this.#wait.end();
        else if (!this.#wait.isRunning) {
          const waitedMs = waitingSince === undefined ? 0 : clock.elapsed() - waitingSince;
          this.#wait.begin(this.#inFlight.leftMs(startedAt), waitedMs);
        }
        return connection;
      },
      write: (batch, connection, startedAt) => this.#write({ batch, connection, startedAt }),
      dropped: (_, connection) => this.#release(connection),
    });
  }

  /** Why no batch can begin; where one can, the breaker has let it pass. */
  #refusal(): string | undefined {
    if (!this.#pool.connected) return this.#pool.reason;
    return this.#breaker.tryPass() ? undefined : this.#breaker.refusal;
  }

  /** The older batch goes first. */
  #flush(): void {
    const isAskingFirst = (this.#asking.startedAt ?? Infinity) < (this.#plain.startedAt ?? Infinity);
    if (isAskingFirst) this.#asking.flush();
    this.#plain.flush();
    if (!isAskingFirst) this.#asking.flush();
  }

  #write(request: Request): void {
    const { batch, connection } = request;
    const commands = batch.commands(this.#expiries);
    // Its late expiries were set by other batches meanwhile.
    if (commands.replies === 0) return this.#release(connection);
    this.#inFlight.add(request);
    const { clock } = this.#options;
    const writtenAt = clock.elapsed();
    connection.write(commands, (replies) => this.#answered(request, replies, clock.elapsed() - writtenAt));
  }

  /** Gives back a connection on which nothing was written. */
  #release(connection: KvConnection): void {
    this.#breaker.released();
    this.#pool.give(connection);
  }

  #answered(request: Request, replies: readonly unknown[], tookMs: number): void {
    if (!this.#inFlight.delete(request)) return;
    const { batch, connection, startedAt } = request;
    const { again, follow, retry, confirm } = batch.answered(replies, this.#expiries);
    this.#late.confirm(confirm);
    if (!connection.isUsable) {
      this.#late.owe([...follow, ...retry]);
      again?.fail(connection.reason);
      return this.#breaker.failed(connection.reason);
    }
    this.#options.roundTrip?.(tookMs);
    this.#late.refuse(retry);
    const wrong = replies.find((reply) => reply instanceof Error && WRONG_SERVER.test(reply.message));
    if (wrong instanceof Error) {
      const reason = shortened(wrong.message);
      this.#breaker.failed(reason);
      this.#late.owe(follow);
      again?.fail(reason);
      this.#pool.retireAll(connection, reason);
      return this.#pool.give(connection);
    }
    this.#breaker.succeeded();
    if (follow.length > 0) this.#plain.batch.late.push(...follow);
    this.#sendOwed();
    if (again === undefined) this.#pool.give(connection);
    else this.#write({ batch: again, connection, startedAt });
  }

  /** Fails a batch that was written: its counters may be new and without an expiry. */
  #fail(batch: KvBatch, reason: string): void {
    this.#late.owe(batch.lose(this.#expiries));
    batch.fail(reason);
  }

  #failGathering(reason: string, which?: "due", batchers = [this.#plain, this.#asking]): void {
    for (const batcher of batchers) {
      const batch = batcher.giveUp(which);
      this.#late.owe(batch?.late ?? []);
      batch?.fail(reason);
    }
  }

  /** Fails the calls that have waited this long; the wait of the others goes on. */
  #exhausted(reason: string, waitedMs: number): void {
    this.#tally.exhausted++;
    // With batches in flight the server has yet to show whether it works.
    if (this.#inFlight.size > 0) this.#breaker.released();
    else this.#breaker.failed(reason);
    for (const batcher of [this.#plain, this.#asking]) {
      if (!batcher.failWaiting(waitedMs, reason)) this.#failGathering(reason, "due", [batcher]);
    }
    this.#flush();
  }

  /** A late answer could be taken for that of another batch, so the connections end. */
  #timedOut(requests: readonly Request[]): void {
    const reason = noAnswer(this.#options.timeoutMs);
    for (const { batch, connection } of requests) {
      this.#tally.timeouts++;
      this.#breaker.failed(reason);
      this.#fail(batch, reason);
      this.#pool.retire(connection, reason);
      this.#pool.give(connection);
    }
  }

  #sendOwed(): void {
    if (this.#late.isOwed) void this.#plain.batch;
  }

  #scheduleSweep(): () => void {
    const { clock, placeExpiry } = this.#options;
    return clock.after(SWEEP_INTERVAL_MS, () => {
      this.#expiries.sweep(clock.now() / 1000);
      const { connected } = this.#pool;
      this.#late.owe(this.#late.sweep(connected).filter((late) => placeExpiry?.(late) !== true));
      if (connected) this.#sendOwed();
      this.#cancelSweep = this.#scheduleSweep();
    });
  }
}
