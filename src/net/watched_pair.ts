import { dirname, resolve } from "node:path";
import type { Bell } from "../threads/bell.ts";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { TlsPair, TlsPairFiles } from "./tls_files.ts";
import { fileStates, WatchedFiles } from "../threads/watched_files.ts";

interface WatchedPairOptions {
  readonly files: TlsPairFiles;
  readonly names: TlsPairFiles;
  readonly bell: Bell;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with every later pair; when it throws, the previous pair stays. */
  readonly onPair: (pair: TlsPair) => void | Promise<void>;
}

/** Time that the files of a pair may mismatch while they are replaced one by one. */
const MISMATCH_MS = 2_000;
/** Unchanged files are read again after this long, for certificates that expire meanwhile. */
const REREAD_MS = 60_000;

/**
 * Reloads a pair when its files change. An unusable pair is logged and counted once for each state of the files, and the
 * previous pair stays.
 */
export class WatchedPair {
  readonly #options: WatchedPairOptions;
  readonly #watched: WatchedFiles;
  #warned: ReadonlySet<string> = new Set();
  #current: TlsPair = { key: "", cert: "" };
  #metrics = { reloaded: 0, failed: 0 };
  #badSince: number | undefined;
  /** The state of the files whose problem was logged. */
  #reported = "";

  /** Reads the first pair; throws when it is unusable. */
  static async open(options: WatchedPairOptions): Promise<WatchedPair> {
    const pair = new WatchedPair(options);
    pair.#current = await pair.#read();
    void pair.#watched.start();
    return pair;
  }

  private constructor(options: WatchedPairOptions) {
    const { files, bell, clock } = options;
    this.#options = options;
    this.#watched = new WatchedFiles({
      look: async () => `${await fileStates(pathsOf(files))}\n${Math.floor(clock.now() / REREAD_MS)}`,
      onChange: () => this.#renew(),
      bell,
      folders: () => foldersOf(files),
      clock,
    });
  }

  get current(): TlsPair {
    return this.#current;
  }

  /** The number of later pairs that were applied, and of unusable ones. */
  get metrics(): { readonly reloaded: number; readonly failed: number } {
    return this.#metrics;
  }

  async close(): Promise<void> {
    await this.#watched.close();
  }

  /** Applies the pair if it is another one; an unusable one is tried again. */
  async #renew(): Promise<boolean> {
    const { files, names, onPair, logger } = this.#options;
    const state = await fileStates(pathsOf(files));
    try {
      const pair = await this.#read();
      if (!this.#watched.isRunning) return false;
      if (!isSame(pair, this.#current)) {
        await onPair(pair);
        this.#current = pair;
        this.#metrics.reloaded++;
        logger.info(`Certificates of ${names.cert} and ${names.key} reloaded`, { file: files.cert });
      }
      this.#badSince = undefined;
      this.#reported = "";
      return false;
    } catch (error) {
      if (this.#watched.isRunning) this.#noteFailure(error, state);
      return true;
    }
  }

  #noteFailure(error: unknown, state: string): void {
    const { clock, logger, names } = this.#options;
    if (state === this.#reported) return;
    const now = clock.elapsed();
    this.#badSince ??= now;
    if (now - this.#badSince < MISMATCH_MS) return;
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
    this.#warned = new Set(warnings);
    return pair;
  }
}

/** The folders with events when a file, or a link to it, is replaced. */
async function foldersOf(files: TlsPairFiles): Promise<string[]> {
  const folders: string[] = [];
  for (const path of pathsOf(files)) {
    folders.push(dirname(resolve(path)));
    const target = await Deno.realPath(path).catch(() => undefined);
    if (target !== undefined) folders.push(dirname(target));
  }
  return folders;
}

function pathsOf({ cert, key, ca }: TlsPairFiles): string[] {
  return ca === undefined ? [cert, key] : [cert, key, ca];
}

function isSame(one: TlsPair, other: TlsPair): boolean {
  return one.key === other.key && one.cert === other.cert && one.ca === other.ca;
}
