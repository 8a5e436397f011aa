import type { BellMessage, WatchedFolder } from "./bell.ts";

interface BellPort {
  postMessage(message: BellMessage): void;
  addEventListener(
    type: "message",
    listener: (event: MessageEvent<readonly WatchedFolder[]>) => void,
  ): void;
}

/** By the identities of their folders. */
const watchers = new Map<string, Deno.FsWatcher>();

/** Rings for the events of a folder until its watcher is closed. */
async function watch({ path, identity }: WatchedFolder, port: BellPort): Promise<void> {
  try {
    // The runtime drops events of a symbolic link whose target is outside of every watched path; `/` contains all.
    const watcher = Deno.watchFs([path, "/"], { recursive: false });
    watchers.set(identity, watcher);
    port.postMessage("ring");
    for await (const { kind } of watcher) {
      // Reading counts as access: answering that with another look would never end.
      if (kind !== "access") port.postMessage("ring");
    }
  } catch {
    // The folder is missing, or an event has a name that is not UTF-8.
    watchers.delete(identity);
    port.postMessage("ended");
  }
}

// A worker's module is the main module of its thread.
if (import.meta.main) {
  const port = globalThis as unknown as BellPort;
  port.addEventListener("message", ({ data: folders }) => {
    const identities = new Set(folders.map(({ identity }) => identity));
    for (const [identity, watcher] of watchers) {
      if (identities.has(identity)) continue;
      watchers.delete(identity);
      watcher.close();
    }
    for (const folder of folders) if (!watchers.has(folder.identity)) void watch(folder, port);
  });
}
