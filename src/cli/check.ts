import type { Problem } from "../base/problem.ts";
import type { RunnableCommand } from "./command.ts";
import { MERGE_FLAG, openRuleFolder, problemLine, ruleFolder } from "./rule_folder.ts";

/** `weir check DIR`: every problem of the rule files in a folder, in the order of the files. */
export const CHECK_COMMAND: RunnableCommand = {
  command: {
    words: "check",
    args: ["DIR"],
    doc: "check the rule files of a folder as the service would load them",
    flags: {
      strict: { doc: "fail on warnings too" },
      merge: MERGE_FLAG,
    },
    notes: "MERGE_DOMAIN_CONFIG and RUNTIME_IGNOREDOTFILES are used, as by the service.\n\n" +
      "exit code: 0 good, 1 not good, 2 wrong usage",
  },
  async run({ args: [folder = ""], flags }, { environment, output }) {
    const { rules, problems, files } = await openRuleFolder(ruleFolder(folder, flags, environment));
    for (const problem of problems) output.stderr(problemLine(problem));
    const errors = count(problems, "error");
    const warnings = count(problems, "warning");
    const isGood = errors === 0 && (warnings === 0 || flags.boolean("strict") !== true);
    const found = [counted(files, "file with rules", "files with rules")];
    if (rules !== undefined) found.push(counted(rules.domainCount, "domain", "domains"));
    found.push(counted(errors, "error", "errors"), counted(warnings, "warning", "warnings"));
    output.stdout(`${folder}: ${isGood ? "good" : "not good"}: ${found.join(", ")}`);
    return isGood ? 0 : 1;
  },
};

function count(problems: readonly Problem[], severity: Problem["severity"]): number {
  return problems.filter((problem) => problem.severity === severity).length;
}

function counted(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}
