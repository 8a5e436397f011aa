import { dirname, join, relative, resolve, sep } from "node:path";
import type { Bell } from "../threads/bell.ts";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { folderState, LOOK_MS, WatchedFiles } from "../threads/watched_files.ts";
import type { LoadReceiver, RulesLoad, RulesProvider } from "./provider.ts";
import { loadRuleFiles, type RuleFilesOptions } from "./rule_files.ts";
import { isRuleFileName } from "./unread_files.ts";

/** A folder of rule files. */
export interface RuleFolder {
  readonly root: string;
  /** Below the root; may be empty. */
  readonly subdirectory: string;
  /** Below the subdirectory: the folder of the rule files. */
  readonly appDirectory: string;
  readonly ignoreDotFiles: boolean;
  /** True if the root is a symbolic link that is replaced; otherwise files change in the folder. */
  readonly watchRoot: boolean;
}

/** Options of `createFileProvider`. */
export interface FileProviderOptions extends RuleFolder {
  /** Digest of the loaded files: files that still have it are not parsed again. */
  readonly known?: (() => string | undefined) | undefined;
  /** Called before large files are parsed that replace loaded ones. */
  readonly beforeLargeReload?: (() => void) | undefined;
  readonly bell: Bell;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Provides rules from the files of one folder and reloads them when something there changes. */
export function createFileProvider(options: FileProviderOptions): RulesProvider {
  return new FileProvider(options);
}

class FileProvider implements RulesProvider {
  readonly #options: FileProviderOptions;
  readonly #folder: string;
  readonly #filesOptions: RuleFilesOptions;
  readonly #watched: WatchedFiles;
  readonly #stop = new AbortController();
  #onLoad: LoadReceiver = ({ problems }) => Promise.resolve(problems);

  constructor(options: FileProviderOptions) {
    const { root, subdirectory, appDirectory, ignoreDotFiles, watchRoot, bell, clock } = options;
    const { known, beforeLargeReload } = options;
    const folder = join(root, subdirectory, appDirectory);
    const settings = "RUNTIME_ROOT, RUNTIME_SUBDIRECTORY and RUNTIME_APPDIRECTORY";
    const whenMissing = `create it, or correct ${settings}`;
    // A root that is replaced is read as a whole by envoyproxy/ratelimit.
    const siblings = watchRoot && /^[^/]+$/.test(appDirectory);
    const { signal } = this.#stop;
    const folders = watchRoot ? [dirname(resolve(root))] : foldersTo(resolve(root), resolve(folder));
    this.#options = options;
    this.#folder = folder;
    this.#filesOptions = { ignoreDotFiles, siblings, whenMissing, known, beforeLargeReload, signal };
    this.#watched = new WatchedFiles({
      look: () => folderState(folder, (name) => isRuleFileName(name, ignoreDotFiles)),
      onChange: () => this.#load(),
      bell,
      folders: () => folders,
      clock,
    });
  }

  start(onLoad: LoadReceiver): void {
    this.#onLoad = onLoad;
    void this.#checkRoot();
    void this.#watched.start();
  }

  reload(): void {
    this.#watched.readNow();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#watched.close();
  }

  async #load(): Promise<boolean> {
    try {
      const load = await loadRuleFiles(this.#folder, this.#filesOptions);
      if (!this.#stop.signal.aborted) void this.#apply(load);
    } catch (error) {
      this.#logFailure(error);
    }
    return false;
  }

  /** Is not awaited: it may stay pending once the provider is closed. */
  async #apply(load: RulesLoad): Promise<void> {
    try {
      await this.#onLoad(load);
    } catch (error) {
      this.#logFailure(error);
    }
  }

  #logFailure(error: unknown): void {
    this.#options.logger.error("Cannot load the rule files; keeping the previous rules", { error });
  }

  async #checkRoot(): Promise<void> {
    const { root, watchRoot, known, logger } = this.#options;
    // The worker that loaded these files before has warned of the root.
    if (!watchRoot || known?.() !== undefined) return;
    const state = await Deno.lstat(root).catch(() => undefined);
    if (state === undefined || state.isSymlink) return;
    logger.warning(
      `RUNTIME_ROOT "${root}" is not a symbolic link: changes inside it are found every ${
        LOOK_MS / 1_000
      } s ` +
        "only; set RUNTIME_WATCH_ROOT=false to watch its files",
    );
  }
}

/** The folders from above the root to the folder: a change in one may redirect the path. */
function foldersTo(root: string, folder: string): string[] {
  const folders = [dirname(root), root];
  for (const part of relative(root, folder).split(sep)) {
    if (part !== "") folders.push(join(folders.at(-1) ?? root, part));
  }
  return folders;
}
