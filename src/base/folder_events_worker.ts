import { errorText } from "./error_text.ts";

/** What the worker is told: which folders it watches. */
export interface ToFolderEvents {
  readonly folders: readonly string[];
}

/** What it tells: something may have changed, or why it does not watch. */
export interface FromFolderEvents {
  readonly failed?: string;
}

/** The worker's side of its line to the main thread. */
interface WorkerPort {
  postMessage(message: FromFolderEvents): void;
  addEventListener(type: "message", listener: (event: MessageEvent<ToFolderEvents>) => void): void;
}

// A worker's module is the main module of its thread.
if (import.meta.main) {
  const port = globalThis as unknown as WorkerPort;
  port.addEventListener("message", ({ data: { folders } }) => void tellEvents(port, folders));
}

async function tellEvents(port: WorkerPort, folders: readonly string[]): Promise<void> {
  try {
    const watcher = open(folders);
    // Whatever happened before the watch was there is found by looking once more.
    port.postMessage({});
    for await (const event of watcher) {
      // Reading counts as access: answering that with another reading would never end.
      if (event.kind !== "access") port.postMessage({});
    }
  } catch (error) {
    port.postMessage({ failed: errorText(error) });
  }
}

/** Watches all of the folders by one watch: of a link into a folder that it does not watch it tells nothing. */
function open(folders: readonly string[]): Deno.FsWatcher {
  try {
    return Deno.watchFs([...folders], { recursive: false });
  } catch (error) {
    // One that is gone already, as the folder of the pair before is, must not take the others with it.
    const left = folders.filter(exists);
    if (left.length === 0 || left.length === folders.length) throw error;
    return open(left);
  }
}

function exists(folder: string): boolean {
  try {
    return Deno.statSync(folder).isDirectory;
  } catch {
    return false;
  }
}
