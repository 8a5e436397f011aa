import type { FromFolderEvents, ToFolderEvents } from "./folder_events_worker.ts";

/** Who is told of what happens in folders. */
export interface FolderEventsOptions {
  readonly onEvent: () => void;
  /** Called when the folders are not watched any more, with what is wrong. */
  readonly onFailed: (state: string) => void;
}

/**
 * Watches folders in a thread of its own, since a named pipe in one of them holds up the thread of
 * whoever closes the watch. The answer ends the watch.
 */
export function watchFolders(folders: readonly string[], options: FolderEventsOptions): () => void {
  const { onEvent, onFailed } = options;
  const worker = new Worker(new URL("./folder_events_worker.ts", import.meta.url), {
    type: "module",
    name: "folder events",
  });
  worker.onmessage = ({ data: { failed } }: MessageEvent<FromFolderEvents>) => {
    if (failed === undefined) onEvent();
    else onFailed(failed);
  };
  worker.onerror = (event) => {
    event.preventDefault();
    onFailed(event.message);
  };
  const message: ToFolderEvents = { folders };
  worker.postMessage(message);
  return () => worker.terminate();
}
