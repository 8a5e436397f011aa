import { type Clock, systemClock } from "./clock.ts";
import { errorText } from "./error_text.ts";
import type { FolderMessage, FromFolderEvents, ToFolderEvents } from "./folder_events_worker.ts";
import type { Logger } from "./log.ts";
import { WorkerPulse } from "./worker_pulse.ts";

/** Who is told of what happens in folders. */
export interface FolderEventsOptions {
  readonly onMessage: (message: FolderMessage) => void;
  readonly logger: Logger;
  /** The clock of the machine when absent: a worker lives in its time, whatever the time of the caller is. */
  readonly clock?: Clock;
}

/**
 * Watches folders in a worker, because a named pipe in one of them ends their events for good and holds up the thread
 * that opens the next watch. A worker that does not answer is replaced.
 */
export class FolderEvents {
  readonly #options: FolderEventsOptions;
  readonly #pulse: WorkerPulse;
  #folders: readonly string[] = [];
  #worker: Worker | undefined;

  constructor(options: FolderEventsOptions) {
    this.#options = options;
    this.#pulse = new WorkerPulse({
      clock: options.clock ?? systemClock,
      ping: () => this.#send({ type: "ping" }),
      onSilence: (seconds) => this.#replace(seconds),
    });
  }

  /** Watches these folders in place of those before. */
  watch(folders: readonly string[]): void {
    this.#folders = folders;
    if (this.#worker === undefined) this.#start();
    else this.#send({ type: "watch", folders });
  }

  /** Ends the watch. */
  close(): void {
    this.#pulse.stop();
    this.#worker?.terminate();
    this.#worker = undefined;
  }

  #send(message: ToFolderEvents): void {
    this.#worker?.postMessage(message);
  }

  #start(): void {
    this.#pulse.start();
    try {
      const worker = new Worker(new URL("./folder_events_worker.ts", import.meta.url), {
        type: "module",
        name: "folder events",
      });
      this.#worker = worker;
      worker.onmessage = ({ data }) => {
        if (worker === this.#worker) this.#take(data);
      };
      worker.onerror = (event) => {
        // Otherwise it would end the process. Its silence has it replaced.
        event.preventDefault();
        if (worker === this.#worker) this.#options.onMessage({ type: "unwatched", state: event.message });
      };
      this.#send({ type: "watch", folders: this.#folders });
    } catch (error) {
      this.#options.onMessage({ type: "unwatched", state: errorText(error) });
    }
  }

  #take(message: FromFolderEvents): void {
    if (message.type === "alive") return this.#pulse.noteAnswer();
    this.#pulse.noteLoad();
    this.#options.onMessage(message);
  }

  #replace(seconds: number): void {
    this.#worker?.terminate();
    this.#options.logger.warning(
      "The folder watch does not answer, as with a named pipe in a folder; replacing it",
      {
        folders: this.#folders.join(", "),
        silentSeconds: seconds,
      },
    );
    this.#start();
  }
}
