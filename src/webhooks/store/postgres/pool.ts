import { backoffMs, type BackoffTimes } from "../../../base/backoff.ts";
import type { Clock } from "../../../base/clock.ts";
import { errorText } from "../../../base/error_text.ts";
import { settledWithin } from "../../../base/wait.ts";
import type { PostgresAddress } from "../../../base/postgres_address.ts";
import { PostgresConnection, type PostgresConnectionOptions } from "./connection.ts";
import { StoreError } from "../store.ts";

/** For how connections are shared. */
export interface PostgresPoolOptions extends Omit<PostgresConnectionOptions, "signal"> {
  readonly address: PostgresAddress;
  readonly clock: Clock;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** How many connections there are at most. */
  readonly size: number;
  /** How many may wait for one. */
  readonly maxWaiting: number;
  /** How long one waits for a connection at most. */
  readonly waitMs: number;
  /** Told each time that the database is reached after it was not. */
  readonly onConnected?: (() => void) | undefined;
}

/** How the connections are. */
export interface PostgresPoolFigures {
  readonly open: number;
  readonly idle: number;
  readonly waiting: number;
}

interface Waiter {
  resolve(connection: PostgresConnection): void;
  reject(error: StoreError): void;
}

const BACKOFF: BackoffTimes = { firstMs: 100, longestMs: 1_000 };
/** How long work under way is waited for at the end. */
const CLOSE_MS = 5_000;

/**
 * Connections to the database, as many as are needed and allowed. While it is away nobody waits: who asks is refused at
 * once, and it is looked for again and again. Of several hosts the first is taken that will do.
 */
export class PostgresPool {
  readonly #options: PostgresPoolOptions;
  readonly #ending = new AbortController();
  readonly #open = new Set<PostgresConnection>();
  /** The one that rested least is the last. */
  readonly #idle: PostgresConnection[] = [];
  readonly #waiting = new Set<Waiter>();
  /** Those of them that come before all others. */
  readonly #urgent = new Set<Waiter>();
  readonly #connecting = new Set<Promise<void>>();
  /** Connections to a server that has been found to be silent, or to take no writes any more; they are used no more. */
  #outdated = new WeakSet<PostgresConnection>();
  #host = 0;
  #failures = 0;
  #failure: string | undefined;
  #isReached = false;
  #cancelRetry: (() => void) | undefined;
  #drained: (() => void) | undefined;

  constructor(options: PostgresPoolOptions) {
    this.#options = options;
  }

  /** Why the database cannot be reached, if it could not be the last time. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** How the connections are at the moment. */
  get figures(): PostgresPoolFigures {
    return { open: this.#open.size, idle: this.#idle.length, waiting: this.#waiting.size };
  }

  /**
   * Lends a connection for as long as the work takes; throws "busy" when there is none in time. What is urgent waits for
   * no more than what is urgent as well.
   */
  async use<T>(
    work: (connection: PostgresConnection) => Promise<T>,
    { isUrgent = false }: { readonly isUrgent?: boolean | undefined } = {},
  ): Promise<T> {
    const connection = this.#idle.pop() ?? await this.#wait(isUrgent);
    try {
      return await work(connection);
    } catch (error) {
      // What holds for one holds for all, as they are to the same server; of those it was known of nothing follows.
      const isUseless = connection.isSilent || error instanceof StoreError && error.code === "read_only";
      if (isUseless && !this.#outdated.has(connection)) this.#outdate();
      throw error;
    } finally {
      this.#giveBack(connection);
    }
  }

  /** Refuses who waits, lets work under way end, within a limit, and then ends all connections. */
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
    if (this.#waiting.size >= this.#options.maxWaiting && !isUrgent) {
      return Promise.reject(busy(`${this.#waiting.size} operations wait for a connection`));
    }
    const { promise, resolve, reject } = Promise.withResolvers<PostgresConnection>();
    const { clock, waitMs } = this.#options;
    const cancel = clock.after(
      waitMs,
      () => waiter.reject(busy(`no connection was free within ${waitMs} ms`)),
    );
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
    // Nobody may find himself in a transaction of somebody else.
    if (this.#ending.signal.aborted || this.#outdated.has(connection) || connection.inTransaction) {
      void this.#discard(connection);
    } else this.#hand(connection);
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
    if (this.#open.size > 0) return void this.#connectWhereNeeded();
    this.#isReached = false;
    this.#drained?.();
    this.#connectWhereNeeded();
  }

  /** Gives up all connections: a server that takes no writes has stepped down, one that is silent may be gone. */
  #outdate(): void {
    for (const connection of this.#open) this.#outdated.add(connection);
    this.#isReached = false;
    for (const connection of this.#idle.splice(0)) void this.#discard(connection);
  }

  /** Comes in as often as somebody waits; as long as there is no connection, one attempt says enough. */
  #connectWhereNeeded(): void {
    if (this.#ending.signal.aborted || this.#cancelRetry !== undefined) return;
    const { size } = this.#options;
    const most = this.#open.size === 0 ? 1 : Math.min(this.#waiting.size, size - this.#open.size);
    while (this.#connecting.size < most && this.#waiting.size > 0) this.#connect();
  }

  #connect(): void {
    const connecting = this.#reach().then(
      (connection) => this.#take(connection),
      (error) => this.#fail(error),
    ).finally(() => {
      this.#connecting.delete(connecting);
      this.#connectWhereNeeded();
    });
    this.#connecting.add(connecting);
  }

  /** Comes in at the first host that will do, beginning with the one that did before. */
  async #reach(): Promise<PostgresConnection> {
    const { address, ...options } = this.#options;
    const { hosts } = address.fields;
    const failures: unknown[] = [];
    for (let tried = 0; tried < hosts.length; tried++) {
      const index = (this.#host + tried) % hosts.length;
      const host = hosts[index];
      if (host === undefined) continue;
      try {
        const connection = await PostgresConnection.open(address, host, {
          ...options,
          signal: this.#ending.signal,
        });
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
    if (this.#isReached) return;
    this.#isReached = true;
    this.#options.onConnected?.();
  }

  #fail(error: unknown): void {
    if (this.#ending.signal.aborted) return;
    this.#failure = errorText(error);
    if (this.#open.size === 0) {
      for (const waiter of [...this.#waiting]) waiter.reject(busy(this.#failure));
    }
    if (this.#cancelRetry !== undefined) return;
    this.#failures++;
    const { clock, random } = this.#options;
    const ms = backoffMs(this.#failures, random(), BACKOFF);
    this.#cancelRetry = clock.after(ms, () => {
      this.#cancelRetry = undefined;
      if (this.#open.size === 0) return this.#connect();
      // Only further ones could not be had.
      this.#failure = undefined;
      this.#connectWhereNeeded();
    });
  }
}

function busy(state: string): StoreError {
  return new StoreError("busy", state.startsWith("Cannot") ? state : `Cannot use the store: ${state}`);
}
