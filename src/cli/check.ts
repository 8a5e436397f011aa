import { type Problem, problemsInOrder } from "../base/problem.ts";
import { errorsExitCode, type GivenFlags, type Output, type RunnableCommand } from "./command.ts";
import { OUTPUT_FLAGS, printerOf, type ValuePrinter } from "./output_format.ts";
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
      ...OUTPUT_FLAGS,
    },
    notes:
      "Like the service, it reads MERGE_DOMAIN_CONFIG, RUNTIME_IGNOREDOTFILES, RUNTIME_WATCH_ROOT, BACKEND_TYPE and\n" +
      "WEBHOOK_STORE from the environment.",
    exitCodes: CHECK_EXIT_CODES,
  },
  async run({ args: [folder = ""], flags }, { environment, output }) {
    const report = reportOf(flags, output);
    const { rules, problems, files } = await openRuleFolder(ruleFolder(folder, flags, environment));
    const found = [
      { field: "files", count: files, one: "file with rules", many: "files with rules" },
      ...rules === undefined
        ? []
        : [{ field: "domains", count: rules.domainCount, one: "domain", many: "domains" }],
    ];
    return await reportProblems(problems, { folder, found, ...report }, output);
  },
};

/** The findings of a check of a folder. */
interface CheckedFiles {
  readonly folder: string;
  readonly found: readonly Counted[];
  /** Warnings count as errors. */
  readonly isStrict: boolean;
  /** Prints for programs; absent where people read the result. */
  readonly printer: ValuePrinter | undefined;
}

interface Counted {
  /** In a result for programs. */
  readonly field: string;
  readonly count: number;
  readonly one: string;
  readonly many: string;
}

/** The options of a report from the flags of a check; throws a `FlagError` for an unknown format. */
export function reportOf(flags: GivenFlags, output: Output): Pick<CheckedFiles, "isStrict" | "printer"> {
  return { isStrict: flags.boolean("strict") === true, printer: printerOf(flags, output) };
}

/** Prints the problems in the order of the files and a line with the result; returns the exit code. */
export async function reportProblems(
  problems: readonly Problem[],
  { folder, found, isStrict, printer }: CheckedFiles,
  output: Output,
): Promise<number> {
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const warnings = problems.length - errors;
  const isGood = errors === 0 && (warnings === 0 || !isStrict);
  const exitCode = isGood ? 0 : await errorsExitCode(folder);
  const inOrder = problemsInOrder(problems);
  if (printer !== undefined) {
    const counted = Object.fromEntries(found.map(({ field, count }) => [field, count]));
    printer.print({ folder, valid: isGood, ...counted, errors, warnings, problems: inOrder });
    return exitCode;
  }
  for (const problem of inOrder) output.stderr(problemLine(problem));
  output.stdout(resultLine(folder, isGood, { found, errors, warnings }));
  return exitCode;
}

/** The line with the result of a check. */
export function resultLine(
  subject: string,
  isGood: boolean,
  { found, errors, warnings }: {
    readonly found: readonly Omit<Counted, "field">[];
    readonly errors: number;
    readonly warnings: number;
  },
): string {
  const counts = [
    ...found,
    { count: errors, one: "error", many: "errors" },
    { count: warnings, one: "warning", many: "warnings" },
  ].map(({ count, one, many }) => `${count} ${count === 1 ? one : many}`);
  return `${subject}: ${isGood ? "valid" : "invalid"}: ${counts.join(", ")}`;
}
