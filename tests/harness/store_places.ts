import { DatabaseSync } from "node:sqlite";
import { emptyDatabase, openStoreAt, usePostgres } from "./postgres_fixture.ts";
import type { PostgresDatabase } from "./postgres_server.ts";
import { type OpenedStore, StoreFolder } from "./sqlite_fixture.ts";
import { needing } from "./tools.ts";

/** An empty place for a store: a file that does not exist, or a database. */
export interface StorePlace {
  readonly kind: "sqlite" | "postgres";
  /** The path or the URL. */
  readonly address: string;
  /** The address as it may be shown. */
  readonly shown: string;
  /** Opens another object on the same store, as another process would; an `await using` closes it. */
  open(): Promise<OpenedStore>;
  /** Carries out SQL as somebody who is no service. */
  execute(sql: string): Promise<unknown>;
}

/** A file, in a folder that is removed at the end. */
export function filePlace(folder: StoreFolder, path = folder.path): StorePlace {
  return {
    kind: "sqlite",
    address: path,
    shown: path,
    open: () => folder.open({ path }),
    execute(sql) {
      using database = new DatabaseSync(path);
      return Promise.resolve(database.exec(sql));
    },
  };
}

/** A database. */
export function databasePlace(database: PostgresDatabase): StorePlace {
  const address = database.url();
  const execute = (sql: string) => database.psql(sql);
  return { kind: "postgres", address, shown: database.shown, open: () => openStoreAt(address), execute };
}

/** Registers tests for a store in a file and for one on PostgreSQL, each with an empty place. */
export const stores = {
  test(name: string, run: (place: StorePlace) => Promise<void>): void {
    usePostgres();
    Deno.test(`${name} (sqlite)`, async () => {
      using folder = new StoreFolder();
      await run(filePlace(folder));
    });
    needing("postgres").test(`${name} (postgres)`, async () => run(databasePlace(await emptyDatabase())));
  },
};
