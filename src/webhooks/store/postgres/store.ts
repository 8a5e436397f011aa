import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import { parsePostgresAddress, shownPostgresAddress } from "../../../base/postgres_address.ts";
import { migratePostgres } from "./migration.ts";
import { PostgresPool } from "./pool.ts";
import { POSTGRES_TABLES } from "../schema.ts";
import { claimDeliveries } from "./claim_deliveries.ts";
import { finishAttempt, renewClaims } from "../delivery_claims.ts";
import { commitExecution, renewExecutionClaims } from "../executions.ts";
import { refuseTransactionPooler } from "./pooler.ts";
import { foldTally, isTallyLong } from "./tally.ts";
import { PostgresTransactions, type TransactionFigures } from "./transactions.ts";
import { rowMetrics } from "../tally.ts";
import { clearRemoved, isAnythingRemoved } from "../removals.ts";
import { whole } from "../rows.ts";
import { get, postgresOnly, type Work } from "../work.ts";
import {
  type ClaimOptions,
  type Operation,
  type RemovalOptions,
  StoreError,
  type StoreMetrics,
  type WebhookStore,
} from "../store.ts";

/** How a PostgreSQL store is opened. */
export interface PostgresStoreOptions {
  readonly logger: Logger;
  /** With name and password. */
  readonly address: string;
  /** Most connections. */
  readonly poolSize: number;
  readonly connectTimeoutMs: number;
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  /** For waits and durations, and the times that the store writes of itself: best the clock of the database. */
  readonly clock: Clock;
  /** From 0 to below 1; by chance when absent. */
  readonly random?: (() => number) | undefined;
  /** Told of each commit: how long it took, and how many operations it held. */
  readonly onCommit?: ((elapsedMs: number, operations: number) => void) | undefined;
  /** Told each time that the database is reached after it was not. */
  readonly onConnected?: (() => void) | undefined;
}

/** What a PostgreSQL store has beside the port. */
export interface PostgresExtras {
  /** The version of its schema. */
  readonly schemaVersion: number;
  /** How many operations wait for a connection. */
  readonly waiting: number;
  /** What the commits have cost so far. */
  readonly commits: TransactionFigures;
  /** The time of the database, in milliseconds. */
  databaseTime(): Promise<number>;
}

const MAX_WAITING = 10_000;
/**
 * A transaction rests no longer between two statements: a machine that was stopped in the middle of one, or cannot be
 * reached any more, keeps the rows that the others wait for.
 */
const IDLE_MS = 3_000;

/** Opens the store in a database, whose tables are made or brought up to date. */
export async function openPostgresStore(
  options: PostgresStoreOptions,
): Promise<WebhookStore & PostgresExtras> {
  const { logger, statementTimeoutMs, random = Math.random } = options;
  const address = parsePostgresAddress(options.address);
  const poolOptions = {
    ...options,
    address,
    random,
    size: options.poolSize,
    maxWaiting: MAX_WAITING,
    // As long as whoever has a connection may take for a statement.
    waitMs: statementTimeoutMs,
    idleTimeoutMs: IDLE_MS,
  };
  const pool = new PostgresPool(poolOptions);
  // An index on a large table takes longer to build than a statement may take.
  const unlimitedPool = new PostgresPool({
    ...poolOptions,
    size: 1,
    statementTimeoutMs: 0,
    onConnected: undefined,
  });
  try {
    const transactions = new PostgresTransactions(pool, { ...options, random });
    const name = shownPostgresAddress(address);
    await refuseTransactionPooler({ pool, poolOptions, shownAddress: name });
    const unlimited = new PostgresTransactions(unlimitedPool, { clock: options.clock, random });
    const { from, to } = await migratePostgres({
      read: (work) => transactions.read(work),
      perform: (work) => unlimited.perform(work),
    }, { shownAddress: name });
    if (from !== to) logger.info("store brought up to date", { address: name, from, to });
    return new PostgresStore({ pool, transactions, name, version: to }, logger);
  } catch (error) {
    await pool.close();
    throw error;
  } finally {
    await unlimitedPool.close();
  }
}

interface StoreParts {
  readonly pool: PostgresPool;
  readonly transactions: PostgresTransactions;
  /** The address without its password. */
  readonly name: string;
  readonly version: number;
}

const BYTES = postgresOnly(
  `SELECT CAST(sum(pg_total_relation_size(CAST(name AS regclass))) AS BIGINT) AS bytes
   FROM unnest(CAST(? AS TEXT[])) AS tables (name)`,
);
const TIME = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now";

/** How often rows of the tally are folded in one go; others get at the store in between. */
const MAX_FOLDS = 10;

/** However many wait with new requests, work in progress keeps its claims, and its results are written. */
const URGENT: ReadonlySet<unknown> = new Set([
  renewClaims,
  renewExecutionClaims,
  finishAttempt,
  commitExecution,
]);

class PostgresStore implements WebhookStore, PostgresExtras {
  readonly schemaVersion: number;
  readonly #parts: StoreParts;
  readonly #logger: Logger;
  readonly #underWay = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(parts: StoreParts, logger: Logger) {
    this.schemaVersion = parts.version;
    this.#parts = parts;
    this.#logger = logger;
  }

  get waiting() {
    return this.#parts.pool.figures.waiting;
  }

  get commits() {
    return this.#parts.transactions.figures;
  }

  /** One statement without a transaction, so that the caller can bound the moment of that time. */
  databaseTime() {
    return this.#run(async () => {
      const { rows } = await this.#parts.pool.use((connection) => connection.query(TIME, [], "rows"));
      return whole(rows[0], "now");
    });
  }

  read<A extends readonly unknown[], T>(operation: Operation<A, T>, ...args: A): Promise<T> {
    return this.#run(() => this.#parts.transactions.read(() => operation(...args)));
  }

  write<A extends readonly unknown[], T>(operation: Operation<A, T>, ...args: A): Promise<T> {
    const isUrgent = URGENT.has(operation);
    return this.#run(() => this.#parts.transactions.perform(() => operation(...args), { isUrgent }));
  }

  claimDeliveries(options: ClaimOptions) {
    return this.write(claimDeliveries, { ...options, logger: this.#logger });
  }

  /** Folds the tally as well, once nothing is left to remove. */
  async clearRemoved(options: RemovalOptions): Promise<boolean> {
    if (await this.read(isAnythingRemoved) && await this.write(clearRemoved, options)) return true;
    for (let folds = 0; folds < MAX_FOLDS && await this.read(isTallyLong); folds++) {
      await this.write(foldTally);
    }
    return false;
  }

  async metrics(now: number): Promise<StoreMetrics> {
    return { ...await this.read(rowMetrics, now), bytes: await this.#bytes() };
  }

  /** Waits for the operations in flight and closes the connections; a second call does nothing. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#underWay);
    await this.#parts.pool.close();
  }

  async #run<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#isClosed) {
      throw new StoreError("closed", `Cannot use the store "${this.#parts.name}": it is closed`);
    }
    const answer = ask();
    this.#underWay.add(answer);
    try {
      return await answer;
    } finally {
      this.#underWay.delete(answer);
    }
  }

  /** Not every database of this kind tells its size: then it is 0. */
  async #bytes(): Promise<number> {
    try {
      return await this.read(storeBytes);
    } catch (error) {
      if (error instanceof StoreError && error.code !== "failed") throw error;
      return 0;
    }
  }
}

function* storeBytes(): Work<number> {
  return whole(yield* get(BYTES, POSTGRES_TABLES), "bytes");
}
