import { backoffMs, type BackoffTimes } from "../../../base/backoff.ts";
import type { Clock } from "../../../base/clock.ts";
import { errorText } from "../../../base/error_text.ts";
import type { PostgresAddress } from "../../../base/postgres_address.ts";
import type { Credential } from "../../../net/credential.ts";
import { Pool } from "../../../net/pool.ts";
import { settledWithin } from "../../../base/wait.ts";
import { StoreError } from "../store.ts";
import { PoolTimeoutError } from "./error.ts";
import { isLoginRefused } from "./login.ts";
import { PostgresConnection, type PostgresSessionOptions } from "./connection.ts";

/** For a connection pool. */
export interface PostgresPoolOptions extends PostgresSessionOptions {
  readonly login: Credential<PostgresAddress>;
  readonly clock: Clock;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** Most connections. */
  readonly size: number;
  /** Most operations that wait for a connection, and for how long. */
  readonly maxWaiting: number;
  readonly waitMs: number;
  /** Called each time that the database is connected after it was not. */
  readonly onConnected?: (() => void) | undefined;
}

/** The numbers of connections and of operations that wait for one. */
interface PostgresPoolMetrics {
  readonly open: number;
  readonly idle: number;
  readonly waiting: number;
}

interface Waiter {
  resolve(connection: PostgresConnection): void;
  reject(error: StoreError): void;
}

const BACKOFF: BackoffTimes = { firstMs: 100, longestMs: 1_000 };
/** Longest time of operations in flight when the pool is closed. */
const CLOSE_MS = 5_000;

/**
 * Connections to the database, opened as needed. While the database is unavailable requests fail immediately, and the
 * pool reconnects with backoff, to the first of several hosts that accepts.
 */
export class PostgresPool {
  readonly #options: PostgresPoolOptions;
  readonly #pool: Pool<PostgresConnection>;
  readonly #ending = new AbortController();
  readonly #open = new Set<PostgresConnection>();
  readonly #waiting = new Set<Waiter>();
  readonly #urgent = new Set<Waiter>();
  readonly #drained = Promise.withResolvers<void>();
  #host = 0;
  #failure: string | undefined;
  #isConnected = false;

  constructor(options: PostgresPoolOptions) {
    const { login, clock, random, size } = options;
    this.#options = options;
    this.#pool = new Pool({
      minSize: 0,
      maxSize: size,
      isShared: false,
      settledMs: 0,
      clock,
      retryDelayMs: (failures) => backoffMs(failures, random(), BACKOFF),
      retryOn: (retry, signal) => login.onChange(retry, signal),
      waiting: () => this.#waiting.size,
      open: (lost, signal) => this.#openConnection(lost, signal),
      events: {
        opened: () => this.#opened(),
        free: () => this.#serve(),
        lost: (reason, connection) => this.#lost(reason, connection),
      },
    });
  }

  /** The reason of the last connection attempt, if it failed and there is no connection. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** The metrics at the moment. */
  get metrics(): PostgresPoolMetrics {
    return { open: this.#open.size, idle: this.#pool.free, waiting: this.#waiting.size };
  }

  /** Lends a connection to the work; throws "busy" after the timeout. Urgent work takes precedence over other work. */
  async use<T>(
    work: (connection: PostgresConnection) => Promise<T>,
    { isUrgent = false }: { readonly isUrgent?: boolean | undefined } = {},
  ): Promise<T> {
    const connection = this.#take() ?? await this.#wait(isUrgent);
    try {
      return await work(connection);
    } catch (error) {
      // All connections are to the same server.
      const isUseless = connection.isSilent || error instanceof StoreError && error.code === "read_only";
      if (isUseless) {
        this.#isConnected = false;
        this.#pool.retireAll(connection, errorText(error));
      }
      throw error;
    } finally {
      // No operation may get a connection in the transaction of another.
      if (!connection.isBroken && connection.inTransaction) this.#pool.retire(connection, "in a transaction");
      this.#pool.give(connection);
    }
  }

  /** Rejects the waiting, lets work in flight end, with a timeout, and closes all connections. */
  async close(): Promise<void> {
    this.#ending.abort(new StoreError("closed", "Cannot use the store: it is closed"));
    for (const waiter of [...this.#waiting]) waiter.reject(this.#ending.signal.reason);
    const { clock } = this.#options;
    const closed = [...this.#open].map((connection) => connection.closed);
    this.#pool.close({ keepUsed: true });
    if (this.#open.size > 0) await settledWithin(this.#drained.promise, CLOSE_MS, clock);
    for (const connection of [...this.#open]) connection.destroy();
    await settledWithin(Promise.all(closed), CLOSE_MS, clock);
  }

  #take(): PostgresConnection | undefined {
    return this.#ending.signal.aborted ? undefined : this.#pool.take();
  }

  #wait(isUrgent: boolean): Promise<PostgresConnection> {
    const { signal } = this.#ending;
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#failure !== undefined && !this.#pool.connected) return Promise.reject(busy(this.#failure));
    const { clock, waitMs, maxWaiting } = this.#options;
    if (this.#waiting.size >= maxWaiting && !isUrgent) {
      return Promise.reject(busy(`${this.#waiting.size} operations wait for a connection`));
    }
    const { promise, resolve, reject } = Promise.withResolvers<PostgresConnection>();
    const timeout = () => {
      waiter.reject(
        new PoolTimeoutError("busy", `Cannot use the store: no connection was free within ${waitMs} ms`),
      );
    };
    const cancel = clock.after(waitMs, timeout);
    const settle = <V>(run: (value: V) => void) => (value: V) => {
      cancel();
      this.#waiting.delete(waiter);
      this.#urgent.delete(waiter);
      run(value);
    };
    const waiter: Waiter = { resolve: settle(resolve), reject: settle(reject) };
    this.#waiting.add(waiter);
    if (isUrgent) this.#urgent.add(waiter);
    this.#pool.grow();
    return promise;
  }

  #serve(): void {
    const [waiter] = this.#urgent.size > 0 ? this.#urgent : this.#waiting;
    const connection = waiter === undefined ? undefined : this.#pool.take();
    if (connection !== undefined) waiter?.resolve(connection);
  }

  #opened(): void {
    this.#failure = undefined;
    if (this.#isConnected) return;
    this.#isConnected = true;
    this.#options.onConnected?.();
  }

  #lost(reason: string, connection: PostgresConnection | undefined): void {
    if (!this.#pool.connected) this.#isConnected = false;
    // With another connection, no attempt follows until somebody asks: who asks must not be refused for this one.
    if (connection !== undefined || this.#pool.connected) return;
    this.#failure = reason;
    for (const waiter of [...this.#waiting]) waiter.reject(busy(reason));
  }

  /** Connects to the first host that accepts, beginning with the last one that did. */
  async #openConnection(lost: (reason: string) => void, signal: AbortSignal): Promise<PostgresConnection> {
    const { login, ...options } = this.#options;
    const { hosts } = login.current.fields;
    const failures: unknown[] = [];
    for (const [tried] of hosts.entries()) {
      const index = (this.#host + tried) % hosts.length;
      const host = hosts[index];
      if (host === undefined) continue;
      try {
        const open = (address: PostgresAddress) =>
          PostgresConnection.open(address, host, { ...options, signal });
        const connection = await login.logIn(open, isLoginRefused);
        this.#host = index;
        this.#follow(connection, lost);
        return connection;
      } catch (error) {
        failures.push(error);
      }
    }
    throw busy(failures.map(errorText).join("; "));
  }

  #follow(connection: PostgresConnection, lost: (reason: string) => void): void {
    this.#open.add(connection);
    connection.onBroken = () => {
      this.#open.delete(connection);
      if (this.#open.size === 0 && this.#ending.signal.aborted) this.#drained.resolve();
      lost("the connection is broken");
    };
  }
}

function busy(state: string): StoreError {
  return new StoreError("busy", state.startsWith("Cannot") ? state : `Cannot use the store: ${state}`);
}

/** The number of comparisons of sessions: other clients of the pooler change the order. */
const ROUNDS = 3;

/**
 * Throws when a pooler moves a connection from one session to another between transactions. The settings and prepared
 * statements of the store belong to a session, so that would work alone and fail under load.
 */
export async function refuseTransactionPooler(
  pool: PostgresPool,
  options: PostgresPoolOptions,
  shownAddress: string,
): Promise<void> {
  // A pooler announces its own process; without one there is nothing more to check.
  const isDirect = await pool.use(async (connection) => {
    return await connection.process() === connection.announcedProcess;
  });
  if (isDirect || !await movesSessions({ ...options, size: 2, onConnected: undefined })) return;
  throw new StoreError(
    "failed",
    `Cannot use the store "${shownAddress}": a pooler runs its transactions in different sessions; ` +
      "set the pooler to session mode, or connect without it",
  );
}

/** Looks for a connection whose session changes, or is also that of another connection. */
async function movesSessions(options: PostgresPoolOptions): Promise<boolean> {
  const pool = new PostgresPool({ ...options, waitMs: options.connectTimeoutMs });
  try {
    return await pool.use((one) =>
      pool.use(async (other) => {
        const processes = new Map<PostgresConnection, number>();
        // A pooler may pick the most or the least recently used session.
        for (const connection of Array.from({ length: ROUNDS }, () => [one, other]).flat()) {
          const known = processes.get(connection) ?? await connection.process();
          if (await connection.process() !== known) return true;
          processes.set(connection, known);
        }
        return processes.get(one) === processes.get(other);
      })
    );
  } catch (error) {
    // Where a second connection gets no session, the first one keeps its own.
    if (error instanceof StoreError && error.code === "busy") return false;
    throw error;
  } finally {
    await pool.close();
  }
}
