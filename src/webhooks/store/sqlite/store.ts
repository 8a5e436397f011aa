import { type OperationOptions, OperationStore } from "../operation_store.ts";
import { migrate, schemaVersion } from "./schema.ts";
import { type CommitFigures, GroupCommit } from "./group_commit.ts";
import { storeBytes } from "./bytes.ts";
import { claimDeliveries } from "./claims.ts";
import { type ConnectionOptions, SqliteConnection } from "./connection.ts";
import { storeFigures } from "../records.ts";
import { clearRemoved, isAnythingRemoved } from "../removals.ts";
import type { Work } from "../work.ts";
import type { AdministrationStore, DeliveryStore, StoreFigures, WebhookStore } from "../store.ts";

/** How a store is opened. */
export interface SqliteStoreOptions extends ConnectionOptions, OperationOptions {
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

/** The port over one connection: each operation is passed on, to a gathered commit or to a snapshot. */
class SqliteStore extends OperationStore implements WebhookStore, SqliteExtras {
  readonly schemaVersion: number;
  readonly #connection: SqliteConnection;
  readonly #commits: GroupCommit;
  /** Whether the log may hold a payload that was erased. */
  #hasTraces = false;

  constructor(connection: SqliteConnection, options: SqliteStoreOptions, version: number) {
    super(options);
    this.schemaVersion = version;
    this.#connection = connection;
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

  claimDeliveries = (options: Parameters<DeliveryStore["claimDeliveries"]>[0]) =>
    this.write(() => claimDeliveries({ ...options, ...this.faults }));
  /** Called each second, so an idle service also notices that its files are gone, and retries to empty its log. */
  figures = async (now: number): Promise<StoreFigures> => {
    this.#connection.checkFiles();
    this.#truncateLog();
    const figures = await this.read(() => storeFigures(now));
    return { ...figures, bytes: storeBytes(this.#connection) };
  };
  clearRemoved = async (options: Parameters<AdministrationStore["clearRemoved"]>[0]) =>
    await this.read(isAnythingRemoved) && await this.write(() => clearRemoved(options));

  /** Commits what waits and closes the file; twice is fine. */
  // deno-lint-ignore require-await -- what fails is a rejection
  async close(): Promise<void> {
    this.#commits.close();
    this.#connection.close();
  }

  protected override removeTraces(): void {
    this.#hasTraces = true;
    this.#truncateLog();
  }

  #truncateLog(): void {
    if (this.#hasTraces) this.#hasTraces = !this.#connection.truncateLog();
  }

  protected write<T>(work: () => Work<T>): Promise<T> {
    return this.#commits.write(work);
  }

  protected read<T>(work: () => Work<T>): Promise<T> {
    return this.#snapshot(() => this.#connection.perform(work()));
  }

  /** Reads at once: what was answered before is there, what still waits for its commit is not. */
  // deno-lint-ignore require-await -- what fails is a rejection
  async #snapshot<T>(run: () => T): Promise<T> {
    return this.#connection.snapshot(run);
  }
}
