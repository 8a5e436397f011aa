import { type Problem, problemText } from "../base/problem.ts";
import { compileRules } from "../ratelimit/compile_rules.ts";
import type { Rules } from "../ratelimit/rules.ts";
import { type Environment, readSettings, type Settings } from "../settings/read_settings.ts";
import type { CommandFlag, GivenFlags } from "./command.ts";
import type { Output } from "./output.ts";

/** Whether several files may define the same domain; the environment decides where it is absent. */
export const MERGE_FLAG: CommandFlag = {
  doc: "several files may define the same domain; --merge=false forbids it (default $MERGE_DOMAIN_CONFIG)",
};

/** Which rule files are read, and how they are put together. */
export interface RuleFolder {
  readonly folder: string;
  /** Several files may define the same domain. */
  readonly merge: boolean;
  /** Files whose name starts with a dot are skipped. */
  readonly ignoreDotFiles: boolean;
}

/** The rule files of a folder as the service would read them in this environment; flags take precedence. */
export function ruleFolder(folder: string, flags: GivenFlags, environment: Environment): RuleFolder {
  const { MERGE_DOMAIN_CONFIG, RUNTIME_IGNOREDOTFILES } = settingsFor(environment, [
    "MERGE_DOMAIN_CONFIG",
    "RUNTIME_IGNOREDOTFILES",
  ]);
  const merge = flags.said("merge") ?? MERGE_DOMAIN_CONFIG;
  return { folder, merge, ignoreDotFiles: RUNTIME_IGNOREDOTFILES };
}

/** These settings of the environment; the others may be wrong here, or be those of another machine. */
export function settingsFor(environment: Environment, names: readonly string[]): Settings {
  const read = Object.fromEntries(names.map((name) => [name, environment[name]]));
  // The embedded cache needs no address, whatever the environment names for the service.
  return readSettings({ ...read, BACKEND_TYPE: "memory" }).settings;
}

/** What was found in a folder. */
export interface RuleFolderReading {
  /** Absent when some problem is an error. */
  readonly rules: Rules | undefined;
  /** In the order of the files. */
  readonly problems: readonly Problem[];
  /** How many files hold rules. */
  readonly files: number;
}

/**
 * The rules of a folder for a command that works with them. Every problem is told on standard error in the
 * manner of `weir check`; nothing is answered when one of them is an error.
 */
export async function readRuleFolder(
  wanted: RuleFolder,
  { stderr }: Pick<Output, "stderr">,
): Promise<Rules | undefined> {
  const { rules, problems } = await openRuleFolder(wanted);
  for (const problem of problems) stderr(problemLine(problem));
  return rules;
}

/** Reads the rule files of a folder, with every problem of them. */
export async function openRuleFolder(
  { folder, merge, ignoreDotFiles }: RuleFolder,
): Promise<RuleFolderReading> {
  // The reader of YAML is loaded only by who uses it: whoever serves knows this file, too.
  const { loadRuleFiles, problemsInOrder } = await import("../config/rule_files.ts");
  const whenMissing = "name the folder that holds the rule files";
  const { load } = await loadRuleFiles(folder, { ignoreDotFiles, whenMissing });
  const compiled = compileRules(load.sources ?? [], { mergeDomains: merge });
  const problems = problemsInOrder([...load.problems, ...compiled.problems]);
  const isGood = problems.every(({ severity }) => severity !== "error");
  return { rules: isGood ? compiled.rules : undefined, problems, files: load.sources?.length ?? 0 };
}

/** Errors as they are; a warning says that it is one, behind the position so that tools find their way. */
export function problemLine(problem: Problem): string {
  if (problem.severity === "error") return problemText(problem);
  return problemText({ ...problem, text: `warning: ${problem.text}` });
}
