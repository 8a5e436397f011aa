import { MIGRATIONS, refuseVersion } from "../schema.ts";
import { sqlStateOf } from "./error.ts";
import { whole } from "../rows.ts";
import { get, postgresOnly, run, type Work } from "../work.ts";
import { StoreError } from "../store.ts";

/** Carries out each work in one transaction. */
export interface MigrationTransactions {
  /** Work that writes. */
  perform<T>(work: () => Work<T>): Promise<T>;
  /** Work that only reads. */
  read<T>(work: () => Work<T>): Promise<T>;
}

/** For how the tables are brought up to date. */
export interface MigrationOptions {
  /** The database, as errors name it. */
  readonly shownAddress: string;
  readonly migrations?: typeof MIGRATIONS.postgres | undefined;
}

/** The version of the tables as it was found, and as it is now. */
export interface MigratedSchema {
  readonly from: number;
  readonly to: number;
}

/** Whoever came second finds all there the next time; a wait for a lock may be in vain more often. */
const MAX_TRIES = 5;

// What the server answers to those who come second, while the first one makes the same table, or has just made it.
const CAME_SECOND: ReadonlySet<string> = new Set(["23505", "42P07", "42710", "55P03"]);
const NOT_ALLOWED = "42501";

const TABLE = postgresOnly(
  `SELECT current_schema() AS name,
     (SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = 'schema_version')
       AS tables`,
);
const VERSION = postgresOnly("SELECT version FROM schema_version");
const LOCKED_VERSION = postgresOnly("SELECT version FROM schema_version FOR UPDATE");

/**
 * Brings the tables up to date. Many may do so at once: one of them makes all there is to make in one transaction,
 * and the others wait for its row or its table, and then find nothing to do.
 */
export async function migratePostgres(
  transactions: MigrationTransactions,
  { shownAddress, migrations = MIGRATIONS.postgres }: MigrationOptions,
): Promise<MigratedSchema> {
  const newest = migrations.length;
  for (let tries = 1;; tries++) {
    const from = await transactions.read(() => schemaVersion(shownAddress));
    refuseVersion(shownAddress, from, newest);
    if (from === newest) return { from, to: newest };
    try {
      return await transactions.perform(() => migration(migrations, shownAddress));
    } catch (error) {
      const code = sqlStateOf(error);
      if (code !== undefined && CAME_SECOND.has(code) && tries < MAX_TRIES) continue;
      throw migrationError(error, { code, from, newest, shownAddress });
    }
  }
}

/** The version of the tables in the schema where new ones would be made; 0 for none. */
export function* schemaVersion(shownAddress: string): Work<number> {
  const table = yield* get(TABLE);
  if (table === undefined || table["name"] === null) {
    throw new StoreError(
      "failed",
      `Cannot open the store "${shownAddress}": no schema of its search_path is there; ` +
        `one that was made before would be right`,
    );
  }
  if (whole(table, "tables") === 0) return 0;
  return whole(yield* get(VERSION), "version");
}

function* migration(
  migrations: typeof MIGRATIONS.postgres,
  shownAddress: string,
): Work<MigratedSchema> {
  if ((yield* schemaVersion(shownAddress)) === 0) {
    yield* run(postgresOnly("CREATE TABLE schema_version (version BIGINT NOT NULL)"));
    yield* run(postgresOnly("INSERT INTO schema_version (version) VALUES (0)"));
  }
  const from = whole(yield* get(LOCKED_VERSION), "version");
  const to = migrations.length;
  refuseVersion(shownAddress, from, to);
  for (const statement of migrations.slice(from).flat()) {
    yield* run(postgresOnly(statement));
  }
  yield* run(postgresOnly("UPDATE schema_version SET version = ?"), to);
  return { from, to };
}

function migrationError(
  error: unknown,
  { code, from, newest, shownAddress }: {
    readonly code: string | undefined;
    readonly from: number;
    readonly newest: number;
    readonly shownAddress: string;
  },
): unknown {
  if (code !== NOT_ALLOWED) return error;
  const what = from === 0
    ? `make the tables of the store "${shownAddress}"`
    : `bring the store "${shownAddress}" from version ${from} to ${newest}`;
  const state = "its user may not do so in its schema; one who owns the schema and its tables would be right";
  return new StoreError("failed", `Cannot ${what}: ${state}`, { cause: error });
}
