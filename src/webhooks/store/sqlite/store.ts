import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import { migrate, schemaVersion } from "./migration.ts";
import { type CommitFigures, GroupCommit } from "./group_commit.ts";
import { storeBytes } from "./bytes.ts";
import { claimDeliveries } from "./claim_deliveries.ts";
import { type ConnectionOptions, SqliteConnection } from "./connection.ts";
import { erasePayload } from "../events.ts";
import { rowMetrics } from "../tally.ts";
import { clearRemoved, isAnythingRemoved } from "../removals.ts";
import type { ClaimOptions, Operation, RemovalOptions, StoreMetrics, WebhookStore } from "../store.ts";

/** How a store is opened. */
export interface SqliteStoreOptions extends ConnectionOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** The database file; made with its folder when missing. */
  readonly path: string;
  /** How many operations may wait for a commit; 50,000 when absent. */
  readonly maxWaiting?: number | undefined;
  /** Told of each commit: how long it took, and how many operations it held. */
  readonly onCommit?: ((elapsedMs: number, operations: number) => void) | undefined;
}

/** What a SQLite store has beside the port. */
export interface SqliteExtras {
  /** The version of its schema. */
  readonly schemaVersion: number;
  /** How many operations wait for a commit. */
  readonly waiting: number;
  /** What the commits have cost so far. */
  readonly commits: CommitFigures;
}

const MAX_WAITING = 50_000;

/** Opens the store in a database file, whose tables are made or brought up to date. */
// deno-lint-ignore require-await -- a failure is a rejection, as it is for stores behind a network
export async function openSqliteStore(options: SqliteStoreOptions): Promise<WebhookStore & SqliteExtras> {
  const connection = new SqliteConnection(options.path, options);
  try {
    const before = schemaVersion(connection);
    const version = migrate(connection);
    if (before !== version) {
      options.logger.info("store brought up to date", { path: options.path, from: before, to: version });
    }
    return new SqliteStore(connection, options, version);
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Operations after which the log may hold what was erased. */
const ERASING: ReadonlySet<unknown> = new Set([erasePayload]);

class SqliteStore implements WebhookStore, SqliteExtras {
  readonly schemaVersion: number;
  readonly #connection: SqliteConnection;
  readonly #commits: GroupCommit;
  readonly #logger: Logger;
  /** Whether the log may hold an erased payload. */
  #hasTraces = false;

  constructor(connection: SqliteConnection, options: SqliteStoreOptions, version: number) {
    this.schemaVersion = version;
    this.#connection = connection;
    this.#logger = options.logger;
    this.#commits = new GroupCommit(connection, {
      ...options,
      maxWaiting: options.maxWaiting ?? MAX_WAITING,
    });
  }

  get waiting() {
    return this.#commits.waiting;
  }

  get commits() {
    return this.#commits.figures;
  }

  /** Reads immediately: results that were returned before are seen, operations that wait for their commit are not. */
  // deno-lint-ignore require-await -- a failure is a rejection
  async read<A extends readonly unknown[], T>(operation: Operation<A, T>, ...args: A): Promise<T> {
    return this.#connection.snapshot(() => this.#connection.perform(operation(...args)));
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

  /** Called each second, so an idle service also notices that its files are gone, and retries to empty its log. */
  async metrics(now: number): Promise<StoreMetrics> {
    this.#connection.checkFiles();
    this.#truncateLog();
    return { ...await this.read(rowMetrics, now), bytes: storeBytes(this.#connection) };
  }

  /** Commits what waits and closes the file; a second call does nothing. */
  // deno-lint-ignore require-await -- a failure is a rejection
  async close(): Promise<void> {
    this.#commits.close();
    this.#connection.close();
  }

  #truncateLog(): void {
    if (this.#hasTraces) this.#hasTraces = !this.#connection.truncateLog();
  }
}
