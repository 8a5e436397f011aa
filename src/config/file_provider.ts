import { dirname, join, resolve, sep } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { OpenFolderEvents } from "../base/folder_events.ts";
import { type FolderEvent, FolderWatch } from "../base/folder_watch.ts";
import { WakeLoop } from "../base/wake_loop.ts";
import type { Logger } from "../base/log.ts";
import type { LoadReceiver, RulesLoad, RulesProvider } from "./provider.ts";
import { folderFingerprint, loadRuleFiles, type RuleFilesOptions } from "./rule_files.ts";

/** Where rule files are, and how changes are detected. */
export interface FileProviderOptions {
  readonly root: string;
  /** Below the root; may be empty. */
  readonly subdirectory: string;
  /** Below the subdirectory: the folder of the rule files. */
  readonly appDirectory: string;
  readonly ignoreDotFiles: boolean;
  /** Whether the root is a symbolic link that is replaced; otherwise files change in the folder. */
  readonly watchRoot: boolean;
  /** Digest of the loaded files: files that still have it are not parsed again. */
  readonly known?: (() => string | undefined) | undefined;
  /** Called before large files are parsed that replace loaded ones. */
  readonly beforeLargeReload?: (() => void) | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Replaces the watch of the system. */
  readonly openEvents?: OpenFolderEvents;
}

const QUIET_MS = 50;
const LONGEST_BURST_MS = 1_000;
const RESCAN_MS = 30_000;

/** Provides rules from the files of one folder and reloads them when something there changes. */
export function createFileProvider(options: FileProviderOptions): RulesProvider {
  return new FileProvider(options);
}

/** What is due: a load, or a check whether a load is necessary. */
type Wish = "load" | "check";

class FileProvider implements RulesProvider {
  readonly #options: FileProviderOptions;
  readonly #folder: string;
  readonly #filesOptions: RuleFilesOptions;
  readonly #watch: FolderWatch;
  readonly #stop = new AbortController();
  readonly #loop: WakeLoop;
  #onLoad: LoadReceiver | undefined;
  #wish: Wish | undefined;
  /** What the current burst of events requires, and when it is over at the latest. */
  #burst: { readonly wish: Wish; readonly endsAt: number } | undefined;
  #cancelBurst = () => {};
  #fingerprint = "";
  #isRootChecked: boolean;

  constructor(options: FileProviderOptions) {
    const { root, subdirectory, appDirectory, ignoreDotFiles, watchRoot, logger } = options;
    const { known = () => undefined, beforeLargeReload } = options;
    this.#options = options;
    // The worker that loaded these files before has warned of the root.
    this.#isRootChecked = known() !== undefined;
    this.#folder = join(root, subdirectory, appDirectory);
    const settings = "RUNTIME_ROOT, RUNTIME_SUBDIRECTORY and RUNTIME_APPDIRECTORY";
    const whenMissing = `create it, or correct ${settings}`;
    // A root that is replaced is read as a whole by envoyproxy/ratelimit.
    const siblings = watchRoot && /^[^/]+$/.test(appDirectory);
    const { signal } = this.#stop;
    this.#filesOptions = { ignoreDotFiles, siblings, whenMissing, known, beforeLargeReload, signal };
    this.#watch = new FolderWatch({
      folder: watchRoot ? undefined : this.#folder,
      around: watchRoot ? [dirname(resolve(root))] : foldersAround(resolve(root), resolve(this.#folder)),
      files: "rule files",
      onEvent: (event) => this.#noteEvent(event),
      logger,
      openEvents: options.openEvents,
    });
    this.#loop = new WakeLoop({
      clock: options.clock,
      pollMs: RESCAN_MS,
      onPoll: () => {
        this.#watch.forgive();
        this.#wish ??= "check";
      },
      round: () => this.#round(),
    });
  }

  start(onLoad: LoadReceiver): void {
    this.#onLoad = onLoad;
    this.#wish = "load";
    this.#loop.start();
  }

  reload(): void {
    this.#watch.forgive();
    this.#ask("load");
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#cancelBurst();
    this.#watch.close();
    await this.#loop.stop();
  }

  /** Waits for the end of a burst: files are seldom changed in one step. */
  #noteEvent(event: FolderEvent): void {
    if (this.#stop.signal.aborted) return;
    const { clock } = this.#options;
    const now = clock.elapsed();
    const { wish = "check", endsAt = now + LONGEST_BURST_MS } = this.#burst ?? {};
    this.#burst = { wish: event === "inside" ? "load" : wish, endsAt };
    this.#cancelBurst();
    this.#cancelBurst = clock.after(Math.min(QUIET_MS, endsAt - now), () => {
      this.#ask(this.#burst?.wish ?? "check");
      this.#burst = undefined;
    });
  }

  #ask(wish: Wish): void {
    if (this.#wish !== "load") this.#wish = wish;
    this.#loop.wake();
  }

  /** Does what is due; returns whether more is. */
  async #round(): Promise<boolean> {
    const wish = this.#wish;
    this.#wish = undefined;
    if (wish === undefined || this.#stop.signal.aborted) return false;
    try {
      await this.#look(wish);
    } catch (error) {
      this.#logFailure(error);
    }
    return this.#wish !== undefined;
  }

  async #look(wish: Wish): Promise<void> {
    // Watch before reading, so that a later change causes an event.
    await this.#watch.arm();
    await this.#checkRoot();
    if (wish === "check") {
      const fingerprint = await folderFingerprint(this.#folder, this.#filesOptions);
      if (fingerprint === this.#fingerprint) return;
    }
    const { load, fingerprint } = await loadRuleFiles(this.#folder, this.#filesOptions);
    if (this.#stop.signal.aborted) return;
    this.#fingerprint = fingerprint;
    void this.#apply(load);
  }

  /** Is not awaited: it may stay pending once the provider is closed. */
  async #apply(load: RulesLoad): Promise<void> {
    try {
      await this.#onLoad?.(load);
    } catch (error) {
      this.#logFailure(error);
    }
  }

  #logFailure(error: unknown): void {
    this.#options.logger.error("Cannot load the rule files; keeping the previous rules", { error });
  }

  async #checkRoot(): Promise<void> {
    const { root, watchRoot, logger } = this.#options;
    if (this.#isRootChecked) return;
    this.#isRootChecked = true;
    const state = watchRoot ? await Deno.lstat(root).catch(() => undefined) : undefined;
    if (state === undefined || state.isSymlink) return;
    logger.warning(
      `RUNTIME_ROOT "${root}" is not a symbolic link: only the re-scan every ${RESCAN_MS / 1_000} s finds ` +
        "changes inside it; set RUNTIME_WATCH_ROOT=false to watch its files",
    );
  }
}

/** The folders from above the root to above the folder: a change in one may redirect the path. */
function foldersAround(root: string, folder: string): string[] {
  const folders = [dirname(root)];
  let path = root;
  for (const part of folder.slice(root.length).split(sep)) {
    if (part === "") continue;
    folders.push(path);
    path = join(path, part);
  }
  return folders;
}
