import { join } from "node:path";
import type { Bell, WatchedFolder } from "./bell.ts";
import type { Clock } from "../base/clock.ts";
import { settledWithin } from "../base/wait.ts";
import { WakeLoop } from "./wake_loop.ts";

/** Which files are watched, and what is done when they change. */
export interface WatchedFilesOptions {
  /** Returns a text that differs after every change. Never rejects. */
  readonly look: () => Promise<string>;
  /** Reads the files; answers whether it has to be called again without a change. Never rejects. */
  readonly onChange: () => Promise<boolean>;
  /** Asks for a look after events in folders, where their files hold no locks. */
  readonly bell?: Bell | undefined;
  /** The folders that the bell rings for; missing ones are skipped. Read at every look. */
  readonly folders?: () => readonly string[] | Promise<readonly string[]>;
  readonly clock: Clock;
  /** A look follows at least this often, with a bell too; `LOOK_MS` when absent. */
  readonly lookMs?: number;
  /** Files are seldom changed in one step: they are read once two looks that are so far apart agree; 50 when absent. */
  readonly settleMs?: number;
}

/** A look follows at least this often: a bell may be silent. */
export const LOOK_MS = 2_000;
const SETTLE_MS = 50;
/** Files that change all the time are read after so many times that. */
const LONGEST_CHANGES = 20;
/** The looks at a change are followed by a rest of so many times their duration: looking takes at most 2 % of a thread. */
const REST_RATIO = 50;
const MAX_REST_MS = 30_000;
/** Time that `close` waits for a file system that hangs. */
const CLOSE_MS = 1_000;

/**
 * Notices changes of files by comparing what two looks see. Looks follow one another, because each one on a file system
 * that hangs blocks a thread.
 */
export class WatchedFiles {
  readonly #options: WatchedFilesOptions;
  readonly #loop: WakeLoop;
  readonly #started = Promise.withResolvers<void>();
  readonly #onRing = () => this.#loop.wake();
  /** The fingerprint of the last look; undefined before the first. */
  #seen: string | undefined;
  /** The fingerprint at which the files were read; undefined when they have to be read again. */
  #read: string | undefined;
  /** When the difference began, by the clock's `elapsed`. */
  #changedAt = Infinity;
  /** No look begins earlier, unless it was asked for. */
  #restUntil = 0;
  /** The duration of the looks since the last rest. */
  #lookedMs = 0;
  #isDue = true;

  constructor(options: WatchedFilesOptions) {
    this.#options = options;
    const { clock, lookMs = LOOK_MS } = options;
    this.#loop = new WakeLoop({ clock, pollMs: lookMs, round: () => this.#round() });
  }

  /** False before the start and from the closing on. */
  get isRunning(): boolean {
    return this.#loop.isRunning;
  }

  /** Begins to look; settles when the files were read for the first time. */
  start(): Promise<void> {
    this.#loop.start();
    return this.#started.promise;
  }

  /** Reads the files now, whether they changed or not. */
  readNow(): void {
    this.#isDue = true;
    this.#loop.wake();
  }

  async close(): Promise<void> {
    const ended = this.#loop.stop();
    this.#options.bell?.watch(this.#onRing, []);
    await settledWithin(ended, CLOSE_MS, this.#options.clock);
  }

  /** Looks, and reads the files where that is due; answers whether it is due again. */
  async #round(): Promise<boolean> {
    const { clock, settleMs = SETTLE_MS } = this.#options;
    const isDue = this.#isDue;
    const leftMs = this.#restUntil - clock.elapsed();
    if (!isDue && leftMs > 0) return this.#lookIn(leftMs);
    this.#isDue = false;
    const before = this.#seen;
    const isFirst = before === undefined;
    // Before the look, so that the bell rings for a change after it. Opening it would delay the first reading.
    if (!isFirst) await this.#watchFolders();
    const now = await this.#look();
    if (!this.isRunning) return false;
    const isSettled = isDue || this.#seen === before;
    const isChanged = isDue || this.#seen !== this.#read;
    if (isChanged) this.#changedAt = Math.min(this.#changedAt, now);
    if (isChanged && !isSettled && now - this.#changedAt < LONGEST_CHANGES * settleMs) {
      this.#restUntil = now + settleMs;
      return this.#lookIn(settleMs);
    }
    this.#changedAt = Infinity;
    const restMs = isFirst
      ? settleMs
      : Math.min(Math.max(settleMs, this.#lookedMs * REST_RATIO), MAX_REST_MS);
    this.#restUntil = now + restMs;
    this.#lookedMs = 0;
    if (!isChanged) return false;
    const seen = this.#seen;
    const isRepeated = await this.#options.onChange();
    this.#read = isSettled && !isRepeated ? seen : undefined;
    this.#started.resolve();
    return this.#isDue || (isFirst && this.#lookIn(settleMs));
  }

  /** Looks; returns when that ended. */
  async #look(): Promise<number> {
    const { clock, look } = this.#options;
    const begin = clock.elapsed();
    this.#seen = await look();
    const end = clock.elapsed();
    this.#lookedMs += end - begin;
    return end;
  }

  #lookIn(ms: number): false {
    this.#loop.wakeIn(ms);
    return false;
  }

  async #watchFolders(): Promise<void> {
    const { bell, folders = () => [] } = this.#options;
    if (bell === undefined) return;
    const found: WatchedFolder[] = [];
    for (const path of new Set(await folders())) {
      const folder = await watchedFolder(path);
      if (folder !== undefined) found.push(folder);
    }
    if (this.isRunning) bell.watch(this.#onRing, found);
  }
}

/** The folder under its real path: a path through a link cannot be watched again once the link moved. */
async function watchedFolder(path: string): Promise<WatchedFolder | undefined> {
  try {
    const real = await Deno.realPath(path);
    const { dev, ino, birthtime, isDirectory } = await Deno.stat(real);
    // A new folder may have the inode of the previous one.
    const identity = [real, dev, ino, birthtime?.getTime()].join(" ");
    return isDirectory ? { path: real, identity } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * A text that differs after a file was written to, replaced, or became readable or unreadable, from file system metadata
 * only. The runtime returns whole seconds of `ctime`, so a change that keeps size, time and permissions may be missed
 * within one: compare the content as well where that matters.
 */
export async function fileState(path: string): Promise<string> {
  try {
    const { size, mtime, ctime, ino, dev, isFile, mode } = await Deno.stat(path);
    return [size, mtime?.getTime(), ctime?.getTime(), ino, dev, isFile, mode].join(" ");
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "unknown";
  }
}

/** The states of files, in their order. */
export async function fileStates(paths: readonly string[]): Promise<string> {
  const states: string[] = [];
  for (const path of paths) states.push(await fileState(path));
  return states.join("\n");
}

/** A text that differs after the path to the folder leads elsewhere, or one of its files with such a name changed. */
export async function folderState(folder: string, isRead: (name: string) => boolean): Promise<string> {
  try {
    const real = await Deno.realPath(folder);
    const names: string[] = [];
    for await (const { name, isDirectory } of Deno.readDir(real)) {
      if (!isDirectory && isRead(name)) names.push(name);
    }
    names.sort();
    const states = await fileStates(names.map((name) => join(real, name)));
    return [real, ...names, states].join("\n");
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "unknown";
  }
}
