import { MIGRATIONS, refuseVersion } from "../schema.ts";
import type { SqliteConnection } from "./connection.ts";

/** Migrates the tables to the newest version and returns it; several processes may do so concurrently. */
export function migrate(connection: SqliteConnection, migrations = MIGRATIONS.sqlite): number {
  const newest = migrations.length;
  if (schemaVersion(connection) === newest) return newest;
  connection.transaction(() => {
    const version = schemaVersion(connection);
    refuseVersion(connection.path, version, newest);
    for (const statement of migrations.slice(version).flat()) connection.script(statement);
    // A pragma takes no parameters.
    connection.script(`PRAGMA user_version = ${newest}`);
  });
  return newest;
}

/** The version of the tables; 0 for none. */
export function schemaVersion(connection: SqliteConnection): number {
  return Number(connection.get("PRAGMA user_version")?.["user_version"]);
}
