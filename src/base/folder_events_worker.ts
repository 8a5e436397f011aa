import { errorText } from "./error_text.ts";
import type { WorkerPort } from "./supervised_worker.ts";

/** A message to the worker. */
export type ToFolderEvents =
  /** Replaces the folders. */
  | { readonly type: "watch"; readonly folders: readonly string[] }
  /** Answered by `alive`, unless the watch is blocked. */
  | { readonly type: "ping" };

/** An event of the folders. */
export type FolderMessage =
  /** Events arrive from now on; earlier changes have to be looked for. */
  | { readonly type: "watching" }
  | { readonly type: "event"; readonly kind: Deno.FsEvent["kind"]; readonly paths: readonly string[] }
  | { readonly type: "unwatched"; readonly state: string }
  /** The watch ended, for example by a name that is not UTF-8. */
  | { readonly type: "ended"; readonly state: string };

type FolderPort = WorkerPort<ToFolderEvents, FolderMessage>;

class Watch {
  readonly #port: FolderPort;
  #folders: readonly string[] = [];
  #watcher: Deno.FsWatcher | undefined;

  constructor(port: FolderPort) {
    this.#port = port;
  }

  open(folders: readonly string[]): void {
    const before = this.#watcher;
    this.#watcher = undefined;
    this.#folders = folders;
    try {
      this.#watcher = openWatcher(folders);
      this.#port.postMessage({ type: "watching" });
      void this.#report(this.#watcher);
    } catch (error) {
      this.#port.postMessage({ type: "unwatched", state: errorText(error) });
    }
    before?.close();
  }

  /** Opens another watch, which blocks forever where a named pipe blocks the first one. */
  probe(): void {
    try {
      if (this.#watcher !== undefined) openWatcher(this.#folders).close();
    } catch {
      // A missing folder is reported by the watch itself.
    }
  }

  async #report(watcher: Deno.FsWatcher): Promise<void> {
    try {
      for await (const { kind, paths } of watcher) {
        // Reading counts as access: reacting to it by reading would never end.
        if (kind !== "access" && watcher === this.#watcher) {
          this.#port.postMessage({ type: "event", kind, paths });
        }
      }
    } catch (error) {
      if (watcher !== this.#watcher) return;
      this.#watcher = undefined;
      this.#port.postMessage({ type: "ended", state: errorText(error) });
    }
  }
}

/** Watches all folders by one watch, which alone follows links from one of them into another. */
function openWatcher(folders: readonly string[]): Deno.FsWatcher {
  try {
    return Deno.watchFs([...folders], { recursive: false });
  } catch (error) {
    // A folder that is already removed must not prevent watching the others.
    const left = folders.filter(exists);
    if (left.length === 0 || left.length === folders.length) throw error;
    return openWatcher(left);
  }
}

function exists(folder: string): boolean {
  try {
    return Deno.statSync(folder).isDirectory;
  } catch {
    return false;
  }
}

// The module of a worker is the main module of its thread.
if (import.meta.main) {
  const port = globalThis as unknown as FolderPort;
  const watch = new Watch(port);
  port.addEventListener("message", ({ data: message }) => {
    if (message.type === "watch") return watch.open(message.folders);
    watch.probe();
    port.postMessage({ type: "alive" });
  });
}
