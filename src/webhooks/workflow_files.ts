import { createHash } from "node:crypto";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { watchFolders } from "../base/folder_events.ts";
import type { Logger } from "../base/log.ts";
import { settledWithin } from "../base/wait.ts";
import type { WorkflowVersion } from "./records.ts";
import type { Workflow, Workflows } from "./workflow.ts";
import { MAX_FILE_BYTES, readWorkflowFile } from "./workflow_file.ts";

/** Where workflow files are, and how changes to them are noticed. */
export interface WorkflowFilesOptions {
  /** The folder; there are no workflows when absent. */
  readonly folder?: string | undefined;
  /** The environment variables that workflows may read. */
  readonly envNames: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** Tells of changes in a folder until it is ended; by a thread of its own when absent. */
  readonly watch?: typeof watchFolders | undefined;
}

/** A workflow as some file has it. */
interface Taken {
  readonly version: WorkflowVersion;
  readonly workflow: Workflow;
}

/** What is known of one file. */
interface KnownFile {
  /** What the file system said when it was read. */
  readonly state: string;
  /** What it said when it was last right. */
  readonly taken?: Taken | undefined;
  /** What is wrong with it now. */
  readonly problems: readonly string[];
}

/** Several events belong to one change: this long after the first of them the files are read. */
const GATHER_MS = 100;
/** What no event tells is found so late at most. */
const LOOK_MS = 5_000;
/** How long the end, and the start, wait for a file system that hangs. */
const HANG_MS = 10_000;
const MAX_FILES = 1_000;
/** How many texts of former files are kept in the form in which they run. */
const MAX_PARSED = 256;
const WORKFLOW_FILE = /^[^.].*\.ya?ml$/;

/**
 * The workflows of a folder, one in each file `*.yaml` or `*.yml`. Files are read again when they change. One that is
 * wrong is told of with its place, and the workflow that it had before stays; one that is gone takes its workflow along.
 */
export class WorkflowFiles implements Workflows {
  readonly #options: WorkflowFilesOptions;
  #files: ReadonlyMap<string, KnownFile> = new Map();
  #current: ReadonlyMap<string, Taken> = new Map();
  /** By the identifier of the version; the one used last stands last. */
  readonly #parsed = new Map<string, Workflow>();
  #reported = new Set<string>();
  #looking: Promise<void> = Promise.resolve();
  #isLooking = false;
  #watched = "";
  /** Why it could not be watched the last time. */
  #unwatched = "";
  #endWatch = () => {};
  #cancelSoon: (() => void) | undefined;
  #cancelLook = () => {};
  #isClosed = false;

  constructor(options: WorkflowFilesOptions) {
    this.#options = options;
  }

  /** Reads the folder and begins to watch it; what is wrong there is logged. */
  async start(): Promise<void> {
    if (this.#options.folder === undefined) return;
    this.#scheduleLook();
    this.#begin();
    await settledWithin(this.#looking, HANG_MS, this.#options.clock);
  }

  /** Ends the watch. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelLook();
    this.#cancelSoon?.();
    this.#endWatch();
    await settledWithin(this.#looking, HANG_MS, this.#options.clock);
  }

  /** The text in force and what it says; nothing where no file has this workflow. */
  current(name: string): Taken | undefined {
    return this.#current.get(name);
  }

  /** The names of all workflows. */
  names(): readonly string[] {
    return [...this.#current.keys()].sort();
  }

  /** What a text that was in force once says; throws where it cannot be read any more. */
  parse({ id, workflow: name, text }: WorkflowVersion): Workflow {
    const current = this.#current.get(name);
    if (current?.version.id === id) return current.workflow;
    const known = this.#parsed.get(id);
    this.#parsed.delete(id);
    const workflow = known ?? parsed(name, text);
    this.#parsed.set(id, workflow);
    for (const oldest of this.#parsed.keys()) {
      if (this.#parsed.size <= MAX_PARSED) break;
      this.#parsed.delete(oldest);
    }
    return workflow;
  }

  #scheduleLook(): void {
    this.#cancelLook = this.#options.clock.after(LOOK_MS, () => {
      this.#scheduleLook();
      this.#lookIn(0);
    });
  }

  #lookIn(delayMs: number): void {
    if (this.#isClosed || this.#cancelSoon !== undefined) return;
    this.#cancelSoon = this.#options.clock.after(delayMs, () => {
      this.#cancelSoon = undefined;
      this.#begin();
    });
  }

  /** A file system that hangs keeps a thread for each question, so there is one look at a time. */
  #begin(): void {
    if (this.#isLooking) return this.#lookIn(GATHER_MS);
    this.#isLooking = true;
    this.#looking = this.#look().finally(() => void (this.#isLooking = false));
  }

  async #look(): Promise<void> {
    const { folder = "", logger } = this.#options;
    const problems: string[] = [];
    try {
      await this.#watch(folder);
      const files = await this.#read(folder, problems);
      if (this.#isClosed) return;
      this.#take(files, problems);
    } catch (error) {
      const state = isMissing(error)
        ? "it does not exist; make it, or correct WORKFLOW_DIRECTORY"
        : errorText(error);
      problems.push(`Cannot read the folder of workflows "${folder}": ${state}`);
      for (const problem of this.#reported) {
        if (!problem.startsWith("Cannot read the folder")) problems.push(problem);
      }
    }
    if (this.#isClosed) return;
    for (const problem of problems) if (!this.#reported.has(problem)) logger.error(problem);
    this.#reported = new Set(problems);
  }

  /** A folder that was made again, or is reached by another way, is watched anew. */
  async #watch(folder: string): Promise<void> {
    const { watch = watchFolders, logger } = this.#options;
    const real = await realpath(folder);
    const { dev, ino, birthtimeMs } = await stat(real);
    const identity = `${real} ${dev} ${ino} ${birthtimeMs}`;
    if (identity === this.#watched || this.#isClosed) return;
    this.#endWatch();
    this.#watched = identity;
    this.#endWatch = watch([real], {
      onEvent: () => this.#lookIn(GATHER_MS),
      onFailed: (state) => {
        // The next look watches it anew.
        this.#watched = "";
        if (this.#isClosed || this.#unwatched === state) return;
        this.#unwatched = state;
        logger.warning(`Cannot watch the folder of workflows "${folder}": ${state}; changes are found late`);
      },
    });
  }

  /** The files of the folder; those that did not change are not read again. */
  async #read(folder: string, problems: string[]): Promise<Map<string, KnownFile>> {
    const names = (await readdir(folder)).filter((name) => WORKFLOW_FILE.test(name)).sort();
    if (names.length > MAX_FILES) {
      problems.push(
        `Cannot read every workflow of "${folder}": there are more than ${MAX_FILES} files; use fewer`,
      );
    }
    const files = new Map<string, KnownFile>();
    for (const name of names.slice(0, MAX_FILES)) {
      const path = join(folder, name);
      const file = await this.#readOne(path);
      if (file === undefined) continue;
      files.set(path, file);
      problems.push(...file.problems);
    }
    return files;
  }

  async #readOne(path: string): Promise<KnownFile | undefined> {
    const before = this.#files.get(path);
    try {
      const found = await stat(path);
      // A link may lead to a folder or a pipe, and reading a pipe would not end.
      if (!found.isFile()) return undefined;
      const state = `${found.dev} ${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}`;
      if (before?.state === state) return before;
      const { taken = before?.taken, problems } = await readWorkflow(
        path,
        found.size,
        this.#options.envNames,
      );
      return { state, taken, problems };
    } catch (error) {
      if (isMissing(error)) return undefined;
      const problem = `${path}: Cannot read the file: ${errorText(error)}`;
      return { state: "", taken: before?.taken, problems: [problem] };
    }
  }

  #take(files: ReadonlyMap<string, KnownFile>, problems: string[]): void {
    const { logger } = this.#options;
    const owners = new Map<string, string>();
    const current = new Map<string, Taken>();
    for (const [path, { taken }] of files) {
      if (taken === undefined) continue;
      const id = taken.workflow.id;
      const owner = owners.get(id);
      if (owner === undefined) {
        owners.set(id, path);
        current.set(id, taken);
      } else {
        problems.push(`${path}: the workflow '${id}' stands in ${owner} as well; rename one of them`);
        // Nobody can tell which of them is meant: what was in force before is.
        const before = this.#current.get(id);
        if (before === undefined) current.delete(id);
        else current.set(id, before);
      }
    }
    for (const [id, { version }] of current) {
      const before = this.#current.get(id)?.version.id;
      if (before !== version.id) {
        logger.info(`Workflow "${id}" is in force`, { version: version.id.slice(0, 12) });
      }
    }
    for (const id of this.#current.keys()) {
      if (!current.has(id)) logger.warning(`Workflow "${id}" has no file any more, its triggers are refused`);
    }
    this.#files = files;
    this.#current = current;
  }
}

/** A file as it is now. */
async function readWorkflow(
  path: string,
  size: number,
  envNames: readonly string[],
): Promise<{ readonly taken?: Taken; readonly problems: readonly string[] }> {
  const tooLarge = [`${path}: the file has more than ${MAX_FILE_BYTES} bytes; make several workflows of it`];
  if (size > MAX_FILE_BYTES) return { problems: tooLarge };
  const bytes = await readFile(path);
  // It may have grown since it was measured.
  if (bytes.length > MAX_FILE_BYTES) return { problems: tooLarge };
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { problems: [`${path}: the file is not UTF-8; save it as such`] };
  }
  const { workflow, problems } = readWorkflowFile(path, text, { envNames });
  if (workflow === undefined) return { problems };
  const id = createHash("sha256").update(bytes).digest("hex");
  return { taken: { version: { id, workflow: workflow.id, text }, workflow }, problems };
}

function parsed(name: string, text: string): Workflow {
  const { workflow, problems } = readWorkflowFile(`workflow "${name}"`, text);
  if (workflow === undefined) throw new Error(problems[0] ?? "its text is none");
  return workflow;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
