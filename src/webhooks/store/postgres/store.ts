import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import {
  parsePostgresAddress,
  type PostgresAddress,
  redactedAddress,
} from "../../../base/postgres_address.ts";
import { Credential } from "../../../net/credential.ts";
import type { TransactionKind } from "./connection.ts";
import { CallGroups } from "../call_groups.ts";
import { listOf, type ListOperation, runApart, runList } from "../list_operation.ts";
import { mayConcernOneCall, PoolTimeoutError } from "./error.ts";
import { migratePostgres } from "./migration.ts";
import { PostgresPool, refuseTransactionPooler } from "./pool.ts";
import { POSTGRES_TABLES } from "../schema.ts";
import { claimDeliveries } from "../operations/claim_deliveries.ts";
import { finishAttempt, renewClaims } from "../operations/delivery_claims.ts";
import { commitExecution, renewExecutionClaims } from "../operations/executions.ts";
import { PostgresTransactions } from "./transactions.ts";
import { rowMetrics } from "../operations/tally.ts";
import { clearRemoved, isAnythingRemoved } from "../operations/removals.ts";
import { integer, text } from "../rows.ts";
import { all, get, run, type Work } from "../work.ts";
import {
  type ClaimOptions,
  type Operation,
  type RemovalOptions,
  StoreError,
  type StoreMetrics,
  type WebhookStore,
} from "../store.ts";

/** For a PostgreSQL store. */
export interface PostgresStoreOptions {
  readonly logger: Logger;
  /** With user and password. */
  readonly address: string;
  /** The same, whose user and password may be replaced; those of `address` stay when absent. */
  readonly login?: Credential<PostgresAddress> | undefined;
  /** Most connections. */
  readonly poolSize: number;
  readonly connectTimeoutMs: number;
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  /** Between two statements of a transaction; 3 seconds when absent. */
  readonly idleTimeoutMs?: number | undefined;
  /** For timeouts and durations. */
  readonly clock: Clock;
  /** From 0 to below 1; `Math.random` when absent. */
  readonly random?: (() => number) | undefined;
  /** Called after each commit, with its duration and number of operations. */
  readonly onCommit?: ((elapsedMs: number, operations: number) => void) | undefined;
  /** Called each time that the database is connected after it was not. */
  readonly onConnected?: (() => void) | undefined;
}

const MAX_WAITING = 10_000;
/** Of calls of one operation in a transaction, and of their transactions, with slow ones. */
const GROUP_LIMITS = { maxWaiting: MAX_WAITING, maxCalls: 64, maxRunning: 2, maxOpen: 4 };
/** A machine that stops in the middle of a transaction keeps its rows locked for this long. */
const IDLE_MS = 3_000;

/** Opens the store in a database and migrates its tables. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { logger, statementTimeoutMs, random = Math.random } = options;
  const { login = new Credential(parsePostgresAddress(options.address)) } = options;
  const poolOptions = {
    ...options,
    login,
    random,
    size: options.poolSize,
    maxWaiting: MAX_WAITING,
    waitMs: statementTimeoutMs,
    idleTimeoutMs: options.idleTimeoutMs ?? IDLE_MS,
  };
  const pool = new PostgresPool(poolOptions);
  // To build an index on a large table may take longer than the statement timeout.
  const unlimitedOptions = { ...poolOptions, size: 1, statementTimeoutMs: 0, onConnected: undefined };
  const unlimitedPool = new PostgresPool(unlimitedOptions);
  try {
    const transactions = new PostgresTransactions(pool, { ...options, random });
    const name = redactedAddress(login.current);
    await refuseTransactionPooler(pool, poolOptions, name);
    const unlimited = new PostgresTransactions(unlimitedPool, { clock: options.clock, random });
    const { from, to } = await migratePostgres({
      read: (work) => transactions.read(work),
      write: (work) => unlimited.write(work),
    }, { shownAddress: name });
    if (from !== to) logger.info("Store migrated", { address: name, from, to });
    const groupOptions = { ...GROUP_LIMITS, clock: options.clock, waitMs: statementTimeoutMs };
    return new PostgresStore({ pool, transactions, name, logger, groupOptions });
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
  readonly logger: Logger;
  readonly groupOptions: typeof GROUP_LIMITS & { readonly clock: Clock; readonly waitMs: number };
}

const BYTES = `SELECT CAST(sum(pg_total_relation_size(CAST(name AS regclass))) AS BIGINT) AS bytes
   FROM unnest(CAST(? AS TEXT[])) AS tables (name)`;
const TIME = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now";

/** Most rows of the tally that are folded in a transaction, and most transactions in a row. */
const FOLDED_ROWS = 10_000;
const MAX_FOLDS = 10;
/** A shorter tally is not worth the write. */
const LONG_TALLY = 500;

const TALLY_LENGTH = `SELECT count(*) AS count FROM (SELECT 1 FROM tally LIMIT ${LONG_TALLY}) AS first`;

// In two statements of one transaction: CockroachDB refuses two changes of a table in one statement.
const TAKE_TALLY = `
  WITH portion AS MATERIALIZED (SELECT seq FROM tally ORDER BY seq LIMIT ${FOLDED_ROWS} FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM tally WHERE seq IN (SELECT seq FROM portion) RETURNING name, count)
  SELECT name, CAST(sum(count) AS BIGINT) AS count FROM gone GROUP BY name HAVING sum(count) <> 0 ORDER BY name`;

const ADD_TALLY = `
  INSERT INTO tally (name, count)
  SELECT name, count FROM unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[])) AS sums (name, count)`;

/** These take precedence: work in progress keeps its claims and writes its results, however many operations wait. */
const URGENT: ReadonlySet<unknown> = new Set([
  renewClaims,
  renewExecutionClaims,
  finishAttempt,
  commitExecution,
]);

class PostgresStore implements WebhookStore {
  readonly #parts: StoreParts;
  readonly #inFlight = new Set<Promise<unknown>>();
  readonly #groups = new Map<unknown, CallGroups<readonly unknown[]>>();
  #isClosed = false;

  constructor(parts: StoreParts) {
    this.#parts = parts;
  }

  /** Operations that wait for a connection, or in groups. */
  get waiting(): number {
    const inGroups = this.#groups.values().reduce((sum, { waiting }) => sum + waiting, 0);
    return this.#parts.pool.metrics.waiting + inGroups;
  }

  /** The number of transactions that were retried after a conflict. */
  get transactionRetries(): number {
    return this.#parts.transactions.retries;
  }

  /** The time of the database, in one statement without a transaction: the caller knows best when it was that time. */
  databaseTime(): Promise<number> {
    return this.#run(async () => {
      const { rows } = await this.#parts.pool.use((connection) => connection.query(TIME, [], "rows"));
      return integer(rows[0], "now");
    });
  }

  read<A extends readonly unknown[], T>(operation: Operation<A, T>, ...args: A): Promise<T> {
    return this.#perform("read", operation, args);
  }

  write<A extends readonly unknown[], T>(operation: Operation<A, T>, ...args: A): Promise<T> {
    return this.#perform("write", operation, args);
  }

  claimDeliveries(options: ClaimOptions) {
    return this.write(claimDeliveries, { ...options, logger: this.#parts.logger });
  }

  /** Folds the tally as well, once nothing is left to remove. */
  async clearRemoved(options: RemovalOptions): Promise<boolean> {
    if (await this.read(isAnythingRemoved) && await this.write(clearRemoved, options)) return true;
    for (let folds = 0; folds < MAX_FOLDS && await this.read(isTallyLong); folds++) {
      await this.write(foldTally);
    }
    return false;
  }

  /** The size of the tables; 0 where a database compatible with PostgreSQL does not report it. */
  async usedBytes(): Promise<number> {
    try {
      return await this.read(storeBytes);
    } catch (error) {
      if (error instanceof StoreError && error.code !== "failed") throw error;
      return 0;
    }
  }

  async metrics(now: number): Promise<StoreMetrics> {
    return { ...await this.read(rowMetrics, now), bytes: await this.usedBytes() };
  }

  /** Waits for the operations in flight and closes the connections; a second call does nothing. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#inFlight);
    await this.#parts.pool.close();
  }

  #perform<A extends readonly unknown[], T>(
    kind: TransactionKind,
    operation: Operation<A, T>,
    args: A,
  ): Promise<T> {
    const list = listOf(operation);
    if (list !== undefined) {
      return this.#run(() => this.#groupsOf(kind, operation, list).call(args) as Promise<T>);
    }
    const { transactions } = this.#parts;
    const options = { isUrgent: URGENT.has(operation) };
    return this.#run(() => transactions[kind](() => operation(...args), options));
  }

  #groupsOf(
    kind: TransactionKind,
    operation: unknown,
    list: ListOperation<readonly unknown[], unknown>,
  ): CallGroups<readonly unknown[]> {
    let groups = this.#groups.get(operation);
    if (groups === undefined) {
      const { transactions, groupOptions } = this.#parts;
      const isUrgent = URGENT.has(operation);
      groups = new CallGroups<readonly unknown[]>({
        ...groupOptions,
        bytesOf: (call) => list.bytes?.(...call) ?? 0,
        // The calls are taken once there is a connection.
        run: (take) =>
          transactions[kind](() => runList(list, take()), { isUrgent, operations: () => take().length }),
        mayConcernOneCall,
        isTimeout: (error) => error instanceof PoolTimeoutError,
        runApart: (call) => transactions[kind](() => runApart(list, call), { isUrgent }),
      });
      this.#groups.set(operation, groups);
    }
    return groups;
  }

  async #run<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#isClosed) {
      throw new StoreError("closed", `Cannot use the store "${this.#parts.name}": it is closed`);
    }
    const result = operation();
    this.#inFlight.add(result);
    try {
      return await result;
    } finally {
      this.#inFlight.delete(result);
    }
  }
}

function* storeBytes(): Work<number> {
  return integer(yield* get(BYTES, POSTGRES_TABLES), "bytes");
}

function* isTallyLong(): Work<boolean> {
  return integer(yield* get(TALLY_LENGTH), "count") === LONG_TALLY;
}

function* foldTally(): Work<void> {
  const sums = yield* all(TAKE_TALLY);
  if (sums.length === 0) return;
  yield* run(ADD_TALLY, sums.map((row) => text(row, "name")), sums.map((row) => integer(row, "count")));
}
