import { basename, join, resolve } from "node:path";
import type { Problem } from "../base/problem.ts";
import { readYamlDocument, yamlText } from "../yaml/document.ts";

/** The files of a folder that are read, and where further ones are looked for. */
export interface UnreadFilesOptions {
  /** True if files whose name begins with a dot are ignored. */
  readonly ignoreDotFiles: boolean;
  /** Look next to the folder too, for what begins with its name and a dot. */
  readonly siblings?: boolean;
  readonly signal?: AbortSignal;
}

/** A file that is not read. */
interface UnreadFile {
  readonly path: string;
  /** The advice with which it is read. */
  readonly text: string;
  /** It is reported by its name alone. */
  readonly isNamed: boolean;
}

/** Maximum number of entries that are checked: subfolders may contain anything. */
const MAX_ENTRIES = 1_000;
/** Maximum number of warnings with the name of a file. */
const MAX_NAMED = 20;
/** Bounds of the files that are read for their domain. */
const MAX_FILE_BYTES = 1024 * 1024;
const MAX_ALL_BYTES = 4 * MAX_FILE_BYTES;
const MAX_PARTS = 1_000_000;
const RULE_FILE = /\.ya?ml$/;
/** The lock of an Emacs buffer, a link to nothing. */
const LOCK = /^\.#/;

/** True if a file with this name directly in the folder is a rule file. */
export function isRuleFileName(name: string, ignoreDotFiles: boolean): boolean {
  return RULE_FILE.test(name) && !LOCK.test(name) && !(ignoreDotFiles && name.startsWith("."));
}

/**
 * Warns of files that envoyproxy/ratelimit reads and that are not read here: rule files in subfolders, and files with a
 * domain that have another ending or are next to the folder. Skips folders whose name begins with a dot, in which volumes
 * keep their content, and files that a link in the folder itself leads to; `names` are the rule files in the folder.
 */
export async function warningsOfUnreadFiles(
  folder: string,
  names: readonly string[],
  options: UnreadFilesOptions,
): Promise<Problem[]> {
  const read = new Set(await Promise.all(names.map((name) => realPathOf(join(folder, name)))));
  const budget = { leftBytes: MAX_ALL_BYTES };
  const problems: Problem[] = [];
  for (const { path, text, isNamed } of await unreadFiles(folder, options)) {
    if (options.signal?.aborted || read.has(await realPathOf(path))) continue;
    if (!isNamed && !await hasDomain(path, budget)) continue;
    if (problems.length === MAX_NAMED) {
      const rest = isNamed
        ? "further rule files in folders below are not read; move them up"
        : "further files with a domain are not read; rename them, or move them into this folder";
      return [...problems, warning(folder, rest)];
    }
    problems.push(warning(path, text));
  }
  return problems;
}

/** Files that may be meant as rule files, folder by folder; unreadable folders are skipped. */
async function unreadFiles(folder: string, options: UnreadFilesOptions): Promise<UnreadFile[]> {
  const found: UnreadFile[] = [];
  const into = `move it into ${folder}`;
  const budget = { left: MAX_ENTRIES, signal: options.signal };
  const isSkipped = (name: string) => LOCK.test(name) || options.ignoreDotFiles && name.startsWith(".");
  for (const { path, name, depth } of await filesOf(folder, budget)) {
    if (isSkipped(name)) continue;
    const isNamed = isRuleFileName(name, options.ignoreDotFiles);
    if (depth > 0) found.push({ path, isNamed, text: `this file is in a subfolder and is ignored; ${into}` });
    else if (!isNamed) {
      const text =
        "this file has a domain but is ignored: its name does not end with .yaml or .yml; rename it";
      found.push({ path, isNamed, text });
    }
  }
  if (options.siblings !== true) return found;
  const start = `${basename(resolve(folder))}.`;
  for (const { path, name } of await filesOf(join(folder, ".."), budget, start)) {
    const text = `this file has a domain but is ignored, since it is next to the folder; ${into}`;
    if (!isSkipped(name)) found.push({ path, isNamed: false, text });
  }
  return found;
}

/** The number of entries that may still be listed. */
interface EntryBudget {
  left: number;
  readonly signal: AbortSignal | undefined;
}

/** The files at any depth, folder by folder; entries of the folder itself only if their names begin with `start`. */
async function filesOf(folder: string, budget: EntryBudget, start = "") {
  const files: { readonly path: string; readonly name: string; readonly depth: number }[] = [];
  const folders = [{ path: folder, depth: 0 }];
  for (const { path: parent, depth } of folders) {
    for (const { name, isDirectory } of await entriesOf(parent, budget, depth === 0 ? start : "")) {
      const path = join(parent, name);
      if (!isDirectory) files.push({ path, name, depth });
      else if (!name.startsWith(".")) folders.push({ path, depth: depth + 1 });
    }
  }
  return files;
}

async function entriesOf(folder: string, budget: EntryBudget, start: string): Promise<Deno.DirEntry[]> {
  const entries: Deno.DirEntry[] = [];
  try {
    for await (const entry of Deno.readDir(folder)) {
      if (budget.left <= 0 || budget.signal?.aborted) break;
      if (!entry.name.startsWith(start)) continue;
      budget.left--;
      entries.push(entry);
    }
  } catch {
    return [];
  }
  return entries.sort((a, b) => a.name < b.name ? -1 : 1);
}

/** True if this is a regular file in YAML, or in JSON, with a domain. */
async function hasDomain(path: string, budget: { leftBytes: number }): Promise<boolean> {
  try {
    const { isFile, size } = await Deno.stat(path);
    if (!isFile || size > Math.min(MAX_FILE_BYTES, budget.leftBytes)) return false;
    budget.leftBytes -= size;
    const text = yamlText(await Deno.readFile(path));
    if (text === undefined || !/\bdomain\b/.test(text)) return false;
    const { root, log } = readYamlDocument(path, text, { maxParts: MAX_PARTS });
    const isValid = log.problems().every(({ severity }) => severity !== "error");
    return isValid && root?.kind === "mapping" && root.entries.has("domain");
  } catch {
    return false;
  }
}

function realPathOf(path: string): Promise<string> {
  return Deno.realPath(path).catch(() => path);
}

function warning(at: string, text: string): Problem {
  return { severity: "warning", at, path: "", text };
}
