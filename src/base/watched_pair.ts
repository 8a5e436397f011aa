import { dirname, resolve } from "node:path";
import type { Clock } from "./clock.ts";
import { FolderEvents } from "./folder_events.ts";
import type { Logger } from "./log.ts";
import type { TlsPair, TlsPairFiles } from "./tls_files.ts";
import { settledWithin } from "./wait.ts";

/** Which files are watched, and for whom. */
export interface WatchedPairOptions {
  readonly files: TlsPairFiles;
  readonly names: TlsPairFiles;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with every later pair, never with the first; when it throws, the pair before stays. */
  readonly onPair: (pair: TlsPair) => void | Promise<void>;
}

/** Several events belong to one change: this long after the first of them the files are read. */
const GATHER_MS = 100;
/** The files of a pair are replaced one after the other: so long they may not fit before that is told. */
const SETTLE_MS = 2_000;
const RETRY_MS = 250;
/** What no event tells, such as a folder that was removed and made again, is found so late at most. */
const LOOK_MS = 60_000;
/** How long the end waits for a file system that hangs. */
const CLOSE_MS = 1_000;

/**
 * A pair that is read anew when its files change. A new pair that cannot be used is logged and counted
 * once for each state of the files, and the pair before stays. What reads keys is loaded only by who has some.
 */
export class WatchedPair {
  readonly #options: WatchedPairOptions;
  readonly #events: FolderEvents;
  readonly #warned = new Set<string>();
  #current: TlsPair = { key: "", cert: "" };
  #figures = { reloaded: 0, failed: 0 };
  #looking: Promise<void> = Promise.resolve();
  #isLooking = false;
  #cancelMinute = () => {};
  #cancelSoon: (() => void) | undefined;
  #badSince: number | undefined;
  #reported = "";
  #isClosed = false;

  /** Reads the first pair; throws when it cannot be used. */
  static async open(options: WatchedPairOptions): Promise<WatchedPair> {
    const watched = new WatchedPair(options);
    watched.#current = await watched.#read();
    watched.#scheduleMinute();
    watched.#events.watch(await foldersOf(options.files));
    return watched;
  }

  private constructor(options: WatchedPairOptions) {
    this.#options = options;
    this.#events = new FolderEvents({
      logger: options.logger,
      onMessage: (message) => {
        if (message.type === "unwatched" || message.type === "ended") this.#warnUnwatched(message.state);
        this.#lookIn(GATHER_MS);
      },
    });
  }

  /** The pair in force. */
  get current(): TlsPair {
    return this.#current;
  }

  /** How many later pairs came into force, and how many could not. */
  get figures(): { readonly reloaded: number; readonly failed: number } {
    return this.#figures;
  }

  /** Ends the watch. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelMinute();
    this.#cancelSoon?.();
    this.#events.close();
    await settledWithin(this.#looking, CLOSE_MS, this.#options.clock);
  }

  #warnUnwatched(state: string): void {
    const { logger, files, names } = this.#options;
    const text = `Cannot watch the folder of ${names.cert} ${JSON.stringify(files.cert)}: ${state}`;
    if (!this.#isClosed) logger.warning(`${text}; changes are found within a minute only`);
  }

  #scheduleMinute(): void {
    this.#cancelMinute = this.#options.clock.after(LOOK_MS, () => {
      this.#scheduleMinute();
      this.#lookIn(0);
    });
  }

  #lookIn(delayMs: number): void {
    if (this.#isClosed || this.#cancelSoon !== undefined) return;
    this.#cancelSoon = this.#options.clock.after(delayMs, () => {
      this.#cancelSoon = undefined;
      // A file system that hangs keeps a thread for each read, so there is one look at a time.
      if (this.#isLooking) return this.#lookIn(RETRY_MS);
      this.#isLooking = true;
      this.#looking = this.#look().finally(() => void (this.#isLooking = false));
    });
  }

  async #look(): Promise<void> {
    const { files, onPair, logger, names } = this.#options;
    const state = await stateOf(files);
    try {
      const pair = await this.#read();
      if (this.#isClosed) return;
      if (!isSame(pair, this.#current)) {
        await onPair(pair);
        this.#current = pair;
        this.#figures.reloaded++;
        logger.info(`A new pair of ${names.cert} and ${names.key} is in force`, { file: files.cert });
      }
      this.#badSince = undefined;
      this.#reported = "";
    } catch (error) {
      if (!this.#isClosed) this.#takeBad(error, state);
    }
  }

  #takeBad(error: unknown, state: string): void {
    const { clock, logger, names } = this.#options;
    if (state === this.#reported) return;
    const now = clock.elapsed();
    this.#badSince ??= now;
    if (now - this.#badSince < SETTLE_MS) return this.#lookIn(RETRY_MS);
    this.#badSince = undefined;
    this.#reported = state;
    this.#figures.failed++;
    logger.error(`The new pair of ${names.cert} and ${names.key} is not taken, the one before stays`, {
      error,
    });
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

/** The folders in which something happens when a file or a link to it is replaced. */
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

/** Another text whenever one of the files is another or was written to. */
async function stateOf(files: TlsPairFiles): Promise<string> {
  const { stat } = await import("node:fs/promises");
  const states = pathsOf(files).map(async (path) => {
    const found = await stat(path).catch(() => undefined);
    return found === undefined ? "-" : `${found.ino} ${found.size} ${found.mtimeMs}`;
  });
  return (await Promise.all(states)).join(", ");
}

function pathsOf({ cert, key, ca }: TlsPairFiles): string[] {
  return ca === undefined ? [cert, key] : [cert, key, ca];
}

function isSame(one: TlsPair, other: TlsPair): boolean {
  return one.key === other.key && one.cert === other.cert && one.ca === other.ca;
}
