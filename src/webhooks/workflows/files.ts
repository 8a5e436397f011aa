import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import type { Logger } from "../../base/log.ts";
import type { WorkflowVersion } from "../model/records.ts";
import type { Workflow, Workflows } from "../model/workflow.ts";
import { MAX_FILE_BYTES, readWorkflowFile } from "./file.ts";
import { WorkflowFolder } from "./folder.ts";

/** Where workflow files are, and how changes to them are noticed. */
export interface WorkflowFilesOptions {
  /** The folder; there are no workflows when absent. */
  readonly folder?: string | undefined;
  /** The environment variables that workflows may read. */
  readonly envNames: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A workflow as some file has it. */
interface Taken {
  readonly version: WorkflowVersion;
  readonly workflow: Workflow;
}

/** A file as the file system has it. */
interface FoundFile {
  /** Another text whenever it is another file or was written to; empty where it cannot be told. */
  readonly state: string;
  readonly size: number;
  /** Why it cannot be looked at. */
  readonly problem?: string;
}

/** What is known of one file. */
interface KnownFile {
  /** What the file system said when it was read. */
  readonly state: string;
  /** Whether it could be read; if not, that is tried again at every look. */
  readonly isRead: boolean;
  /** What it said when it was last right. */
  readonly taken?: Taken | undefined;
  /** What is wrong with it now. */
  readonly problems: readonly string[];
}

const MAX_FILES = 1_000;
/** How many texts of former files are kept in the form in which they run. */
const MAX_PARSED = 256;
const WORKFLOW_FILE = /^[^.].*\.ya?ml$/;

/**
 * The workflows of a folder, one in each file `*.yaml` or `*.yml`. Files that changed are read again. One that is
 * wrong is told of with its place, and the workflow that it had before stays; one that is gone takes its workflow along.
 */
export class WorkflowFiles implements Workflows {
  readonly #options: WorkflowFilesOptions;
  #files: ReadonlyMap<string, KnownFile> = new Map();
  #current: ReadonlyMap<string, Taken> = new Map();
  /** By the identifier of the version; the one used last stands last. */
  readonly #parsed = new Map<string, Workflow>();
  #reported = new Set<string>();
  readonly #watched: WorkflowFolder | undefined;
  #isClosed = false;

  constructor(options: WorkflowFilesOptions) {
    this.#options = options;
    const { folder, clock, logger } = options;
    if (folder !== undefined) {
      this.#watched = new WorkflowFolder({ folder, look: () => this.#look(folder), clock, logger });
    }
  }

  /** Reads the folder, and watches it from then on; what is wrong there is logged. */
  async start(): Promise<void> {
    await this.#watched?.start();
  }

  /** Looks no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#watched?.close();
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

  /** Whether the folder could be read. */
  async #look(folder: string): Promise<boolean> {
    const { logger } = this.#options;
    const problems: string[] = [];
    let isRead = false;
    try {
      const files = await this.#read(await findFiles(folder, problems));
      // Throws where the folder was moved away meanwhile: its files are not gone, but cannot be read.
      await stat(folder);
      if (this.#isClosed) return true;
      problems.push(...[...files.values()].flatMap((file) => file.problems));
      this.#take(files, problems);
      isRead = true;
    } catch (error) {
      const state = isMissing(error)
        ? "it does not exist; make it, or correct WORKFLOW_DIRECTORY"
        : errorText(error);
      problems.push(`Cannot read the folder of workflows "${folder}": ${state}`);
      for (const problem of this.#reported) {
        if (!problem.startsWith("Cannot read the folder")) problems.push(problem);
      }
    }
    if (this.#isClosed) return isRead;
    for (const problem of problems) if (!this.#reported.has(problem)) logger.error(problem);
    this.#reported = new Set(problems);
    return isRead;
  }

  /** The files of the folder; those that did not change are not read again. */
  async #read(found: ReadonlyMap<string, FoundFile>): Promise<Map<string, KnownFile>> {
    const files = new Map<string, KnownFile>();
    for (const [path, file] of found) {
      const read = await this.#readOne(path, file);
      if (read !== undefined) files.set(path, read);
    }
    return files;
  }

  async #readOne(path: string, { state, size, problem }: FoundFile): Promise<KnownFile | undefined> {
    const before = this.#files.get(path);
    if (problem !== undefined) return { state, isRead: false, taken: before?.taken, problems: [problem] };
    if (before?.state === state && before.isRead) return before;
    try {
      const { taken = before?.taken, problems } = await readWorkflow(path, size, this.#options.envNames);
      return { state, isRead: true, taken, problems };
    } catch (error) {
      if (isMissing(error)) return undefined;
      return { state, isRead: false, taken: before?.taken, problems: [cannotRead(path, error)] };
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

/** The files of a folder that may be workflows. */
async function findFiles(folder: string, problems: string[]): Promise<Map<string, FoundFile>> {
  const names = (await readdir(folder)).filter((name) => WORKFLOW_FILE.test(name)).sort();
  if (names.length > MAX_FILES) {
    problems.push(
      `Cannot read every workflow of "${folder}": there are more than ${MAX_FILES} files; use fewer`,
    );
  }
  const files = new Map<string, FoundFile>();
  for (const name of names.slice(0, MAX_FILES)) {
    const path = join(folder, name);
    const file = await findFile(path);
    if (file !== undefined) files.set(path, file);
  }
  return files;
}

async function findFile(path: string): Promise<FoundFile | undefined> {
  try {
    const found = await stat(path);
    // A link may lead to a folder or a pipe, and reading a pipe would not end.
    if (!found.isFile()) return undefined;
    const { dev, ino, size, mtimeMs, ctimeMs } = found;
    return { state: `${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`, size };
  } catch (error) {
    if (isMissing(error)) return undefined;
    return { state: "", size: 0, problem: cannotRead(path, error) };
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

function cannotRead(path: string, error: unknown): string {
  return `${path}: Cannot read the file: ${errorText(error)}`;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
