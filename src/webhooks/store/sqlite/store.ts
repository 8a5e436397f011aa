import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import { migrate, schemaVersion } from "./migration.ts";
import { GroupCommit } from "./group_commit.ts";
import { type ConnectionOptions, SqliteConnection } from "./connection.ts";
import { erasePayload } from "../operations/events.ts";
import { rowMetrics } from "../operations/tally.ts";
import { clearRemoved, isAnythingRemoved } from "../operations/removals.ts";
import { claimDeliveries } from "../operations/claim_deliveries.ts";
import type { ClaimOptions, Operation, RemovalOptions, StoreMetrics, WebhookStore } from "../store.ts";

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
  readonly #commits: GroupCommit;
  readonly #logger: Logger;
  /** Whether the log may hold an erased payload. */
  #hasTraces = false;

  constructor(connection: SqliteConnection, options: SqliteStoreOptions) {
    this.#connection = connection;
    this.#logger = options.logger;
    this.#commits = new GroupCommit(connection, {
      ...options,
      maxWaiting: options.maxWaiting ?? MAX_WAITING,
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

  write<A extends readonly unknown[], T>(operation: Operation<A, T>, ...args: A): Promise<T> {
    const written = this.#commits.write(() => operation(...args));
    if (!ERASING.has(operation)) return written;
    return written.then((value) => {
      this.#hasTraces = true;
      this.#truncateLog();
      return value;
    });
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
    this.#commits.close();
    this.#connection.close();
  }

  #bytes(): number {
    return this.#connection.fileBytes + this.#connection.logBytes;
  }

  #truncateLog(): void {
    if (this.#hasTraces) this.#hasTraces = !this.#connection.truncateLog();
  }
}
