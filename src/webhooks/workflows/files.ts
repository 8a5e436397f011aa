import { resolve } from "node:path";
import type { Bell } from "../../threads/bell.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { type Problem, problemsInOrder, problemText } from "../../base/problem.ts";
import { settledWithin } from "../../base/wait.ts";
import { folderState, WatchedFiles } from "../../threads/watched_files.ts";
import { loadedEvent, type OperationalEvent, rejectedEvent } from "../model/operational_event.ts";
import type { WorkflowVersion } from "../model/records.ts";
import type {
  LoadedWorkflow,
  Workflow,
  WorkflowEntry,
  WorkflowListing,
  Workflows,
} from "../model/workflow.ts";
import { readWorkflowFile } from "./file.ts";
import {
  duplicateProblems,
  entryIdOf,
  folderProblem,
  isWorkflowFileName,
  type ReadFiles,
  readWorkflowFolder,
  workflowsByName,
} from "./folder_reading.ts";

/** Options of `WorkflowFiles`. */
interface WorkflowFilesOptions {
  /** There are no workflows when absent. */
  readonly folder?: string | undefined;
  readonly envNames: readonly string[];
  readonly bell: Bell;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Former versions that are kept parsed. */
const MAX_PARSED = 256;
/** Events that are kept for a listener that comes later. */
const MAX_EVENTS = 10;
/** Time that the start waits for a file system that hangs. */
const START_MS = 10_000;

/**
 * The workflows of a folder, one in each file `*.yaml` or `*.yml`. Changed files are reloaded: the previous workflow of
 * an invalid one is kept, that of a removed one is removed.
 */
export class WorkflowFiles implements Workflows {
  readonly #options: WorkflowFilesOptions;
  readonly #watched: WatchedFiles | undefined;
  /** By the id of the version, the one used last at the end. */
  readonly #parsed = new Map<string, Workflow>();
  #files: ReadFiles = new Map();
  #folderProblems: readonly Problem[] = [];
  #current: ReadonlyMap<string, LoadedWorkflow> = new Map();
  #reported = new Set<string>();
  #events: OperationalEvent[] = [];
  #listener: ((event: OperationalEvent) => void) | undefined;

  constructor(options: WorkflowFilesOptions) {
    this.#options = options;
    const { folder, bell, clock } = options;
    if (folder === undefined) return;
    this.#watched = new WatchedFiles({
      look: () => folderState(folder, isWorkflowFileName),
      onChange: () => this.#read(folder),
      bell,
      folders: () => [resolve(folder)],
      clock,
    });
  }

  /** Reads the folder, and watches it from then on; problems are logged. */
  async start(): Promise<void> {
    if (this.#watched !== undefined) {
      await settledWithin(this.#watched.start(), START_MS, this.#options.clock);
    }
  }

  async close(): Promise<void> {
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

  #send(event: OperationalEvent): void {
    if (this.#listener !== undefined) this.#listener(event);
    else if (this.#events.length < MAX_EVENTS) this.#events.push(event);
  }

  /** All files, those with errors included. */
  listing(): WorkflowListing {
    const groups = Map.groupBy(this.#files, ([path, file]) => entryIdOf(path, file));
    const duplicates = Map.groupBy(duplicateProblems(this.#files), ({ at }) => at);
    const entries = [...groups].map(([id, files]): WorkflowEntry => {
      const current = this.#current.get(id);
      const isNamed = files.some(([, { loaded, id }]) => (loaded ?? id) !== undefined);
      return {
        id,
        name: isNamed ? id : undefined,
        file: current?.file ?? files[0]?.[0] ?? "",
        current,
        problems: problemsInOrder(files.flatMap(([, { problems, loaded }]) => [
          ...problems,
          ...loaded === undefined ? [] : duplicates.get(loaded.at) ?? [],
        ])),
      };
    });
    entries.sort((a, b) => a.id < b.id ? -1 : 1);
    return { folder: this.#options.folder, problems: this.#folderProblems, entries };
  }

  /** True if a file has to be read again, although it did not change. */
  async #read(folder: string): Promise<boolean> {
    const { envNames, clock } = this.#options;
    const options = { envNames, now: clock.now(), before: this.#files };
    const reading = await readWorkflowFolder(folder, options).catch((error: unknown) => {
      return { problems: [folderProblem(folder, error, "make it, or correct WORKFLOW_DIRECTORY")] };
    });
    if (this.#watched?.isRunning !== true) return false;
    if ("files" in reading) this.#apply(folder, reading.files);
    this.#folderProblems = reading.problems;
    this.#report(folder);
    return [...this.#files.values()].some(({ digest }) => digest === undefined);
  }

  /** Logs each problem once. */
  #report(folder: string): void {
    const problems = [
      ...this.#folderProblems,
      ...[...this.#files.values()].flatMap((file) => file.problems),
      ...duplicateProblems(this.#files),
    ].map(problemText);
    const found = problems.filter((problem) => !this.#reported.has(problem));
    for (const problem of found) this.#options.logger.error(problem);
    if (found.length > 0) this.#send(rejectedEvent({ what: "workflows", from: folder }, problems));
    this.#reported = new Set(problems);
  }

  #apply(folder: string, files: ReadFiles): void {
    const { logger } = this.#options;
    const current = new Map<string, LoadedWorkflow>();
    for (const [id, [first, second]] of workflowsByName(files)) {
      // Of several it is unknown which of them is meant: the previous one is kept.
      const loaded = second === undefined ? first : this.#current.get(id);
      if (loaded !== undefined) current.set(id, loaded);
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
      this.#send(loadedEvent({ what: "workflows", from: folder, workflows: current.size, changed }));
    }
    this.#files = files;
    this.#current = current;
  }
}

function parsed(name: string, text: string): Workflow {
  const { workflow, problems } = readWorkflowFile(`workflow "${name}"`, text);
  const [first] = problems;
  if (workflow === undefined) {
    throw new Error(first === undefined ? "its text is invalid" : problemText(first));
  }
  return workflow;
}
