import { type Clock, systemClock } from "./clock.ts";
import type { FolderMessage, ToFolderEvents } from "./folder_events_worker.ts";
import type { Logger } from "./log.ts";
import { SupervisedWorker } from "./supervised_worker.ts";

/** Where events of folders are reported. */
export interface FolderEventsOptions {
  readonly onMessage: (message: FolderMessage) => void;
  readonly logger: Logger;
  /** The system clock when absent: a worker lives in its time. */
  readonly clock?: Clock;
}

/** A source of the events of folders. */
export interface FolderEventSource {
  /** Watches these folders instead of the previous ones. */
  watch(folders: readonly string[]): void;
  close(): void;
}

/** Opens a source of events. */
export type OpenFolderEvents = (options: FolderEventsOptions) => FolderEventSource;

const HEARTBEAT_MS = 10_000;
const WATCH_TIMEOUT_MS = 60_000;
const MAX_PATIENCE = 60;
const WATCH = "start of the watch";

/** Watches folders in a worker, because a named pipe in one of them ends their events and blocks the next watch. */
export class FolderEvents implements FolderEventSource {
  readonly #worker: SupervisedWorker<ToFolderEvents, FolderMessage>;
  #folders: readonly string[] = [];

  constructor({ onMessage, logger, clock = systemClock }: FolderEventsOptions) {
    this.#worker = new SupervisedWorker({
      name: "Folder watch (a named pipe in a folder blocks it)",
      meanwhile: "re-scanning the folders",
      level: "warning",
      clock,
      logger,
      createWorker: () =>
        new Worker(new URL("./folder_events_worker.ts", import.meta.url), {
          type: "module",
          name: "folder events",
        }),
      startMessage: () => {
        this.#worker.expect(WATCH, WATCH_TIMEOUT_MS);
        return { type: "watch", folders: this.#folders };
      },
      onMessage: (message) => {
        this.#worker.settle(WATCH);
        onMessage(message);
      },
      onFailure: () => ({ folders: this.#folders.join(", ") }),
      ping: { type: "ping" },
      heartbeatMs: HEARTBEAT_MS,
      maxPatience: MAX_PATIENCE,
    });
  }

  watch(folders: readonly string[]): void {
    this.#folders = folders;
    if (this.#worker.isRunning) this.#worker.post({ type: "watch", folders });
    else this.#worker.start();
  }

  close(): void {
    this.#worker.terminate();
  }
}
