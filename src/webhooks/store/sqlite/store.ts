import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import { migrate, schemaVersion } from "./migration.ts";
import { CallGroups } from "../call_groups.ts";
import { type ConnectionOptions, SqliteConnection, storeError } from "./connection.ts";
import { type Call, callOf } from "../list_operation.ts";
import { erasePayload } from "../operations/events.ts";
import { rowMetrics } from "../operations/tally.ts";
import { clearRemoved, isAnythingRemoved } from "../operations/removals.ts";
import { claimDeliveries } from "../operations/claim_deliveries.ts";
import {
  type ClaimOptions,
  type Operation,
  type RemovalOptions,
  StoreError,
  type StoreMetrics,
  type WebhookStore,
} from "../store.ts";

/** For a SQLite store. */
export interface SqliteStoreOptions extends ConnectionOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** The database file; created with its folder when missing. */
  readonly path: string;
  /** Most operations that wait for a commit; 50,000 when absent. */
  readonly maxWaiting?: number | undefined;
  /** Called after each commit, with its duration and number of operations. */
  readonly onCommit?: ((elapsedMs: number, operations: number) => void) | undefined;
}

const MAX_WAITING = 50_000;
/** Most operations of a commit, so that the first results do not wait too long for the last operation. */
const MAX_OPERATIONS = 1_000;

/** Opens the store in a database file and migrates its tables. */
// deno-lint-ignore require-await -- a failure is a rejection
export async function openSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const connection = new SqliteConnection(options.path, options);
  try {
    const before = schemaVersion(connection);
    const version = migrate(connection);
    if (before !== version) {
      options.logger.info("Store migrated", { path: options.path, from: before, to: version });
    }
    return new SqliteStore(connection, options);
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Operations after which the log may hold what was erased. */
const ERASING: ReadonlySet<unknown> = new Set([erasePayload]);

class SqliteStore implements WebhookStore {
  readonly #connection: SqliteConnection;
  /** Operations of one turn are written in one transaction, with one sync of the disk. */
  readonly #commits: CallGroups<Call>;
  readonly #logger: Logger;
  /** True if the log may hold an erased payload. */
  #hasTraces = false;
  #isClosed = false;

  constructor(connection: SqliteConnection, { clock, logger, onCommit, maxWaiting }: SqliteStoreOptions) {
    this.#connection = connection;
    this.#logger = logger;
    const run = (calls: readonly Call[]) => {
      const since = clock.elapsed();
      try {
        const results = connection.performAll(calls);
        onCommit?.(clock.elapsed() - since, calls.length);
        return results;
      } catch (error) {
        throw storeError("Cannot use the store", error);
      }
    };
    this.#commits = new CallGroups({
      clock,
      maxWaiting: maxWaiting ?? MAX_WAITING,
      maxCalls: MAX_OPERATIONS,
      maxRunning: 1,
      maxOpen: 1,
      // deno-lint-ignore require-await -- a failure is a rejection
      run: async (take) => run(take()),
      // deno-lint-ignore require-await -- a failure is a rejection
      runApart: async (call) => run([call])[0],
    });
  }

  /** Operations that wait for a commit. */
  get waiting(): number {
    return this.#commits.waiting;
  }

  /** Reads immediately: results that were returned before are seen, operations that wait for their commit are not. */
  // deno-lint-ignore require-await -- a failure is a rejection
  async read<A extends readonly unknown[], T>(operation: Operation<A, T>, ...args: A): Promise<T> {
    return this.#connection.read(operation(...args));
  }

  async write<A extends readonly unknown[], T>(operation: Operation<A, T>, ...args: A): Promise<T> {
    if (this.#isClosed) {
      throw new StoreError("closed", `Cannot use the store "${this.#connection.path}": it is closed`);
    }
    const value = await this.#commits.call(callOf(operation, args)) as T;
    if (ERASING.has(operation)) {
      this.#hasTraces = true;
      this.#truncateLog();
    }
    return value;
  }

  claimDeliveries(options: ClaimOptions) {
    return this.write(claimDeliveries, { ...options, logger: this.#logger });
  }

  async clearRemoved(options: RemovalOptions): Promise<boolean> {
    return await this.read(isAnythingRemoved) && await this.write(clearRemoved, options);
  }

  // deno-lint-ignore require-await -- a failure is a rejection
  async usedBytes(): Promise<number> {
    return this.#connection.usedBytes;
  }

  /** Called each second, so an idle service also notices that its files are gone, and retries to empty its log. */
  async metrics(now: number): Promise<StoreMetrics> {
    this.#connection.checkFiles();
    this.#truncateLog();
    return { ...await this.read(rowMetrics, now), bytes: this.#bytes() };
  }

  /** Commits what waits and closes the file; a second call does nothing. */
  // deno-lint-ignore require-await -- a failure is a rejection
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#commits.flush();
    this.#connection.close();
  }

  #bytes(): number {
    return this.#connection.fileBytes + this.#connection.logBytes;
  }

  #truncateLog(): void {
    if (this.#hasTraces) this.#hasTraces = !this.#connection.truncateLog();
  }
}
