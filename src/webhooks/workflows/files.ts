import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import type { Logger } from "../../base/log.ts";
import { loadedEvent, type OperationalEvent, rejectedEvent } from "../model/operational_event.ts";
import type { WorkflowVersion } from "../model/records.ts";
import type { Workflow, Workflows } from "../model/workflow.ts";
import { MAX_FILE_BYTES, readWorkflowFile } from "./file.ts";
import { WorkflowFolder } from "./folder.ts";

/** Where workflow files are. */
export interface WorkflowFilesOptions {
  /** There are no workflows when absent. */
  readonly folder?: string | undefined;
  readonly envNames: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

interface LoadedWorkflow {
  readonly version: WorkflowVersion;
  readonly workflow: Workflow;
}

interface KnownFile {
  /** Changes with every write to the file; empty where it could not be read, which is retried at every look. */
  readonly state: string;
  /** Of its last valid text. */
  readonly loaded?: LoadedWorkflow | undefined;
  /** Of its current text. */
  readonly problems: readonly string[];
}

const MAX_FILES = 1_000;
/** How many former versions are kept parsed. */
const MAX_PARSED = 256;
/** Events that are kept for a listener that comes later. */
const MAX_EVENTS = 10;
const WORKFLOW_FILE = /^[^.].*\.ya?ml$/;

/**
 * The workflows of a folder, one in each file `*.yaml` or `*.yml`. Changed files are reloaded: the previous workflow of
 * an invalid one is kept, that of a removed one is removed.
 */
export class WorkflowFiles implements Workflows {
  readonly #options: WorkflowFilesOptions;
  readonly #watched: WorkflowFolder | undefined;
  /** By the id of the version, the one used last at the end. */
  readonly #parsed = new Map<string, Workflow>();
  #files: ReadonlyMap<string, KnownFile> = new Map();
  #current: ReadonlyMap<string, LoadedWorkflow> = new Map();
  #reported = new Set<string>();
  #events: OperationalEvent[] = [];
  #listener: ((event: OperationalEvent) => void) | undefined;
  #isClosed = false;

  constructor(options: WorkflowFilesOptions) {
    this.#options = options;
    const { folder, clock, logger } = options;
    if (folder !== undefined) {
      this.#watched = new WorkflowFolder({ folder, look: () => this.#look(folder), clock, logger });
    }
  }

  /** Reads the folder, and watches it from then on; problems are logged. */
  async start(): Promise<void> {
    await this.#watched?.start();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#watched?.close();
  }

  /** The current version; nothing where no file has this workflow. */
  current(name: string): LoadedWorkflow | undefined {
    return this.#current.get(name);
  }

  names(): readonly string[] {
    return [...this.#current.keys()].sort();
  }

  /** The workflow of a former version; throws where its text is no longer valid. */
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

  onEvent(listener: (event: OperationalEvent) => void): void {
    this.#listener = listener;
    for (const event of this.#events.splice(0)) listener(event);
  }

  #report(event: OperationalEvent): void {
    if (this.#listener !== undefined) this.#listener(event);
    else if (this.#events.length < MAX_EVENTS) this.#events.push(event);
  }

  /** Whether the folder could be read. */
  async #look(folder: string): Promise<boolean> {
    const { logger } = this.#options;
    const problems: string[] = [];
    let isRead = false;
    try {
      const files = await this.#read(folder, problems);
      // Throws where the folder was moved away meanwhile: its files were not removed, but cannot be read.
      await stat(folder);
      if (this.#isClosed) return true;
      problems.push(...[...files.values()].flatMap((file) => file.problems));
      this.#apply(folder, files, problems);
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
    const found = problems.filter((problem) => !this.#reported.has(problem));
    for (const problem of found) logger.error(problem);
    if (found.length > 0) this.#report(rejectedEvent({ what: "workflows", from: folder }, problems));
    this.#reported = new Set(problems);
    return isRead;
  }

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
      if (file !== undefined) files.set(path, file);
    }
    return files;
  }

  /** The file as it is now, not read again where it did not change; nothing where it is none. */
  async #readOne(path: string): Promise<KnownFile | undefined> {
    const before = this.#files.get(path);
    try {
      const found = await stat(path);
      // A link may lead to a folder or a pipe, and reading a pipe would not end.
      if (!found.isFile()) return undefined;
      const { dev, ino, size, mtimeMs, ctimeMs } = found;
      const state = `${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`;
      if (before?.state === state) return before;
      const { loaded = before?.loaded, problems } = await readWorkflow(path, size, this.#options.envNames);
      return { state, loaded, problems };
    } catch (error) {
      if (isMissing(error)) return undefined;
      const problem = `${path}: Cannot read the file: ${errorText(error)}`;
      return { state: "", loaded: before?.loaded, problems: [problem] };
    }
  }

  #apply(folder: string, files: ReadonlyMap<string, KnownFile>, problems: string[]): void {
    const { logger } = this.#options;
    const owners = new Map<string, string>();
    const current = new Map<string, LoadedWorkflow>();
    for (const [path, { loaded }] of files) {
      if (loaded === undefined) continue;
      const id = loaded.workflow.id;
      const owner = owners.get(id);
      if (owner === undefined) {
        owners.set(id, path);
        current.set(id, loaded);
      } else {
        problems.push(`${path}: the workflow '${id}' is also in ${owner}; rename one of them`);
        // It is unknown which of them is meant: the previous one is kept.
        const before = this.#current.get(id);
        if (before === undefined) current.delete(id);
        else current.set(id, before);
      }
    }
    const changed: string[] = [];
    for (const [id, { version }] of current) {
      const before = this.#current.get(id)?.version.id;
      if (before !== version.id) {
        changed.push(id);
        logger.info("Workflow loaded", { workflow: id, version: version.id.slice(0, 12) });
      }
    }
    for (const id of this.#current.keys()) {
      if (current.has(id)) continue;
      changed.push(id);
      logger.warning("Workflow removed; its triggers are refused", { workflow: id });
    }
    if (changed.length > 0) {
      this.#report(loadedEvent({ what: "workflows", from: folder, workflows: current.size, changed }));
    }
    this.#files = files;
    this.#current = current;
  }
}

async function readWorkflow(
  path: string,
  size: number,
  envNames: readonly string[],
): Promise<{ readonly loaded?: LoadedWorkflow; readonly problems: readonly string[] }> {
  const tooLarge = [
    `${path}: the file has more than ${MAX_FILE_BYTES} bytes; split it into several workflows`,
  ];
  if (size > MAX_FILE_BYTES) return { problems: tooLarge };
  const bytes = await readFile(path);
  // It may have grown since `stat`.
  if (bytes.length > MAX_FILE_BYTES) return { problems: tooLarge };
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { problems: [`${path}: the file is not UTF-8; save it as such`] };
  }
  const { workflow, problems } = readWorkflowFile(path, text, envNames);
  if (workflow === undefined) return { problems };
  const id = createHash("sha256").update(bytes).digest("hex");
  return { loaded: { version: { id, workflow: workflow.id, text }, workflow }, problems };
}

function parsed(name: string, text: string): Workflow {
  const { workflow, problems } = readWorkflowFile(`workflow "${name}"`, text);
  if (workflow === undefined) throw new Error(problems[0] ?? "its text is invalid");
  return workflow;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
