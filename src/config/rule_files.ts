import { join } from "node:path";
import type { RulesLoad } from "./provider.ts";
import { isRuleFileName, type RuleFileNameOptions } from "./rule_file_name.ts";
import { fileErrorText, RuleFileReader, type RuleFileReaderOptions } from "./rule_file_reader.ts";
import { warningsOfFilesBelow } from "./rule_files_below.ts";

/** The order in which the problems of rule files are told. */
export { problemsInOrder } from "../base/problem_order.ts";

/** How a folder of rule files is read. */
export interface RuleFilesOptions extends RuleFileReaderOptions, RuleFileNameOptions {
  /** What would be right when there is no such folder. */
  readonly whenMissing: string;
  /** The digest of what is loaded: files that still have it are not parsed again. */
  readonly known?: () => string | undefined;
}

/** What one look at a folder found: the load, and the state of the folder that it stands for. */
export interface RuleFilesLoad {
  readonly load: RulesLoad;
  readonly fingerprint: string;
}

const ATTEMPTS = 3;
const UNCHANGED: RulesLoad = { sources: [], problems: [], version: "", isUnchanged: true };

/**
 * Reads the files `*.yaml` and `*.yml` directly in the folder, by name, following symbolic links.
 * When the folder changes meanwhile it is read again, so that a swap is not taken half done; a
 * folder that never rests is taken as it is. Nothing is thrown: what cannot be read is a problem, and so is a rule
 * file in a folder below, which is not read.
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
    return fileErrorText(error);
  }
}

async function fileState(path: string): Promise<string> {
  try {
    // The runtime gives whole seconds of `ctime`: the mode tells a change of permissions within one.
    const { size, mtime, ctime, ino, dev, isFile, mode } = await Deno.stat(path);
    return [size, mtime?.getTime(), ctime?.getTime(), ino, dev, isFile, mode].join(" ");
  } catch (error) {
    return fileErrorText(error);
  }
}

async function readFolder(folder: string, options: RuleFilesOptions): Promise<RulesLoad> {
  let names: string[];
  try {
    names = await ruleFileNames(folder, options);
  } catch (error) {
    const right = error instanceof Deno.errors.NotFound ? `; ${options.whenMissing}` : "";
    const text = `Cannot read the folder of rule files: ${fileErrorText(error)}${right}`;
    return { sources: undefined, problems: [{ severity: "error", at: folder, path: "", text }], version: "" };
  }
  const reader = new RuleFileReader(options);
  for (const name of names) await reader.read(join(folder, name));
  const warnings = await warningsOfFilesBelow(folder, { ...options, names });
  if (reader.isEmpty) {
    const text =
      "there are no rule files here, so nothing is limited; put files *.yaml or *.yml into this folder";
    warnings.unshift({ severity: "warning", at: folder, path: "", text });
  }
  const digest = reader.digest() + JSON.stringify(warnings);
  if (digest === options.known?.()) return { ...UNCHANGED, digest };
  reader.parse();
  return { sources: reader.sources, problems: [...reader.problems, ...warnings], version: "", digest };
}

async function ruleFileNames(folder: string, options: RuleFilesOptions): Promise<string[]> {
  const names: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (!isDirectory && isRuleFileName(name, options)) names.push(name);
  }
  return names.sort();
}
