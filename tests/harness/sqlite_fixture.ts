import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { openSqliteStore, type SqliteStoreOptions } from "../../src/webhooks/store/sqlite/store.ts";

const silent = () => {};

/** A logger that says nothing. */
export const QUIET = { debug: silent, info: silent, warning: silent, error: silent };

/** For stores of tests, which outlast a crash of the process and need not outlast one of the machine. */
export const UNSYNCED = { pragmas: ["synchronous = OFF"] };

/** A folder of a test, removed at its end. */
export class StoreFolder implements Disposable {
  readonly #folder = Deno.makeTempDirSync({ prefix: "weir-store-" });

  /** The database file in it, in a folder that is not there yet. */
  readonly path = join(this.#folder, "data", "weir.db");

  /** Another file in it. */
  file(name: string): string {
    return join(this.#folder, name);
  }

  /** Opens the store. */
  open(options: Partial<SqliteStoreOptions> = {}) {
    return openSqliteStore({ path: this.path, logger: QUIET, clock: systemClock, ...UNSYNCED, ...options });
  }

  /** Removes everything. */
  [Symbol.dispose](): void {
    Deno.removeSync(this.#folder, { recursive: true });
  }
}
