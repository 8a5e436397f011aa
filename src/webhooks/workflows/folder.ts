import { resolve } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { FolderWatch } from "../../base/folder_watch.ts";
import type { Logger } from "../../base/log.ts";
import { settledWithin } from "../../base/wait.ts";

/** Which folder is looked at, and how. */
export interface WorkflowFolderOptions {
  readonly folder: string;
  /** Reads what changed; whether the folder could be read. Never rejects, and never runs twice at a time. */
  readonly look: () => Promise<boolean>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What no event tells, as of a network file system, is found so late at most. */
const RESCAN_MS = 30_000;
/** How often a folder that cannot be read is looked for: the folder above, where the store may be, is not watched. */
const MISSING_MS = 1_000;
/** Several events belong to one change: this long after the first of them the files are read. */
const GATHER_MS = 100;
/** After a look events wait for so many times as long: looking takes 2 % of a thread at most. */
const REST_RATIO = 50;
/** How long the end, and the start, wait for a file system that hangs. */
const HANG_MS = 10_000;

/** Looks at the folder of the workflows when something happens in it, and from time to time. */
export class WorkflowFolder {
  readonly #options: WorkflowFolderOptions;
  readonly #watch: FolderWatch;
  #looking: Promise<void> | undefined;
  /** Whether an event came that no look has answered. */
  #isDue = false;
  /** By the clock's elapsed time: events that come earlier wait for it. */
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
    });
  }

  /** Looks a first time, and watches from then on. */
  async start(): Promise<void> {
    await settledWithin(this.#look(), HANG_MS, this.#options.clock);
  }

  /** Looks no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelLook();
    this.#watch.close();
    if (this.#looking !== undefined) await settledWithin(this.#looking, HANG_MS, this.#options.clock);
  }

  #noteEvent(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    // A look under way may have passed what changed: another one follows it.
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
    // First the watch, then the look: a change that comes after the look is told.
    await this.#watch.arm();
    this.#rescanMs = await look() ? RESCAN_MS : MISSING_MS;
    const end = clock.elapsed();
    this.#restUntil = end + (end - begin) * REST_RATIO;
  }
}
