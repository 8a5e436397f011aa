import type { Problem } from "../ratelimit/rule_source.ts";
import { asksForHelp, FlagError, HELP_FLAGS, parseFlags } from "./flags.ts";
import type { Output } from "./output.ts";
import { openRuleFolder, problemLine, type RuleFolder } from "./rule_folder.ts";

const FLAGS = { strict: "boolean", merge: "boolean", ...HELP_FLAGS } as const;

const USAGE = "usage: weir check DIR [--strict] [--merge]\n" +
  "  --strict  fail on warnings, too\n" +
  "  --merge   several files may define the same domain, as MERGE_DOMAIN_CONFIG=true allows\n" +
  "  --help    this text";

/**
 * The command `weir check DIR`: tells every problem of the rule files in a folder, in the order of the
 * files. Answers the exit code: 0 for good files, 1 for others, 2 when the command line is wrong.
 */
export async function check(args: readonly string[], output: Output): Promise<number> {
  let wanted: Wanted | undefined;
  try {
    wanted = readArguments(args);
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    output.stderr(`${error.message}\n${USAGE}`);
    return 2;
  }
  if (wanted === undefined) {
    output.stdout(USAGE);
    return 0;
  }
  return await checkFolder(wanted, output);
}

async function checkFolder(wanted: Wanted, output: Output): Promise<number> {
  const { rules, problems, files } = await openRuleFolder(wanted);
  for (const problem of problems) output.stderr(problemLine(problem));
  const errors = count(problems, "error");
  const warnings = count(problems, "warning");
  const isGood = errors === 0 && (warnings === 0 || !wanted.strict);
  const found = [counted(files, "file with rules", "files with rules")];
  if (rules !== undefined) found.push(counted(rules.domainCount, "domain", "domains"));
  found.push(counted(errors, "error", "errors"), counted(warnings, "warning", "warnings"));
  output.stdout(`${wanted.folder}: ${isGood ? "good" : "not good"}: ${found.join(", ")}`);
  return isGood ? 0 : 1;
}

interface Wanted extends RuleFolder {
  readonly strict: boolean;
}

/** What the command line asks for; absent when that is the usage. */
function readArguments(args: readonly string[]): Wanted | undefined {
  const { flags, rest } = parseFlags(args, FLAGS);
  if (asksForHelp(flags)) return undefined;
  const [folder, ...more] = rest;
  if (folder === undefined || folder === "" || more.length > 0) {
    throw new FlagError(`Cannot check "${rest.join(" ")}": name one folder`);
  }
  return { folder, strict: flags["strict"] === true, merge: flags["merge"] === true };
}

function count(problems: readonly Problem[], severity: Problem["severity"]): number {
  return problems.filter((problem) => problem.severity === severity).length;
}

function counted(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}
