import { join } from "node:path";
import type { DomainSource, Problem } from "../ratelimit/rule_source.ts";
import type { RulesLoad } from "./provider.ts";
import { readRuleFileInTurns } from "./yaml.ts";

/** The order in which the problems of rule files are told. */
export { problemsInOrder } from "./problem_order.ts";

/** The largest rule file that is read. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;

/** How a folder of rule files is read. */
export interface RuleFilesOptions {
  /** Files whose name begins with a dot are no rule files. */
  readonly ignoreDotFiles: boolean;
  /** What would be right when there is no such folder. */
  readonly whenMissing: string;
  /** Ends the reading; the load is then of no use. */
  readonly signal?: AbortSignal;
}

/** What one look at a folder found: the load, and the state of the folder that it stands for. */
export interface RuleFilesLoad {
  readonly load: RulesLoad;
  readonly fingerprint: string;
}

const ATTEMPTS = 3;
const RULE_FILE = /\.ya?ml$/;

/**
 * Reads the files `*.yaml` and `*.yml` directly in the folder, by name, following symbolic links.
 * When the folder changes meanwhile it is read again, so that a swap is not taken half done; a
 * folder that never rests is taken as it is. Nothing is thrown: what cannot be read is a problem.
 */
export async function loadRuleFiles(folder: string, options: RuleFilesOptions): Promise<RuleFilesLoad> {
  let fingerprint = await folderFingerprint(folder, options);
  for (let attempt = 1;; attempt++) {
    const load = await readFolder(folder, options);
    const after = await folderFingerprint(folder, options);
    if (after === fingerprint || attempt === ATTEMPTS || options.signal?.aborted) {
      return { load, fingerprint };
    }
    fingerprint = after;
  }
}

/**
 * A text that changes when the folder becomes another one or a rule file in it changes. It is made
 * of what the file system says of them; no file is opened.
 */
export async function folderFingerprint(folder: string, options: RuleFilesOptions): Promise<string> {
  try {
    const lines = [await Deno.realPath(folder)];
    for (const name of await ruleFileNames(folder, options)) {
      lines.push(`${name} ${await fileState(join(folder, name))}`);
    }
    return lines.join("\n");
  } catch (error) {
    return stateOf(error);
  }
}

async function fileState(path: string): Promise<string> {
  try {
    const { size, mtime, ctime, ino, dev, isFile } = await Deno.stat(path);
    return [size, mtime?.getTime(), ctime?.getTime(), ino, dev, isFile].join(" ");
  } catch (error) {
    return stateOf(error);
  }
}

async function readFolder(folder: string, options: RuleFilesOptions): Promise<RulesLoad> {
  let names: string[];
  try {
    names = await ruleFileNames(folder, options);
  } catch (error) {
    const right = error instanceof Deno.errors.NotFound ? `; ${options.whenMissing}` : "";
    const text = `Cannot read the folder of rule files: ${stateOf(error)}${right}`;
    return { sources: undefined, problems: [{ severity: "error", at: folder, path: "", text }], version: "" };
  }
  const sources: DomainSource[] = [];
  const problems: Problem[] = [];
  let files = 0;
  for (const name of names) {
    const path = join(folder, name);
    const text = await readText(path, options.signal);
    if (text === undefined) continue;
    files++;
    const file = typeof text === "string"
      ? await readRuleFileInTurns(path, text)
      : { source: undefined, problems: [text] };
    if (file.source !== undefined) sources.push(file.source);
    for (const problem of file.problems) problems.push(problem);
  }
  if (files === 0) {
    const text =
      "there are no rule files here, so nothing is limited; put files *.yaml or *.yml into this folder";
    problems.push({ severity: "warning", at: folder, path: "", text });
  }
  return { sources, problems, version: "" };
}

async function ruleFileNames(folder: string, options: RuleFilesOptions): Promise<string[]> {
  const names: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory || !RULE_FILE.test(name)) continue;
    if (options.ignoreDotFiles && name.startsWith(".")) continue;
    names.push(name);
  }
  return names.sort();
}

/** The text of a file, the problem that kept us from it, or nothing when it is no file. */
async function readText(
  path: string,
  signal: AbortSignal | undefined,
): Promise<string | Problem | undefined> {
  const problem = (text: string): Problem => ({ severity: "error", at: path, path: "", text });
  try {
    const { isFile, size } = await Deno.stat(path);
    // A link may lead to a folder or a pipe, and reading a pipe would not end.
    if (!isFile) return undefined;
    if (size > MAX_FILE_BYTES) {
      return problem(`Cannot read the file: it is larger than ${MAX_FILE_BYTES} bytes; make several of it`);
    }
    const bytes = await Deno.readFile(path, signal === undefined ? {} : { signal });
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return problem("Cannot read the file: it is not UTF-8; save it as UTF-8");
    const right = error instanceof Deno.errors.NotFound ? "; correct the symbolic link, or remove it" : "";
    return problem(`Cannot read the file: ${stateOf(error)}${right}`);
  }
}

/** Why the file system refused, in a few words and without the path. */
function stateOf(error: unknown): string {
  if (error instanceof Deno.errors.NotFound) return "it does not exist";
  if (error instanceof Deno.errors.PermissionDenied) return "permission denied; let this process read it";
  if (error instanceof Deno.errors.NotADirectory) return "it is not a folder; name a folder";
  return error instanceof Error ? error.message : String(error);
}
