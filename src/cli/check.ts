import { type Problem, problemsInOrder } from "../base/problem.ts";
import type { Output, RunnableCommand } from "./command.ts";
import { MERGE_FLAG, openRuleFolder, problemLine, ruleFolder } from "./rule_folder.ts";

/** The exit codes of `reportProblems`. */
export const CHECK_EXIT_CODES = { 0: "no errors", 1: "errors (with --strict also warnings)" };

/** `weir check DIR`: every problem of the rule files in a folder, in the order of the files. */
export const CHECK_COMMAND: RunnableCommand = {
  command: {
    words: "check",
    args: ["DIR"],
    doc: "validate the rule files in a folder",
    flags: {
      strict: { doc: "treat warnings as errors" },
      merge: MERGE_FLAG,
    },
    notes:
      "Like the service, it reads MERGE_DOMAIN_CONFIG, RUNTIME_IGNOREDOTFILES and BACKEND_TYPE from the environment.",
    exitCodes: CHECK_EXIT_CODES,
  },
  async run({ args: [folder = ""], flags }, { environment, output }) {
    const { rules, problems, files } = await openRuleFolder(ruleFolder(folder, flags, environment));
    const found = [
      { count: files, one: "file with rules", many: "files with rules" },
      ...rules === undefined ? [] : [{ count: rules.domainCount, one: "domain", many: "domains" }],
    ];
    return reportProblems(problems, { folder, found, isStrict: flags.boolean("strict") === true }, output);
  },
};

/** What a check of a folder has found. */
export interface CheckedFiles {
  readonly folder: string;
  readonly found: readonly Counted[];
  /** Whether warnings count as errors. */
  readonly isStrict: boolean;
}

interface Counted {
  readonly count: number;
  readonly one: string;
  readonly many: string;
}

/** Prints the problems in the order of the files and a line with the result; returns the exit code. */
export function reportProblems(
  problems: readonly Problem[],
  { folder, found, isStrict }: CheckedFiles,
  output: Output,
): number {
  for (const problem of problemsInOrder(problems)) output.stderr(problemLine(problem));
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const warnings = problems.length - errors;
  const isGood = errors === 0 && (warnings === 0 || !isStrict);
  const counts = [
    ...found,
    { count: errors, one: "error", many: "errors" },
    { count: warnings, one: "warning", many: "warnings" },
  ].map(({ count, one, many }) => `${count} ${count === 1 ? one : many}`);
  output.stdout(`${folder}: ${isGood ? "valid" : "invalid"}: ${counts.join(", ")}`);
  return isGood ? 0 : 1;
}
