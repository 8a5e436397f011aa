import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { openSqliteStore, type SqliteStoreOptions } from "../../src/webhooks/store/sqlite/store.ts";
import type { WebhookStore } from "../../src/webhooks/store/store.ts";

const silent = () => {};

/** A logger that says nothing. */
export const QUIET = { debug: silent, info: silent, warning: silent, error: silent };

/** For stores of tests, which outlast a crash of the process and need not outlast one of the machine. */
export const UNSYNCED = { pragmas: ["synchronous = OFF"] };

/** A store that an `await using` closes. */
export type OpenedStore = WebhookStore & AsyncDisposable;

/** The same, closed at the end of an `await using`; closing it before does no harm. */
export function closing<T extends { close(): Promise<void> }>(opened: T): T & AsyncDisposable {
  return Object.assign(opened, { [Symbol.asyncDispose]: () => opened.close() });
}

/** A folder of a test, removed at its end. */
export class StoreFolder implements Disposable {
  readonly #folder = Deno.makeTempDirSync({ prefix: "weir-store-" });

  /** The database file in it, in a folder that is not there yet. */
  readonly path = join(this.#folder, "data", "weir.db");

  /** Another file in it. */
  file(name: string): string {
    return join(this.#folder, name);
  }

  /** Opens the store, which an `await using` closes. */
  async open(options: Partial<SqliteStoreOptions> = {}) {
    const own = { path: this.path, logger: QUIET, clock: systemClock, ...UNSYNCED };
    return closing(await openSqliteStore({ ...own, ...options }));
  }

  /** Removes everything. */
  [Symbol.dispose](): void {
    Deno.removeSync(this.#folder, { recursive: true });
  }
}
