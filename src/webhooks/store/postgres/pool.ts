import { backoffMs, type BackoffTimes } from "../../../base/backoff.ts";
import type { Clock } from "../../../base/clock.ts";
import { errorText } from "../../../base/error_text.ts";
import type { PostgresAddress } from "../../../base/postgres_address.ts";
import { settledWithin } from "../../../base/wait.ts";
import { StoreError } from "../store.ts";
import { PoolTimeoutError } from "./error.ts";
import { PostgresConnection, type PostgresConnectionOptions } from "./connection.ts";

/** For a connection pool. */
export interface PostgresPoolOptions extends Omit<PostgresConnectionOptions, "signal"> {
  readonly address: PostgresAddress;
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
export interface PostgresPoolMetrics {
  readonly open: number;
  readonly idle: number;
  readonly waiting: number;
}

interface Waiter {
  resolve(connection: PostgresConnection): void;
  reject(error: StoreError): void;
}

const BACKOFF: BackoffTimes = { firstMs: 100, longestMs: 1_000 };
/** How long operations in flight may take when the pool is closed. */
const CLOSE_MS = 5_000;

/**
 * Connections to the database, opened as needed. While the database is unavailable requests fail immediately, and the
 * pool reconnects with backoff, to the first of several hosts that accepts.
 */
export class PostgresPool {
  readonly #options: PostgresPoolOptions;
  readonly #ending = new AbortController();
  readonly #open = new Set<PostgresConnection>();
  /** The most recently used is the last. */
  readonly #idle: PostgresConnection[] = [];
  readonly #waiting = new Set<Waiter>();
  readonly #urgent = new Set<Waiter>();
  readonly #connecting = new Set<Promise<void>>();
  /** Connections to a server that is silent, or became read-only; they are closed instead of reused. */
  #outdated = new WeakSet<PostgresConnection>();
  #host = 0;
  #failures = 0;
  #failure: string | undefined;
  #isConnected = false;
  #cancelRetry: (() => void) | undefined;
  #drained: (() => void) | undefined;

  constructor(options: PostgresPoolOptions) {
    this.#options = options;
  }

  /** Why the last connection attempt failed, if it did. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** The metrics at the moment. */
  get metrics(): PostgresPoolMetrics {
    return { open: this.#open.size, idle: this.#idle.length, waiting: this.#waiting.size };
  }

  /** Lends a connection to the work; throws "busy" after the timeout. Urgent work takes precedence over other work. */
  async use<T>(
    work: (connection: PostgresConnection) => Promise<T>,
    { isUrgent = false }: { readonly isUrgent?: boolean | undefined } = {},
  ): Promise<T> {
    const connection = this.#idle.pop() ?? await this.#wait(isUrgent);
    try {
      return await work(connection);
    } catch (error) {
      // All connections are to the same server; outdated ones prove nothing new.
      const isUseless = connection.isSilent || error instanceof StoreError && error.code === "read_only";
      if (isUseless && !this.#outdated.has(connection)) this.#outdate();
      throw error;
    } finally {
      this.#giveBack(connection);
    }
  }

  /** Rejects the waiting, lets work in flight end, with a timeout, and closes all connections. */
  async close(): Promise<void> {
    this.#cancelRetry?.();
    this.#ending.abort(new StoreError("closed", "Cannot use the store: it is closed"));
    for (const waiter of [...this.#waiting]) waiter.reject(this.#ending.signal.reason);
    const idle = this.#idle.splice(0);
    await Promise.all([...idle.map((connection) => this.#discard(connection)), ...this.#connecting]);
    if (this.#open.size > 0) {
      const drained = new Promise<void>((resolve) => this.#drained = resolve);
      await settledWithin(drained, CLOSE_MS, this.#options.clock);
    }
    for (const connection of [...this.#open]) connection.destroy();
  }

  #wait(isUrgent: boolean): Promise<PostgresConnection> {
    const { signal } = this.#ending;
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#failure !== undefined && this.#open.size === 0) return Promise.reject(busy(this.#failure));
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
    this.#connectWhereNeeded();
    return promise;
  }

  #giveBack(connection: PostgresConnection): void {
    if (connection.isBroken) return;
    const { aborted } = this.#ending.signal;
    // No operation may get a connection in the transaction of another.
    if (aborted || this.#outdated.has(connection) || connection.inTransaction) void this.#discard(connection);
    else this.#hand(connection);
  }

  #hand(connection: PostgresConnection): void {
    const [waiter] = this.#urgent.size > 0 ? this.#urgent : this.#waiting;
    if (waiter === undefined) this.#idle.push(connection);
    else waiter.resolve(connection);
  }

  async #discard(connection: PostgresConnection): Promise<void> {
    await connection.close();
    this.#forget(connection);
  }

  #forget(connection: PostgresConnection): void {
    this.#open.delete(connection);
    const index = this.#idle.indexOf(connection);
    if (index !== -1) this.#idle.splice(index, 1);
    if (this.#open.size === 0) {
      this.#isConnected = false;
      this.#drained?.();
    }
    this.#connectWhereNeeded();
  }

  #outdate(): void {
    for (const connection of this.#open) this.#outdated.add(connection);
    this.#isConnected = false;
    for (const connection of this.#idle.splice(0)) void this.#discard(connection);
  }

  /** Opens a connection for each waiter; without any connection, a single attempt is enough. */
  #connectWhereNeeded(): void {
    if (this.#ending.signal.aborted || this.#cancelRetry !== undefined) return;
    const { size } = this.#options;
    const most = this.#open.size === 0 ? 1 : Math.min(this.#waiting.size, size - this.#open.size);
    while (this.#connecting.size < most && this.#waiting.size > 0) this.#connect();
  }

  #connect(): void {
    const connecting = this.#openConnection().then(
      (connection) => this.#take(connection),
      (error) => this.#fail(error),
    ).finally(() => {
      this.#connecting.delete(connecting);
      this.#connectWhereNeeded();
    });
    this.#connecting.add(connecting);
  }

  /** Connects to the first host that accepts, beginning with the last one that did. */
  async #openConnection(): Promise<PostgresConnection> {
    const { address, ...options } = this.#options;
    const { hosts } = address.fields;
    const failures: unknown[] = [];
    for (const [tried] of hosts.entries()) {
      const index = (this.#host + tried) % hosts.length;
      const host = hosts[index];
      if (host === undefined) continue;
      try {
        const { signal } = this.#ending;
        const connection = await PostgresConnection.open(address, host, { ...options, signal });
        this.#host = index;
        return connection;
      } catch (error) {
        failures.push(error);
      }
    }
    throw busy(failures.map(errorText).join("; "));
  }

  #take(connection: PostgresConnection): void {
    this.#open.add(connection);
    connection.onBroken = () => this.#forget(connection);
    if (connection.isBroken) return this.#forget(connection);
    this.#failures = 0;
    this.#failure = undefined;
    if (this.#ending.signal.aborted) return void this.#discard(connection);
    this.#hand(connection);
    if (this.#isConnected) return;
    this.#isConnected = true;
    this.#options.onConnected?.();
  }

  #fail(error: unknown): void {
    if (this.#ending.signal.aborted) return;
    this.#failure = errorText(error);
    if (this.#open.size === 0) {
      for (const waiter of [...this.#waiting]) waiter.reject(busy(this.#failure));
    }
    if (this.#cancelRetry !== undefined) return;
    const { clock, random } = this.#options;
    this.#cancelRetry = clock.after(backoffMs(++this.#failures, random(), BACKOFF), () => {
      this.#cancelRetry = undefined;
      if (this.#open.size === 0) return this.#connect();
      // Only additional connections failed.
      this.#failure = undefined;
      this.#connectWhereNeeded();
    });
  }
}

function busy(state: string): StoreError {
  return new StoreError("busy", state.startsWith("Cannot") ? state : `Cannot use the store: ${state}`);
}

/** How often the sessions are compared: other clients of the pooler change the order. */
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
