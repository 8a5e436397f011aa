import { refuseVersion, SCHEMA_VERSION } from "../schema.ts";
import { schemaVersion } from "../postgres/migration.ts";
import type { StoreConnection } from "./connection.ts";
import { whole } from "../rows.ts";
import { get, run, type Work } from "../work.ts";
import { StoreError } from "../store.ts";

/** The version of a store's schema; 0 for none. */
export function* versionOf({ kind, shown }: StoreConnection): Work<number> {
  if (kind === "postgres") return yield* schemaVersion(shown);
  return whole(yield* get("PRAGMA user_version"), "user_version");
}

/** The version of a store that this release knows; throws for a half-filled store, or none. */
export function* knownVersion(connection: StoreConnection): Work<number> {
  const version = yield* versionOf(connection);
  const { shown } = connection;
  refuseVersion(shown, version, SCHEMA_VERSION);
  if (version === 0) throw new StoreError("failed", `Cannot open the store "${shown}": it holds no store`);
  return version;
}

/** Writes another version, such as one that marks a store as half filled. */
export function* writeVersion({ kind }: StoreConnection, version: number): Work<void> {
  // A number cannot be a parameter of a pragma; this one is of our own making.
  const pragma = `PRAGMA user_version = ${version}`;
  yield* run(kind === "sqlite" ? pragma : `UPDATE schema_version SET version = ${version}`);
}
