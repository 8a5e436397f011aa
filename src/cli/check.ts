import type { Problem } from "../base/problem.ts";
import type { RunnableCommand } from "./command.ts";
import { MERGE_FLAG, openRuleFolder, problemLine, ruleFolder } from "./rule_folder.ts";

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
      "Like the service, it reads MERGE_DOMAIN_CONFIG, RUNTIME_IGNOREDOTFILES, BACKEND_TYPE and WEBHOOK_STORE from the environment.\n\n" +
      "Exit code: 0 no errors, 1 errors, 2 invalid usage.",
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
    output.stdout(`${folder}: ${isGood ? "valid" : "invalid"}: ${found.join(", ")}`);
    return isGood ? 0 : 1;
  },
};

function count(problems: readonly Problem[], severity: Problem["severity"]): number {
  return problems.filter((problem) => problem.severity === severity).length;
}

function counted(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}
