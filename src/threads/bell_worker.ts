import type { BellMessage, WatchedFolder } from "./bell.ts";

interface BellPort {
  postMessage(message: BellMessage): void;
  addEventListener(
    type: "message",
    listener: (event: MessageEvent<readonly WatchedFolder[]>) => void,
  ): void;
}

/** Rings for the events of a folder; its thread is ended to watch others. */
async function watch({ path }: WatchedFolder, port: BellPort): Promise<void> {
  try {
    // The runtime drops events of a symbolic link whose target is outside of every watched path; `/` contains all.
    const watcher = Deno.watchFs([path, "/"], { recursive: false });
    port.postMessage("ring");
    for await (const { kind } of watcher) {
      // Reading counts as access: answering that with another look would never end.
      if (kind !== "access") port.postMessage("ring");
    }
  } catch {
    // The folder is missing, or an event has a name that is not UTF-8.
    port.postMessage("ended");
  }
}

// A worker's module is the main module of its thread.
if (import.meta.main) {
  const port = globalThis as unknown as BellPort;
  port.addEventListener("message", ({ data: folders }) => {
    for (const folder of folders) void watch(folder, port);
  });
}
