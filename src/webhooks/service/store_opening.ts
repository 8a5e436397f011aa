import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { DispatchLock } from "../store/sqlite/dispatch_lock.ts";
import { openSqliteStore } from "../store/sqlite/store.ts";
import type { WebhookStore } from "../store/store.ts";
import { StoreClock } from "../store/clock.ts";
import type { SharedFigures } from "./metrics.ts";
import type { PostgresSettings } from "./message.ts";
import type { TakenWork } from "./background_work.ts";

/** What a store is opened with. */
export interface StoreOpening {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Told how long each commit took. */
  readonly onCommit: (elapsedMs: number) => void;
  /** Said to a database file when it is opened. */
  readonly pragmas?: readonly string[] | undefined;
}

/** A store, and what depends on its kind. */
export interface OpenedStore {
  readonly store: WebhookStore;
  /** The time of all that is stored. */
  readonly clock: Clock;
  /** Where a key is made beside the store; absent where the settings have to name one. */
  readonly keyFile?: string | undefined;
  /** Takes over the work of the store; nothing while another process alone has it. */
  readonly takeLock: () => TakenWork | undefined;
  /** How a store that several machines share stands. */
  readonly sharedFigures?: (() => SharedFigures) | undefined;
  /** What is closed before the store. */
  readonly closed: readonly { close(): Promise<void> }[];
}

/** Opens a database file: of the processes that have it open one does the work. */
export async function openFileStore(path: string, opening: StoreOpening): Promise<OpenedStore> {
  const { clock } = opening;
  const store = await openSqliteStore({ ...opening, path });
  const takeLock = () => {
    const lock = DispatchLock.take(path);
    if (lock === undefined) return undefined;
    return { isSole: true, keep: () => lock.keep(), release: () => lock.release() };
  };
  return { store, clock, keyFile: `${path}.key`, takeLock, closed: [] };
}

/** Opens a PostgreSQL, where every process works, by the time of the database. */
export async function openSharedStore(
  postgres: PostgresSettings,
  { clock: wallClock, logger, onCommit }: StoreOpening,
): Promise<OpenedStore> {
  // Whoever has a file needs none of it.
  const { openPostgresStore } = await import("../store/postgres/store.ts");
  const clock = new StoreClock({ clock: wallClock, logger });
  const onConnected = () => clock.remeasure();
  const store = await openPostgresStore({ ...postgres, clock, logger, onCommit, onConnected });
  try {
    await clock.start(() => store.databaseTime());
  } catch (error) {
    await store.close();
    throw error;
  }
  const sharedFigures = () => ({
    repeats: store.transactionRetries,
    wallAheadMs: clock.wallAheadMs,
    problem: clock.problem,
  });
  return { store, clock, takeLock: () => SHARED, sharedFigures, closed: [clock] };
}

const SHARED: TakenWork = { isSole: false, keep: () => true, release: () => {} };
