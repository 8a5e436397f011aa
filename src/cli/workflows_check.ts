import type { Problem } from "../base/problem.ts";
import {
  duplicateProblems,
  folderProblem,
  readWorkflowFolder,
  workflowsByName,
} from "../webhooks/workflows/folder_reading.ts";
import { CHECK_EXIT_CODES, reportOf, reportProblems } from "./check.ts";
import type { RunnableCommand } from "./command.ts";
import { OUTPUT_FLAGS } from "./output_format.ts";
import { settingsFor } from "./rule_folder.ts";

/** `weir workflows check DIR`: every problem of the workflow files in a folder, in the order of the files. */
export const WORKFLOWS_CHECK_COMMAND: RunnableCommand = {
  command: {
    words: "workflows check",
    args: ["DIR"],
    doc: "validate the workflow files in a folder",
    flags: { strict: { doc: "treat warnings as errors" }, ...OUTPUT_FLAGS },
    notes: "Like the service, it reads WORKFLOW_ENV from the environment. It does not call the service.",
    exitCodes: CHECK_EXIT_CODES,
  },
  async run({ args: [folder = ""], flags }, { environment, output, clock }) {
    const report = reportOf(flags, output);
    const { WORKFLOW_ENV: envNames } = settingsFor(environment, ["WORKFLOW_ENV"]);
    const { files, workflows, problems } = await checkedFolder(folder, envNames, clock.now());
    const found = [
      { field: "files", count: files, one: "file", many: "files" },
      { field: "workflows", count: workflows, one: "valid workflow", many: "valid workflows" },
    ];
    return await reportProblems(problems, { folder, found, ...report }, output);
  },
};

interface CheckedFolder {
  readonly files: number;
  readonly workflows: number;
  readonly problems: readonly Problem[];
}

async function checkedFolder(
  folder: string,
  envNames: readonly string[],
  now: number,
): Promise<CheckedFolder> {
  try {
    const { files, problems } = await readWorkflowFolder(folder, { envNames, now });
    const ofFiles = [...files.values()].flatMap((file) => file.problems);
    return {
      files: files.size,
      workflows: workflowsByName(files).size,
      problems: [...problems, ...files.size === 0 ? [noFiles(folder)] : ofFiles, ...duplicateProblems(files)],
    };
  } catch (error) {
    const problem = folderProblem(folder, error, "expected the folder of the workflow files");
    return { files: 0, workflows: 0, problems: [problem] };
  }
}

function noFiles(folder: string): Problem {
  const text = "there are no workflow files here; put files *.yaml or *.yml into this folder";
  return { severity: "warning", at: folder, path: "", text };
}
