import { resolve } from "node:path";
import type { Clock } from "../../base/clock.ts";
import type { OpenFolderEvents } from "../../base/folder_events.ts";
import { FolderWatch } from "../../base/folder_watch.ts";
import type { Logger } from "../../base/log.ts";
import { settledWithin } from "../../base/wait.ts";

/** Which folder is watched, and how. */
export interface WorkflowFolderOptions {
  readonly folder: string;
  /** Reads what changed; answers whether the folder could be read. Never rejects; calls do not overlap. */
  readonly look: () => Promise<boolean>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Replaces the watch of the system. */
  readonly openEvents?: OpenFolderEvents | undefined;
}

/** Network file systems send no events: they are read this often. */
const RESCAN_MS = 30_000;
/** How often a missing folder is looked for: the folder above, where the store may be, is not watched. */
const MISSING_MS = 1_000;
/** How long after the first event the files are read: one change causes several. */
const GATHER_MS = 100;
/** After a look events wait for so many times its duration, so that looking takes at most 2 % of a thread. */
const REST_RATIO = 50;
/** How long start and close wait for a file system that hangs. */
const HANG_MS = 10_000;

/** Looks at the folder of the workflows after events, and at intervals. */
export class WorkflowFolder {
  readonly #options: WorkflowFolderOptions;
  readonly #watch: FolderWatch;
  #looking: Promise<void> | undefined;
  /** Whether an event came after the last look began. */
  #isDue = false;
  /** By the clock's `elapsed`: earlier events wait for it. */
  #restUntil = 0;
  #rescanMs = RESCAN_MS;
  #cancelLook = () => {};
  #isClosed = false;

  constructor(options: WorkflowFolderOptions) {
    this.#options = options;
    const folder = resolve(options.folder);
    this.#watch = new FolderWatch({
      folder,
      around: [],
      files: "workflow files",
      onEvent: () => this.#noteEvent(),
      logger: options.logger,
      openEvents: options.openEvents,
    });
  }

  /** Looks, and watches from then on. */
  async start(): Promise<void> {
    // The first watch takes long, which must not delay the events after the first look.
    const looked = this.#watch.arm().then(() => this.#look());
    await settledWithin(looked, HANG_MS, this.#options.clock);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelLook();
    this.#watch.close();
    if (this.#looking !== undefined) await settledWithin(this.#looking, HANG_MS, this.#options.clock);
  }

  #noteEvent(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    // A look under way may have passed the change: another one follows it.
    if (this.#looking === undefined) this.#schedule();
  }

  #schedule(): void {
    if (this.#isClosed) return;
    const { clock } = this.#options;
    const restMs = Math.max(GATHER_MS, this.#restUntil - clock.elapsed());
    this.#cancelLook();
    this.#cancelLook = clock.after(this.#isDue ? Math.min(restMs, RESCAN_MS) : this.#rescanMs, () => {
      if (!this.#isDue) this.#watch.forgive();
      void this.#look();
    });
  }

  #look(): Promise<void> {
    return this.#looking = this.#lookOnce().finally(() => {
      this.#looking = undefined;
      this.#schedule();
    });
  }

  async #lookOnce(): Promise<void> {
    const { clock, look } = this.#options;
    const begin = clock.elapsed();
    this.#isDue = false;
    // The watch comes first, so that a change after the look causes an event.
    await this.#watch.arm();
    this.#rescanMs = await look() ? RESCAN_MS : MISSING_MS;
    const end = clock.elapsed();
    this.#restUntil = end + (end - begin) * REST_RATIO;
  }
}
