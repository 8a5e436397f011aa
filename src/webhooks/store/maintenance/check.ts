import { fileAt, withStoreToRead } from "./open_connection.ts";
import { READING, type StoreConnection, transaction } from "./connection.ts";
import { ruleProblems } from "./rules.ts";
import { text, whole } from "../rows.ts";
import { countOf, TABLE_NAMES } from "./tables.ts";
import { knownVersion } from "./schema_version.ts";
import { all, get, type Work } from "../work.ts";

/** What a look into a store found. */
export interface StoreCheck {
  /** Where the store is, without a password. */
  readonly shown: string;
  /** What is wrong, for people; nothing when all is well. */
  readonly problems: readonly string[];
  readonly schemaVersion: number;
  readonly bytes: number;
  /** How many rows each table has, by its name. */
  readonly counts: Readonly<Record<string, number>>;
}

/** Tables that hold no records. */
const OF_THE_STORE: ReadonlySet<string> = new Set(["tally", "removal", "swept"]);

/**
 * Looks whether a store is whole: its pages and its references, which PostgreSQL sees to itself, and what our own
 * rules say of its rows. The store is a file, or the address of a database.
 */
export function checkStore(address: string): Promise<StoreCheck> {
  return withStoreToRead(address, async (connection) => {
    const schemaVersion = await connection.perform(knownVersion(connection));
    const bytes = await storeBytes(connection);
    return await transaction(
      connection,
      READING,
      () => connection.perform(look(connection, { shown: connection.shown, schemaVersion, bytes })),
    );
  });
}

function* look(
  connection: StoreConnection,
  known: Pick<StoreCheck, "shown" | "schemaVersion" | "bytes">,
): Work<StoreCheck> {
  const pages = connection.kind === "sqlite" ? yield* pageProblems() : [];
  const problems = [...pages, ...yield* ruleProblems(known.schemaVersion)];
  const counts: Record<string, number> = {};
  for (const name of TABLE_NAMES.filter((name) => !OF_THE_STORE.has(name)).toSorted()) {
    counts[name] = yield* countOf({ from: `"${name}"` });
  }
  return { ...known, problems, counts };
}

function* pageProblems(): Work<readonly string[]> {
  const pages = (yield* all("PRAGMA integrity_check"))
    .map((row) => text(row, "integrity_check"))
    .filter((line) => line !== "ok");
  const references = (yield* all("PRAGMA foreign_key_check"))
    .map((row) => `a row of ${text(row, "table")} names one of ${text(row, "parent")} that is not there`);
  return [...pages, ...references];
}

const POSTGRES_BYTES = `
  SELECT CAST(sum(pg_total_relation_size(CAST(name AS regclass))) AS BIGINT) AS bytes
  FROM unnest(CAST(? AS TEXT[])) AS name`;

/** How many bytes the store takes; 0 where a server of PostgreSQL's kin cannot say. */
async function storeBytes(connection: StoreConnection): Promise<number> {
  if (connection.kind === "sqlite") {
    return await connection.perform(pageBytes()) + (fileAt(`${connection.shown}-wal`)?.size ?? 0);
  }
  try {
    return whole(await connection.perform(get(POSTGRES_BYTES, TABLE_NAMES)), "bytes");
  } catch {
    return 0;
  }
}

function* pageBytes(): Work<number> {
  const pages = whole(yield* get("PRAGMA page_count"), "page_count");
  return pages * whole(yield* get("PRAGMA page_size"), "page_size");
}
