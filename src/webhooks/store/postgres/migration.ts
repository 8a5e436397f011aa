import { integer } from "../rows.ts";
import { MIGRATIONS, refuseVersion } from "../schema.ts";
import { StoreError } from "../store.ts";
import { get, run, type Work } from "../work.ts";
import { sqlStateOf } from "./error.ts";

/** Runs each work in one transaction. */
interface MigrationTransactions {
  read<T>(work: () => Work<T>): Promise<T>;
  /** Work that writes. */
  write<T>(work: () => Work<T>): Promise<T>;
}

/** For the migration of a database. */
interface MigrationOptions {
  /** The address without its password. */
  readonly shownAddress: string;
  readonly migrations?: typeof MIGRATIONS.postgres | undefined;
}

/** The versions of the schema before and after. */
interface MigratedSchema {
  readonly from: number;
  readonly to: number;
}

const MAX_TRIES = 5;

// Errors while another process creates the same table, or after it did.
const CONCURRENT: ReadonlySet<string> = new Set(["23505", "42P07", "42710", "55P03"]);
const INSUFFICIENT_PRIVILEGE = "42501";

const TABLE = `SELECT current_schema() AS name,
  (SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = 'schema_version')
    AS tables`;

/** Migrates the tables; of several processes one does so in one transaction, and the others wait for it. */
export async function migratePostgres(
  transactions: MigrationTransactions,
  { shownAddress, migrations = MIGRATIONS.postgres }: MigrationOptions,
): Promise<MigratedSchema> {
  const to = migrations.length;
  for (let tries = 1;; tries++) {
    const from = await transactions.read(() => schemaVersion(shownAddress));
    refuseVersion(shownAddress, from, to);
    if (from === to) return { from, to };
    try {
      return await transactions.write(() => migration(migrations, shownAddress));
    } catch (error) {
      const code = sqlStateOf(error);
      if (code !== undefined && CONCURRENT.has(code) && tries < MAX_TRIES) continue;
      if (code !== INSUFFICIENT_PRIVILEGE) throw error;
      throw new StoreError(
        "failed",
        `Cannot migrate the store "${shownAddress}" from version ${from} to ${to}: its user lacks the permission; ` +
          "use one who owns the schema and its tables",
        { cause: error },
      );
    }
  }
}

/** The version of the tables in the current schema; 0 for none. */
export function* schemaVersion(shownAddress: string): Work<number> {
  const table = yield* get(TABLE);
  if (table === undefined || table["name"] === null) {
    throw new StoreError(
      "failed",
      `Cannot open the store "${shownAddress}": no schema of its search_path exists; create one`,
    );
  }
  if (integer(table, "tables") === 0) return 0;
  return integer(yield* get("SELECT version FROM schema_version"), "version");
}

function* migration(migrations: typeof MIGRATIONS.postgres, shownAddress: string): Work<MigratedSchema> {
  if ((yield* schemaVersion(shownAddress)) === 0) {
    yield* run("CREATE TABLE schema_version (version BIGINT NOT NULL)");
    yield* run("INSERT INTO schema_version (version) VALUES (0)");
  }
  const from = integer(yield* get("SELECT version FROM schema_version FOR UPDATE"), "version");
  const to = migrations.length;
  refuseVersion(shownAddress, from, to);
  for (const statement of migrations.slice(from).flat()) yield* run(statement);
  yield* run("UPDATE schema_version SET version = ?", to);
  return { from, to };
}
