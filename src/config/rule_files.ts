import { join } from "node:path";
import type { RulesLoad } from "./provider.ts";
import { fileErrorText, RuleFileReader, type RuleFileReaderOptions } from "./rule_file_reader.ts";
import { isRuleFileName, type UnreadFilesOptions, warningsOfUnreadFiles } from "./unread_files.ts";
import { folderState } from "../threads/watched_files.ts";

/** Options of `loadRuleFiles`. */
export interface RuleFilesOptions extends RuleFileReaderOptions, UnreadFilesOptions {
  /** The advice when the folder does not exist. */
  readonly whenMissing: string;
  /** Digest of the loaded files: files that still have it are not parsed again. */
  readonly known?: (() => string | undefined) | undefined;
  /** Called before large files are parsed that replace loaded ones, which takes long. */
  readonly beforeLargeReload?: (() => void) | undefined;
}

const ATTEMPTS = 3;
/** Parsing as much takes about 100 milliseconds. */
const LARGE_BYTES = 500_000;
/** Changed files that a load names. */
const MAX_CHANGED = 10;
const UNCHANGED: RulesLoad = { sources: [], problems: [], version: "", isUnchanged: true };

/**
 * Reads the files `*.yaml` and `*.yml` directly in the folder in the order of their names, following symbolic links.
 * Reads again when the folder changes meanwhile, to avoid a half swapped one. Never throws: an unreadable file is a
 * problem, and a file with a domain that is not read is a warning.
 */
export async function loadRuleFiles(folder: string, options: RuleFilesOptions): Promise<RulesLoad> {
  const state = () => folderState(folder, (name) => isRuleFileName(name, options.ignoreDotFiles));
  let before = await state();
  for (let attempt = 1;; attempt++) {
    const load = await readFolder(folder, options);
    const after = await state();
    if (after === before || attempt === ATTEMPTS || options.signal?.aborted) return load;
    before = after;
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
  const warnings = await warningsOfUnreadFiles(folder, names, options);
  if (reader.isEmpty) {
    const text =
      "there are no rule files here, so nothing is limited; put files *.yaml or *.yml into this folder";
    warnings.unshift({ severity: "warning", at: folder, path: "", text });
  }
  const files = Object.fromEntries(reader.digests);
  const digest = JSON.stringify({ files, warnings });
  const known = options.known?.();
  if (digest === known) return { ...UNCHANGED, digest };
  if (known !== undefined && reader.bytes >= LARGE_BYTES) options.beforeLargeReload?.();
  reader.parse();
  const changed = changedFiles(known === undefined ? {} : filesOf(known), files);
  return {
    sources: reader.sources,
    problems: [...reader.problems, ...warnings],
    version: "",
    digest,
    changed,
  };
}

/** Digests of files by their paths. */
type FileDigests = Readonly<Record<string, string>>;

/** The paths of files whose digests differ, added and removed ones included, the first ones only. */
function changedFiles(before: FileDigests, after: FileDigests): string[] {
  const paths = new Set([...Object.keys(after), ...Object.keys(before)]);
  return [...paths].filter((path) => before[path] !== after[path]).slice(0, MAX_CHANGED);
}

function filesOf(digest: string): FileDigests {
  return (JSON.parse(digest) as { files: FileDigests }).files;
}

async function ruleFileNames(folder: string, options: RuleFilesOptions): Promise<string[]> {
  const names: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (!isDirectory && isRuleFileName(name, options.ignoreDotFiles)) names.push(name);
  }
  return names.sort();
}
