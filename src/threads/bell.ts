/** A folder under its real path. */
export interface WatchedFolder {
  readonly path: string;
  /** Differs when the folder was replaced by another one. */
  readonly identity: string;
}

/**
 * Rings when something may have changed in folders, and also when it begins to watch one. It may be silent for good, so a
 * listener also has to look from time to time. The runtime opens and closes the files of events, which drops locks that
 * the process has on them.
 */
export interface Bell {
  /** Rings for these folders, in place of the listener's previous ones; for none it forgets the listener. */
  watch(onRing: () => void, folders: readonly WatchedFolder[]): void;
}

/** A message of the bell's worker; after `ended`, the folders have to be sent again. */
export type BellMessage = "ring" | "ended";

/**
 * The bell of this thread, in a worker: a named pipe in a folder, or a file system that hangs, blocks the thread of a
 * watch for good.
 */
class WorkerBell implements Bell {
  readonly #folders = new Map<() => void, readonly WatchedFolder[]>();
  #worker: Worker | undefined;
  /** The identities that the worker was given. */
  #watched = "";

  watch(onRing: () => void, folders: readonly WatchedFolder[]): void {
    if (folders.length > 0) this.#folders.set(onRing, folders);
    else this.#folders.delete(onRing);
    const all = new Map([...this.#folders.values()].flat().map((folder) => [folder.identity, folder]));
    const watched = [...all.keys()].sort().join("\n");
    if (watched === this.#watched) return;
    this.#watched = watched;
    if (all.size === 0) return this.#end();
    try {
      // In the same thread, a folder that was made anew would not be watched again.
      this.#worker?.terminate();
      this.#worker = this.#open();
      this.#worker.postMessage([...all.values()]);
    } catch {
      // Without another thread the bell is silent; the next look tries again.
      this.#end();
    }
  }

  #open(): Worker {
    const worker = new Worker(new URL("./bell_worker.ts", import.meta.url), { type: "module", name: "bell" });
    worker.onmessage = ({ data: message }: MessageEvent<BellMessage>) => {
      if (message === "ring") { for (const ring of [...this.#folders.keys()]) ring(); }
      else this.#watched = "";
    };
    worker.onerror = (event) => {
      // Otherwise it would end the process. The next look opens another worker.
      event.preventDefault();
      this.#end();
    };
    return worker;
  }

  #end(): void {
    this.#watched = "";
    this.#worker?.terminate();
    this.#worker = undefined;
  }
}

/** The bell of this thread. */
export const systemBell: Bell = new WorkerBell();
