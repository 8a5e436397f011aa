import { dirname, resolve } from "node:path";
import type { Clock } from "./clock.ts";
import { fileState } from "./file_state.ts";
import { FolderEvents, type FolderEventSource, type OpenFolderEvents } from "./folder_events.ts";
import type { Logger } from "./log.ts";
import type { TlsPair, TlsPairFiles } from "./tls_files.ts";
import { settledWithin } from "./wait.ts";
import { WakeLoop } from "./wake_loop.ts";

interface WatchedPairOptions {
  readonly files: TlsPairFiles;
  readonly names: TlsPairFiles;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with every later pair; when it throws, the previous pair stays. */
  readonly onPair: (pair: TlsPair) => void | Promise<void>;
  /** Replaces the watch of the system. */
  readonly openEvents?: OpenFolderEvents;
}

/** Files are read this long after the first of several events. */
const GATHER_MS = 100;
/** How long the files of a pair may mismatch while they are replaced one by one. */
const SETTLE_MS = 2_000;
const RETRY_MS = 250;
/** How often changes without an event are looked for, such as a recreated folder. */
const POLL_MS = 60_000;
/** How long `close` waits for a file system that hangs. */
const CLOSE_MS = 1_000;

/**
 * Reloads a pair when its files change. An unusable pair is logged and counted once for each state of the files, and the
 * previous pair stays.
 */
export class WatchedPair {
  readonly #options: WatchedPairOptions;
  readonly #events: FolderEventSource;
  readonly #loop: WakeLoop;
  readonly #warned = new Set<string>();
  #current: TlsPair = { key: "", cert: "" };
  #metrics = { reloaded: 0, failed: 0 };
  #badSince: number | undefined;
  /** The state of the files whose problem was logged. */
  #reported = "";

  /** Reads the first pair; throws when it is unusable. */
  static async open(options: WatchedPairOptions): Promise<WatchedPair> {
    const watched = new WatchedPair(options);
    watched.#current = await watched.#read();
    watched.#events.watch(await foldersOf(options.files));
    watched.#loop.start();
    return watched;
  }

  private constructor(options: WatchedPairOptions) {
    this.#options = options;
    // A hanging file system blocks a thread for each read: the loop makes one read at a time.
    this.#loop = new WakeLoop({ clock: options.clock, pollMs: POLL_MS, round: () => this.#look() });
    const { openEvents = (events) => new FolderEvents(events) } = options;
    this.#events = openEvents({
      logger: options.logger,
      onMessage: (message) => {
        if (message.type === "unwatched" || message.type === "ended") this.#warnUnwatched(message.state);
        this.#loop.wakeIn(GATHER_MS);
      },
    });
  }

  get current(): TlsPair {
    return this.#current;
  }

  /** How many later pairs were applied, and how many were unusable. */
  get metrics(): { readonly reloaded: number; readonly failed: number } {
    return this.#metrics;
  }

  async close(): Promise<void> {
    this.#events.close();
    await settledWithin(this.#loop.stop(), CLOSE_MS, this.#options.clock);
  }

  #warnUnwatched(state: string): void {
    const { logger, files, names } = this.#options;
    const text = `Cannot watch the folder of ${names.cert} ${JSON.stringify(files.cert)}: ${state}`;
    if (this.#loop.isRunning) logger.warning(`${text}; polling every minute`);
  }

  async #look(): Promise<boolean> {
    const { files, onPair, logger, names } = this.#options;
    const state = (await Promise.all(pathsOf(files).map(fileState))).join(", ");
    try {
      const pair = await this.#read();
      if (!this.#loop.isRunning) return false;
      if (!isSame(pair, this.#current)) {
        await onPair(pair);
        this.#current = pair;
        this.#metrics.reloaded++;
        logger.info(`Certificates of ${names.cert} and ${names.key} reloaded`, { file: files.cert });
      }
      this.#badSince = undefined;
      this.#reported = "";
    } catch (error) {
      if (this.#loop.isRunning) this.#noteFailure(error, state);
    }
    return false;
  }

  #noteFailure(error: unknown, state: string): void {
    const { clock, logger, names } = this.#options;
    if (state === this.#reported) return;
    const now = clock.elapsed();
    this.#badSince ??= now;
    if (now - this.#badSince < SETTLE_MS) return this.#loop.wakeIn(RETRY_MS);
    this.#badSince = undefined;
    this.#reported = state;
    this.#metrics.failed++;
    logger.error(`Reload of ${names.cert} and ${names.key} rejected; keeping the previous pair`, { error });
  }

  async #read(): Promise<TlsPair> {
    const { files, names, clock, logger } = this.#options;
    const { readTlsPair } = await import("./tls_files.ts");
    const { warnings, ...pair } = await readTlsPair(files, names, { clock });
    for (const warning of warnings) if (!this.#warned.has(warning)) logger.warning(warning);
    this.#warned.clear();
    for (const warning of warnings) this.#warned.add(warning);
    return pair;
  }
}

/** The folders with events when a file, or a link to it, is replaced. */
async function foldersOf(files: TlsPairFiles): Promise<string[]> {
  const { realpath } = await import("node:fs/promises");
  const folders = await Promise.all(
    pathsOf(files).map(async (path) => {
      const target = await realpath(path).catch(() => undefined);
      return target === undefined ? [] : [await realpath(dirname(resolve(path))), dirname(target)];
    }),
  );
  return [...new Set(folders.flat())];
}

function pathsOf({ cert, key, ca }: TlsPairFiles): string[] {
  return ca === undefined ? [cert, key] : [cert, key, ca];
}

function isSame(one: TlsPair, other: TlsPair): boolean {
  return one.key === other.key && one.cert === other.cert && one.ca === other.ca;
}
