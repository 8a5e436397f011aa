import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import { migrate, schemaVersion } from "./migration.ts";
import { GroupCommit } from "./group_commit.ts";
import { type ConnectionOptions, SqliteConnection } from "./connection.ts";
import { erasePayload } from "../events.ts";
import { rowMetrics } from "../tally.ts";
import { clearRemoved, isAnythingRemoved } from "../removals.ts";
import { claimedDeliveryOf, failWithoutPayload, type LoggedClaimOptions } from "../delivery_claims.ts";
import { endpointsOf } from "../endpoints.ts";
import { integer, text } from "../rows.ts";
import { all, get, type Row, run, sqliteOnly, type Work } from "../work.ts";
import type {
  ClaimedDelivery,
  ClaimOptions,
  Operation,
  RemovalOptions,
  StoreMetrics,
  WebhookStore,
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
    return { ...await this.read(rowMetrics, now), bytes: this.#bytes() };
  }

  /** Commits what waits and closes the file; a second call does nothing. */
  // deno-lint-ignore require-await -- a failure is a rejection
  async close(): Promise<void> {
    this.#commits.close();
    this.#connection.close();
  }

  #bytes(): number {
    const pages = integer(this.#connection.get("PRAGMA page_count"), "page_count");
    return pages * integer(this.#connection.get("PRAGMA page_size"), "page_size") + this.#connection.logBytes;
  }

  #truncateLog(): void {
    if (this.#hasTraces) this.#hasTraces = !this.#connection.truncateLog();
  }
}

// A limit that is a mere parameter has SQLite prepare the statement again each time.
const DUE = sqliteOnly(
  `SELECT * FROM delivery INDEXED BY delivery_next
   WHERE endpoint_id = ? AND next_at <= ? ORDER BY next_at, seq LIMIT ? + 0`,
);
const ENDPOINTS = sqliteOnly(
  "SELECT * FROM endpoint WHERE enabled = 1 AND id IN (SELECT value FROM json_each(?))",
);
const CLAIM = sqliteOnly(
  `UPDATE delivery SET claim_id = ?, lease_until = ?, claim_resend_at = resend_at, attempts = attempts + 1
   WHERE seq = ?`,
);
const BEGIN_ATTEMPT = sqliteOnly(
  "INSERT INTO attempt (delivery_seq, number, started_at, url, manual) VALUES (?, ?, ?, ?, ?)",
);
const BODY = sqliteOnly("SELECT body FROM event WHERE id = ?");

function* claimDeliveries(
  { now, leaseUntil, newClaimId, requests, logger }: LoggedClaimOptions,
): Work<readonly ClaimedDelivery[]> {
  const due: Row[] = [];
  for (const { endpointId, max } of requests) due.push(...yield* all(DUE, endpointId, now, max));
  if (due.length === 0) return [];
  due.sort((a, b) => integer(a, "next_at") - integer(b, "next_at") || integer(a, "seq") - integer(b, "seq"));
  const ids = [...new Set(due.map((row) => text(row, "endpoint_id")))];
  const found = yield* endpointsOf(yield* all(ENDPOINTS, ids));
  const endpoints = new Map(found.map((endpoint) => [endpoint.id, endpoint]));
  const bodies = new Map<string, Uint8Array>();
  const claims: ClaimedDelivery[] = [];
  for (const row of due) {
    const endpoint = endpoints.get(text(row, "endpoint_id"));
    if (endpoint === undefined) continue;
    const body = yield* bodyOf(text(row, "event_id"), bodies);
    if (body === undefined) {
      yield* failWithoutPayload(row, { now, logger });
      continue;
    }
    const claim = claimedDeliveryOf(row, { endpoint, now, leaseUntil, claimId: newClaimId(), body });
    const seq = integer(row, "seq");
    yield* run(CLAIM, claim.claimId, leaseUntil, seq);
    yield* run(BEGIN_ATTEMPT, seq, claim.attempt, now, endpoint.url, claim.manual);
    claims.push(claim);
  }
  return claims;
}

function* bodyOf(eventId: string, bodies: Map<string, Uint8Array>): Work<Uint8Array | undefined> {
  const known = bodies.get(eventId);
  if (known !== undefined) return known;
  const body = (yield* get(BODY, eventId))?.["body"];
  if (!(body instanceof Uint8Array)) return undefined;
  bodies.set(eventId, body);
  return body;
}
