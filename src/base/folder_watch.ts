import { dirname } from "node:path";
import { FolderEvents, type FolderEventSource, type OpenFolderEvents } from "./folder_events.ts";
import type { FolderMessage } from "./folder_events_worker.ts";
import type { Logger } from "./log.ts";

/** Whether something happened directly in the folder, or in one above it. */
export type FolderEvent = "inside" | "around";

/** Which folders are watched. */
export interface FolderWatchOptions {
  /** The folder whose content counts; absent when only the folders around it are watched. */
  readonly folder: string | undefined;
  /** Folders in which the path to the folder may change; missing ones are skipped. */
  readonly around: readonly string[];
  /** What the folder contains, for the log. */
  readonly files: string;
  readonly onEvent: (event: FolderEvent) => void;
  readonly logger: Logger;
  /** Replaces the watch of the system. */
  readonly openEvents?: OpenFolderEvents | undefined;
}

interface Watched {
  readonly path: string;
  /** Differs when the folder was recreated, even with the same inode. */
  readonly identity: string;
}

/** How often a watch that ended is reopened immediately. */
const MAX_OUTAGES = 5;

/**
 * Watches folders that may be swapped, removed and recreated. The caller calls `arm` at the start, after every event and
 * periodically; it watches the folders that exist then, and reports an event when that watch has begun. Nothing throws:
 * a folder that cannot be watched is logged.
 */
export class FolderWatch {
  readonly #options: FolderWatchOptions;
  readonly #events: FolderEventSource;
  #watched: readonly Watched[] = [];
  #inside: string | undefined;
  #isStale = true;
  #isClosed = false;
  #warned = "";
  /** How often the watch ended since `forgive`. */
  #outages = 0;

  constructor(options: FolderWatchOptions) {
    this.#options = options;
    const { logger, openEvents = (events) => new FolderEvents(events) } = options;
    this.#events = openEvents({ logger, onMessage: (message) => this.#take(message) });
  }

  /** Watches the current folders; does nothing when they are already watched. */
  async arm(): Promise<void> {
    const { folder, around } = this.#options;
    const inside = folder === undefined ? undefined : await identify(folder);
    const found = [inside, ...await Promise.all(around.map(identify)), await nearest(around[0])];
    const watched = new Map(found.flatMap((one) => one === undefined ? [] : [[one.path, one] as const]));
    if (this.#isClosed) return;
    this.#inside = inside?.path;
    const next = [...watched.values()];
    if (this.#outages > MAX_OUTAGES) return;
    if (!this.#isStale && textOf(next) === textOf(this.#watched)) return;
    this.#isStale = false;
    this.#watched = next;
    this.#open(next.map(({ path }) => path));
  }

  /** Lets the next `arm` reopen a watch that ended too often. */
  forgive(): void {
    this.#outages = 0;
  }

  close(): void {
    this.#isClosed = true;
    this.#events.close();
  }

  #open(paths: readonly string[]): void {
    // The runtime drops events of a symbolic link whose target is outside of every watched path; `/` contains all.
    this.#events.watch([...new Set([...paths, "/"])]);
  }

  #take(message: FolderMessage): void {
    switch (message.type) {
      case "watching":
        this.#warned = "";
        return this.#options.onEvent("around");
      case "event":
        return this.#tell(message);
      case "unwatched":
        this.#isStale = true;
        return this.#warn(message.state);
      case "ended":
        return this.#noteOutage(message.state);
    }
  }

  /** The watch ended, for example by a name that is not UTF-8: the caller has to look for changes. */
  #noteOutage(error: string): void {
    const { files, logger, onEvent } = this.#options;
    this.#outages++;
    const isLast = this.#outages > MAX_OUTAGES;
    this.#isStale = isLast;
    const when = isLast ? "at the next re-scan" : "immediately";
    logger.warning(`The watch of the ${files} ended; reopening it ${when}`, { error });
    if (!isLast) this.#open(this.#watched.map(({ path }) => path));
    onEvent(this.#inside === undefined ? "around" : "inside");
  }

  #tell(event: Pick<Deno.FsEvent, "kind"> & { readonly paths: readonly string[] }): void {
    const inside = this.#inside;
    const isInside = inside !== undefined &&
      event.paths.some((path) => path === inside || dirname(path) === inside);
    // A replaced folder is no longer watched, even when everything looks the same.
    if (
      event.kind !== "modify" && event.paths.some((path) => this.#watched.some((one) => one.path === path))
    ) {
      this.#isStale = true;
    }
    this.#options.onEvent(isInside ? "inside" : "around");
  }

  #warn(error: string): void {
    if (error === this.#warned) return;
    this.#warned = error;
    const { files, logger } = this.#options;
    logger.warning(`Cannot watch the ${files}; relying on the re-scan`, { error });
  }
}

/** The folder under its real path: a path through a link cannot be watched again once the link moved. */
async function identify(path: string): Promise<Watched | undefined> {
  try {
    const real = await Deno.realPath(path);
    const { dev, ino, birthtime, isDirectory } = await Deno.stat(real);
    return isDirectory ? { path: real, identity: `${dev} ${ino} ${birthtime?.getTime()}` } : undefined;
  } catch {
    return undefined;
  }
}

/** The folder, or the nearest existing one above it. */
async function nearest(path: string | undefined): Promise<Watched | undefined> {
  if (path === undefined) return undefined;
  const found = await identify(path);
  if (found !== undefined || dirname(path) === path) return found;
  return await nearest(dirname(path));
}

function textOf(watched: readonly Watched[]): string {
  return watched.map(({ path, identity }) => `${path} ${identity}`).join("\n");
}
