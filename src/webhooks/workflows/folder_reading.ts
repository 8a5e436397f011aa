import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { errorText } from "../../base/error_text.ts";
import type { Problem } from "../../base/problem.ts";
import type { LoadedWorkflow } from "../model/workflow.ts";
import { MAX_FILE_BYTES, readWorkflowFile } from "./file.ts";

/** A workflow file as it was read last. */
interface ReadFile {
  /** Of its current text; undefined where it cannot be read now, which is tried again. */
  readonly digest: string | undefined;
  /** The name of the workflow in its current text, if it has one. */
  readonly id?: string | undefined;
  /** Of its last valid text. */
  readonly loaded?: LoadedWorkflow | undefined;
  /** Of its current text. */
  readonly problems: readonly Problem[];
}

/** Files by their paths, sorted. */
export type ReadFiles = ReadonlyMap<string, ReadFile>;

/** Options of `readWorkflowFolder`. */
interface FolderReadingOptions {
  /** Environment variables that templates may read; any when absent. */
  readonly envNames?: readonly string[] | undefined;
  readonly now: number;
  /** The files of the last reading, which are not parsed again unless they changed. */
  readonly before?: ReadFiles | undefined;
}

/** The workflow files of a folder. */
interface FolderReading {
  readonly files: ReadFiles;
  /** Of the folder itself. */
  readonly problems: readonly Problem[];
}

const MAX_FILES = 1_000;
const WORKFLOW_FILE = /^[^.].*\.ya?ml$/;

/** True if a file with this name directly in the folder is a workflow file. */
export function isWorkflowFileName(name: string): boolean {
  return WORKFLOW_FILE.test(name);
}

/** Reads the files `*.yaml` and `*.yml` of a folder, one workflow in each; throws where the folder cannot be read. */
export async function readWorkflowFolder(
  folder: string,
  options: FolderReadingOptions,
): Promise<FolderReading> {
  const names = (await readdir(folder)).filter(isWorkflowFileName).sort();
  const tooMany =
    `Cannot read every workflow of "${folder}": there are more than ${MAX_FILES} files; use fewer`;
  const files = new Map<string, ReadFile>();
  for (const name of names.slice(0, MAX_FILES)) {
    const path = join(folder, name);
    const file = await readOne(path, options);
    if (file !== undefined) files.set(path, file);
  }
  // Throws where the folder was moved away meanwhile: its files were not removed, but cannot be read.
  await Deno.stat(folder);
  return { files, problems: names.length > MAX_FILES ? [errorAt("", tooMany)] : [] };
}

/** The problem of a folder that cannot be read. */
export function folderProblem(folder: string, error: unknown, whenMissing: string): Problem {
  const state = isMissing(error) ? `it does not exist; ${whenMissing}` : errorText(error);
  return errorAt("", `Cannot read the folder of workflows "${folder}": ${state}`);
}

/** The valid workflows by their names; of one in several files each. */
export function workflowsByName(files: ReadFiles): ReadonlyMap<string, readonly LoadedWorkflow[]> {
  const loaded = [...files.values()].flatMap((file) => file.loaded ?? []);
  return Map.groupBy(loaded, ({ workflow }) => workflow.id);
}

/** A problem for each file whose workflow is in another file, too. */
export function duplicateProblems(files: ReadFiles): Problem[] {
  return [...workflowsByName(files).values()].flatMap(([owner, ...others]) =>
    others.map(({ at, workflow: { id } }) =>
      errorAt(at, `the workflow '${id}' is also in ${owner?.file ?? ""}; rename one of them`)
    )
  );
}

/** The name of the workflow that a file is about, or else that of the file. */
export function entryIdOf(path: string, { loaded, id }: ReadFile): string {
  return loaded?.workflow.id ?? id ?? basename(path);
}

/** The file as it is now, not parsed again where it did not change; nothing where it is none. */
async function readOne(
  path: string,
  { envNames, now, before: files }: FolderReadingOptions,
): Promise<ReadFile | undefined> {
  const before = files?.get(path);
  const invalid = (text: string, digest?: string) => {
    return { id: before?.id, digest, loaded: before?.loaded, problems: [errorAt(path, text)] };
  };
  const tooLarge = `the file has more than ${MAX_FILE_BYTES} bytes; split it into several workflows`;
  try {
    const { size, isFile } = await Deno.stat(path);
    // A link may lead to a folder or a pipe, and reading a pipe would not end.
    if (!isFile) return undefined;
    if (size > MAX_FILE_BYTES) return invalid(tooLarge, "large");
    const bytes = await Deno.readFile(path);
    // It may have grown since `stat`.
    if (bytes.length > MAX_FILE_BYTES) return invalid(tooLarge, "large");
    const digest = createHash("sha256").update(bytes).digest("hex");
    if (before?.digest === digest) return before;
    const text = textOf(bytes);
    if (text === undefined) return invalid("the file is not UTF-8; save it as such", digest);
    const { id, workflow, at, stepPositions, problems } = readWorkflowFile(path, text, envNames);
    if (workflow === undefined) return { id, digest, loaded: before?.loaded, problems };
    const version = { id: digest, workflow: workflow.id, text };
    const loaded = { version, workflow, file: path, at, stepPositions, loadedAt: now };
    // The same text again is the same version, loaded when it was read first.
    const isSame = before?.loaded?.version.id === digest;
    return { id, digest, loaded: isSame ? before.loaded : loaded, problems };
  } catch (error) {
    return isMissing(error) ? undefined : invalid(`Cannot read the file: ${errorText(error)}`);
  }
}

function textOf(bytes: Uint8Array<ArrayBuffer>): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function errorAt(at: string, text: string): Problem {
  return { severity: "error", at, path: "", text };
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
