import { loadRuleFiles } from "../config/rule_files.ts";
import { type Problem, problemText } from "../ratelimit/rule_source.ts";
import { compileRules } from "../ratelimit/rules.ts";
import { FlagError, parseFlags } from "./flags.ts";
import type { Output } from "./output.ts";

const USAGE = "usage: weir check DIR [--strict] [--merge]\n" +
  "  --strict  fail on warnings, too\n" +
  "  --merge   several files may define the same domain, as MERGE_DOMAIN_CONFIG=true allows";

/**
 * The command `weir check DIR`: tells every problem of the rule files in a folder. Answers the exit
 * code: 0 for good files, 1 for others, 2 when the command line is wrong.
 */
export async function check(args: readonly string[], output: Output): Promise<number> {
  const wanted = readArguments(args);
  if (typeof wanted === "string") {
    output.stderr(`${wanted}\n${USAGE}`);
    return 2;
  }
  const whenMissing = "name the folder that holds the rule files";
  const { load } = await loadRuleFiles(wanted.folder, { ignoreDotFiles: false, whenMissing });
  const compiled = compileRules(load.sources ?? [], { mergeDomains: wanted.merge });
  const problems = [...load.problems, ...compiled.problems];
  for (const problem of problems) output.stderr(lineOf(problem));
  const errors = count(problems, "error");
  const warnings = count(problems, "warning");
  const isGood = errors === 0 && (warnings === 0 || !wanted.strict);
  const found = [counted(load.sources?.length ?? 0, "file with rules", "files with rules")];
  if (errors === 0 && compiled.rules !== undefined) {
    found.push(counted(compiled.rules.domainCount, "domain", "domains"));
  }
  found.push(counted(errors, "error", "errors"), counted(warnings, "warning", "warnings"));
  output.stdout(`${wanted.folder}: ${isGood ? "good" : "not good"}: ${found.join(", ")}`);
  return isGood ? 0 : 1;
}

/** Errors as they are; a warning says that it is one, behind the position so that tools find their way. */
function lineOf(problem: Problem): string {
  if (problem.severity === "error") return problemText(problem);
  return problemText({ ...problem, text: `warning: ${problem.text}` });
}

interface Wanted {
  readonly folder: string;
  readonly strict: boolean;
  readonly merge: boolean;
}

/** What the command line asks for, or what is wrong with it. */
function readArguments(args: readonly string[]): Wanted | string {
  try {
    const { flags, rest } = parseFlags(args, { strict: "boolean", merge: "boolean" });
    const [folder, ...more] = rest;
    if (folder === undefined || folder === "" || more.length > 0) {
      return `Cannot check "${rest.join(" ")}": name one folder`;
    }
    return { folder, strict: flags["strict"] === true, merge: flags["merge"] === true };
  } catch (error) {
    if (error instanceof FlagError) return error.message;
    throw error;
  }
}

function count(problems: readonly Problem[], severity: Problem["severity"]): number {
  return problems.filter((problem) => problem.severity === severity).length;
}

function counted(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}
