import { refuseHalfFilled } from "../half_filled.ts";
import { schemaVersion } from "../postgres/migration.ts";
import { MIGRATIONS } from "../sqlite/schema.ts";
import type { StoreConnection } from "./connection.ts";
import { whole } from "../rows.ts";
import { get, run, type Work } from "../work.ts";
import { StoreError } from "../store.ts";

/** The newest version of the schema, which means the same in each database. */
export const NEWEST_VERSION = MIGRATIONS.length;

/** The version of a store's schema; 0 for none. */
export function* versionOf({ kind, shown }: StoreConnection): Work<number> {
  if (kind === "postgres") return yield* schemaVersion(shown);
  return whole(yield* get("PRAGMA user_version"), "user_version");
}

/** The version of a store that is whole, and that this release knows. */
export function* knownVersion(connection: StoreConnection): Work<number> {
  const version = yield* versionOf(connection);
  if (version >= 1 && version <= NEWEST_VERSION) return version;
  const { shown } = connection;
  refuseHalfFilled(shown, version);
  const state = version === 0 ? "it holds no store" : `its schema has version ${version}`;
  throw new StoreError(
    "failed",
    `Cannot open the store "${shown}": ${state}, this release knows 1 to ${NEWEST_VERSION}`,
  );
}

/** Writes another version, such as one that marks a store as half filled. */
export function* writeVersion({ kind }: StoreConnection, version: number): Work<void> {
  // A number cannot be a parameter of a pragma; this one is of our own making.
  const pragma = `PRAGMA user_version = ${version}`;
  yield* run(kind === "sqlite" ? pragma : `UPDATE schema_version SET version = ${version}`);
}
