import { type Problem, problemsInOrder, problemText } from "../base/problem.ts";
import { loadRuleFiles } from "../config/rule_files.ts";
import {
  eventsUnsent,
  fixedWindowsOnly,
  oneSourcePerDomain,
  separateWindows,
} from "../settings/rule_support.ts";
import { compileRules } from "../ratelimit/rules/compile_rules.ts";
import type { SeparateWindows } from "../ratelimit/rules/rule_check.ts";
import type { Rules } from "../ratelimit/rules/rules.ts";
import { readAliases } from "../settings/aliases.ts";
import { parseBoolean } from "../settings/parsers.ts";
import { parseBackendType } from "../settings/cache_table.ts";
import { type Environment, readSettings, type Settings, SettingsError } from "../settings/read_settings.ts";
import { CommandError, type CommandFlag, type GivenFlags, type Output } from "./command.ts";

/** `--merge`. */
export const MERGE_FLAG: CommandFlag = {
  doc: "allow several files to define the same domain (default $MERGE_DOMAIN_CONFIG)",
};

/** The rule files that are read, and how they are checked. */
export interface RuleFolder {
  readonly folder: string;
  readonly ignoreDotFiles: boolean;
  /** Files next to the folder are looked at. */
  readonly siblings: boolean;
  /** Why a domain has one file only, if it may not have several. */
  readonly oneSourcePerDomain: string | undefined;
  /** Why the cache of this environment counts fixed windows only, if it is set and does. */
  readonly fixedWindowsOnly: string | undefined;
  /** Windows of one rule that the cache of this environment cannot count together. */
  readonly separateWindows: SeparateWindows | undefined;
  /** Why events of rules are not sent in this environment. */
  readonly eventsUnsent: string | undefined;
  /** Windows of a month or a year follow the calendar in UTC. */
  readonly calendarMonths: boolean;
}

/** The rule files of a folder as the service would read them in this environment; flags take precedence. */
export function ruleFolder(folder: string, flags: GivenFlags, environment: Environment): RuleFolder {
  const settings = settingsFor(environment, [
    "CACHE_KEY_PREFIX",
    "MERGE_DOMAIN_CONFIG",
    "RUNTIME_IGNOREDOTFILES",
    "RUNTIME_WATCH_ROOT",
    "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
    "USE_CALENDAR_MONTH_RATE_LIMIT",
  ]);
  const ofCache = readAliases(environment).environment;
  const merge = flags.boolean("merge") ?? settings.MERGE_DOMAIN_CONFIG;
  return {
    folder,
    oneSourcePerDomain: oneSourcePerDomain(merge),
    ignoreDotFiles: settings.RUNTIME_IGNOREDOTFILES,
    siblings: settings.RUNTIME_WATCH_ROOT,
    fixedWindowsOnly: fixedWindowsOnly(backendOf(environment)),
    separateWindows: separateWindows({
      BACKEND_TYPE: backendOf(environment),
      KV_TYPE: ofCache["KV_TYPE"],
      KV_PERSECOND: isTrue(ofCache["KV_PERSECOND"]),
      CACHE_KEY_PREFIX: settings.CACHE_KEY_PREFIX,
      STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: settings.STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT,
    }),
    eventsUnsent: eventsUnsent(environment["WEBHOOK_STORE"]),
    calendarMonths: settings.USE_CALENDAR_MONTH_RATE_LIMIT,
  };
}

/** The cache of this environment, if it is set. */
export function backendOf({ BACKEND_TYPE: backend = "" }: Environment): string | undefined {
  return backend === "" ? undefined : parseBackendType(backend).value;
}

/** False for a text that the service rejects. */
function isTrue(text = ""): boolean {
  const parsed = parseBoolean(text);
  return "value" in parsed && parsed.value;
}

/** Only these settings of the environment; others may be those of another machine. */
export function settingsFor(environment: Environment, names: readonly string[]): Settings {
  const read = Object.fromEntries(names.map((name) => [name, environment[name]]));
  try {
    // The embedded cache requires no address.
    return readSettings({ ...read, BACKEND_TYPE: "memory" }).settings;
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new CommandError(error.message, { cause: error, isUsage: true });
  }
}

/** The content of a folder. */
interface RuleFolderReading {
  readonly rules: Rules | undefined;
  readonly problems: readonly Problem[];
  readonly files: number;
}

/** The rules of a folder; undefined after an error. Prints every problem as `weir check` does. */
export async function readRuleFolder(
  source: RuleFolder,
  { stderr }: Pick<Output, "stderr">,
): Promise<Rules | undefined> {
  const { rules, problems } = await openRuleFolder(source);
  for (const problem of problems) stderr(problemLine(problem));
  return rules;
}

/** Reads the rule files of a folder, with every problem of them. */
export async function openRuleFolder(
  { folder, ignoreDotFiles, siblings, ...options }: RuleFolder,
): Promise<RuleFolderReading> {
  const whenMissing = "expected the folder of the rule files";
  const load = await loadRuleFiles(folder, { ignoreDotFiles, siblings, whenMissing });
  const compiled = compileRules(load.sources ?? [], options);
  const problems = problemsInOrder([...load.problems, ...compiled.problems]);
  const isGood = problems.every(({ severity }) => severity !== "error");
  return { rules: isGood ? compiled.rules : undefined, problems, files: load.sources?.length ?? 0 };
}

/** A problem as a line; a warning is marked behind its position, so that tools find the position. */
export function problemLine(problem: Problem): string {
  if (problem.severity === "error") return problemText(problem);
  return problemText({ ...problem, text: `warning: ${problem.text}` });
}
