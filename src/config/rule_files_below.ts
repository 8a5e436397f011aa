import { join } from "node:path";
import type { Problem } from "../base/problem.ts";
import { isRuleFileName, type RuleFileNameOptions } from "./rule_file_name.ts";

/** Where to look, and what is known already. */
export interface RuleFilesBelowOptions extends RuleFileNameOptions {
  /** Names of the rule files in the folder itself. */
  readonly names: readonly string[];
  readonly signal?: AbortSignal;
}

/** Most entries that are looked at: a folder may have anything below it. */
const MAX_ENTRIES = 1_000;
/** Most files that are told of by name. */
const MAX_TOLD = 20;

/**
 * A warning for each rule file in a folder below: elsewhere such files are read, and whoever comes from there would
 * lose rules without a word. Folders whose name begins with a dot are passed over, because volumes keep what they
 * show in such folders, and so is a file that a link in the folder itself leads to.
 */
export async function warningsOfFilesBelow(
  folder: string,
  options: RuleFilesBelowOptions,
): Promise<Problem[]> {
  const found = await filesBelow(folder, options);
  if (found.length === 0) return [];
  const read = new Set(await Promise.all(options.names.map((name) => realPathOf(join(folder, name)))));
  const unread: string[] = [];
  for (const path of found) if (!read.has(await realPathOf(path))) unread.push(path);
  const problems = unread.slice(0, MAX_TOLD).map((at) =>
    warning(at, `this file is not read, because it lies in a folder below; move it into ${folder}`)
  );
  if (unread.length > MAX_TOLD) {
    problems.push(warning(folder, "further rule files in folders below are not read; move them up"));
  }
  return problems;
}

/** Paths of rule files, folder by folder; what cannot be looked at is passed over. */
async function filesBelow(folder: string, options: RuleFilesBelowOptions): Promise<string[]> {
  const found: string[] = [];
  const folders = [folder];
  let left = MAX_ENTRIES;
  for (const each of folders) {
    const entries: Deno.DirEntry[] = [];
    try {
      for await (const entry of Deno.readDir(each)) {
        if (--left < 0 || options.signal?.aborted) return found;
        entries.push(entry);
      }
    } catch {
      continue;
    }
    for (const { name, isDirectory } of entries.sort((a, b) => a.name < b.name ? -1 : 1)) {
      if (isDirectory && !name.startsWith(".")) folders.push(join(each, name));
      else if (!isDirectory && each !== folder && isRuleFileName(name, options)) found.push(join(each, name));
    }
  }
  return found;
}

function realPathOf(path: string): Promise<string> {
  return Deno.realPath(path).catch(() => path);
}

function warning(at: string, text: string): Problem {
  return { severity: "warning", at, path: "", text };
}
