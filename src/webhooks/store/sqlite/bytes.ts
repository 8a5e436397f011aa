import type { SqliteConnection } from "./connection.ts";
import { whole } from "../rows.ts";

/** How many bytes the database and the log beside it hold. */
export function storeBytes(connection: SqliteConnection): number {
  const pages = whole(connection.get("PRAGMA page_count"), "page_count");
  return pages * whole(connection.get("PRAGMA page_size"), "page_size") + fileBytes(`${connection.path}-wal`);
}

function fileBytes(path: string): number {
  try {
    return Deno.statSync(path).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return 0;
    throw error;
  }
}
