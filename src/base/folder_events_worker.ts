import { errorText } from "./error_text.ts";
import type { WorkerPort } from "./supervised_worker.ts";

/** A message to the worker. */
export type ToFolderEvents =
  /** Takes the place of the folders before. */
  | { readonly type: "watch"; readonly folders: readonly string[] }
  /** Is answered by `alive`, unless the watch is blocked. */
  | { readonly type: "ping" };

/** What happens to the folders. */
export type FolderMessage =
  /** Events come from now on; earlier changes have to be looked for. */
  | { readonly type: "watching" }
  | { readonly type: "event"; readonly kind: Deno.FsEvent["kind"]; readonly paths: readonly string[] }
  /** The folders cannot be watched. */
  | { readonly type: "unwatched"; readonly state: string }
  /** The watch ended, as by a name that is not UTF-8. */
  | { readonly type: "ended"; readonly state: string };

type FolderPort = WorkerPort<ToFolderEvents, FolderMessage>;

/** One watch at a time, and its events. */
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

  /** Opens a watch that is not needed: where a named pipe holds up the first one, that never returns. */
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
        // Reading counts as access: answering that with another reading would never end.
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

/** Watches all folders by one watch, which reports nothing of a link into another folder. */
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

// A worker's module is the main module of its thread.
if (import.meta.main) {
  const port = globalThis as unknown as FolderPort;
  const watch = new Watch(port);
  port.addEventListener("message", ({ data: message }) => {
    if (message.type === "watch") return watch.open(message.folders);
    watch.probe();
    port.postMessage({ type: "alive" });
  });
}
