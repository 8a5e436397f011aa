import { assertEquals } from "#assert";
import { join } from "node:path";
import { backupStore } from "../../../src/webhooks/store/maintenance/backup.ts";
import { PostgresError } from "../../../src/webhooks/store/postgres/error.ts";
import { SqliteConnection } from "../../../src/webhooks/store/sqlite/connection.ts";
import type { Answer, Parameter } from "../../../src/webhooks/store/work.ts";
import { connectTo, postgres } from "../../harness/postgres_fixture.ts";
import { output, postgresProgram } from "../../harness/postgres_folder.ts";
import type { PostgresDatabase } from "../../harness/postgres_server.ts";
import { StoreFolder } from "../../harness/sqlite_fixture.ts";
import { databasePlace, filePlace, type StorePlace } from "../../harness/store_places.ts";

/** The folders of data of older releases: stores with records of every kind; of 0.1.0 also the statements of an instance. */
export const OLD_STORES = {
  "0.1.0": join(import.meta.dirname ?? "", "../../testdata/store-0.1.0"),
  "0.2.0": join(import.meta.dirname ?? "", "../../testdata/store-0.2.0"),
} as const;

/** A release whose stores are kept. */
export type OldRelease = keyof typeof OLD_STORES;

/** A value as JSON has it. */
type Recorded = string | number | null | { readonly base64: string } | readonly Recorded[];
type RecordedRow = Readonly<Record<string, Recorded>>;

/** An operation of the store: its statements are one transaction. */
interface OldOperation {
  readonly name: string;
  /** Each with the number of its text, its parameters, and the rows or the number of changes that it returned. */
  readonly statements: readonly (readonly [
    text: number,
    parameters: readonly Recorded[],
    answer: readonly RecordedRow[] | number,
  ])[];
}

/** Operations of an instance of 0.1.0 in a rolling restart: `after` is when the new release has migrated the store. */
interface OldStatements {
  readonly texts: readonly string[];
  readonly before: readonly OldOperation[];
  readonly after: readonly OldOperation[];
}

/**
 * The statements that the program of 0.1.0 (commit bd63f8b) ran on the fixture, with what it got: events and executions
 * were accepted, claimed, finished and given back, and records of every kind were added, changed and removed.
 */
export const OLD_STATEMENTS: Readonly<Record<"sqlite" | "postgres", OldStatements>> = JSON.parse(
  Deno.readTextFileSync(join(OLD_STORES["0.1.0"], "statements.json")),
);

/** An instance of 0.1.0 that has a store open: it repeats its operations, and gets what it got then. */
interface OldInstance extends AsyncDisposable {
  run(operations: readonly OldOperation[]): Promise<void>;
}

/** A store that an older release has written. */
interface OldStore extends StorePlace {
  readonly release: OldRelease;
  /** Opens it as an instance of 0.1.0. */
  instance(): Promise<OldInstance>;
  /** Makes a copy with the tool of an operator, while it is used. */
  backup(): Promise<OldStore>;
  /** An empty place of its kind. */
  empty(): Promise<StorePlace>;
}

/** Registers tests with the store of an older release, in a file and on PostgreSQL. */
export function oldStores(release: OldRelease) {
  const data = OLD_STORES[release];
  return {
    test(name: string, run: (store: OldStore) => Promise<void>): void {
      Deno.test(`${name} (sqlite)`, async () => {
        using folder = new StoreFolder();
        const path = folder.file("0.db");
        await Deno.copyFile(join(data, "weir.db"), path);
        await run(oldFile({ folder, release }, path));
      });
      postgres.test(`${name} (postgres)`, async (database) => {
        await using stack = new AsyncDisposableStack();
        await database.restore(await Deno.readTextFile(join(data, "weir.sql")));
        await run(oldDatabase({ stack, release }, database));
      });
    },
  };
}

function oldFile(
  given: { readonly folder: StoreFolder; readonly release: OldRelease },
  path: string,
  copies = 0,
): OldStore {
  const { folder, release } = given;
  return {
    release,
    ...filePlace(folder, path),
    instance: () => Promise.resolve(oldSqliteInstance(path)),
    async backup() {
      const copy = `${path}.${++copies}`;
      await backupStore(path, copy);
      return oldFile(given, copy);
    },
    empty: () => Promise.resolve(filePlace(folder)),
  };
}

function oldDatabase(
  given: { readonly stack: AsyncDisposableStack; readonly release: OldRelease },
  database: PostgresDatabase,
): OldStore {
  const address = database.url();
  const { stack, release } = given;
  return {
    release,
    ...databasePlace(database),
    instance: () => oldPostgresInstance(address),
    async backup() {
      const dump = await output([postgresProgram("pg_dump"), "--inserts", "--no-owner", address]);
      const copy = stack.use(await database.server.database());
      // Some releases of pg_dump write psql commands.
      await copy.restore(dump.replaceAll(/^\\.*\n?/gm, ""));
      return oldDatabase(given, copy);
    },
    empty: async () => databasePlace(stack.use(await database.server.database())),
  };
}

function oldSqliteInstance(path: string): OldInstance {
  const connection = new SqliteConnection(path);
  const perform = ({ name, statements }: OldOperation) =>
    connection.transaction(() => {
      for (const [text, parameters, expected] of statements) {
        const sql = OLD_STATEMENTS.sqlite.texts[text] ?? "";
        const given = parameters.map(parameterOf);
        const answer = typeof expected === "number"
          ? { rows: [], changes: connection.run(sql, ...given) }
          : { rows: connection.all(sql, ...given), changes: 0 };
        compare(name, sql, answer, expected);
      }
    });
  return {
    // deno-lint-ignore require-await -- a failure is a rejection
    async run(operations) {
      for (const operation of operations) perform(operation);
    },
    // deno-lint-ignore require-await -- a failure is a rejection
    async [Symbol.asyncDispose]() {
      connection.close();
    },
  };
}

async function oldPostgresInstance(url: string): Promise<OldInstance> {
  let connection = await connectTo(url);
  const perform = async ({ name, statements }: OldOperation) => {
    await connection.begin("write");
    for (const [text, parameters, expected] of statements) {
      const sql = OLD_STATEMENTS.postgres.texts[text] ?? "";
      const returns = typeof expected === "number" ? "changes" : "rows";
      compare(name, sql, await connection.query(sql, parameters.map(parameterOf), returns), expected);
    }
    await connection.commit();
  };
  return {
    async run(operations) {
      for (const operation of operations) {
        try {
          await perform(operation);
        } catch (error) {
          // Such a connection is replaced by 0.1.0, and the operation is repeated.
          if (!(error instanceof PostgresError && error.sqlState === "0A000")) throw error;
          connection.destroy();
          connection = await connectTo(url);
          await perform(operation);
        }
      }
    },
    [Symbol.asyncDispose]: () => connection.close(),
  };
}

function parameterOf(value: Recorded): Parameter {
  if (Array.isArray(value)) return value.map(parameterOf) as Parameter;
  if (typeof value !== "object" || value === null) return value as Parameter;
  return Uint8Array.fromBase64((value as { readonly base64: string }).base64);
}

/** A newer release may have added columns. */
function compare(name: string, sql: string, answer: Answer, expected: readonly RecordedRow[] | number): void {
  const found: unknown = typeof expected === "number" ? answer.changes : answer.rows.map((row, index) => {
    const columns = Object.keys(expected[index] ?? row);
    return Object.fromEntries(columns.map((column) => [column, recorded(row[column])]));
  });
  assertEquals<unknown>(
    found,
    expected,
    `${name}: ${sql}\n${JSON.stringify(found)}\n${JSON.stringify(expected)}`,
  );
}

function recorded(value: unknown): unknown {
  return value instanceof Uint8Array ? { base64: value.toBase64() } : value;
}
