import { type AdministrationCommand, list, show } from "./administration_command.ts";

const COLUMNS = ["id", "state", "triggerCount", "loadedAt", "file"];

/** Commands that show the workflow files of the service. */
export const WORKFLOW_COMMANDS: readonly AdministrationCommand[] = [
  {
    ...list("workflows", "workflows", {}, COLUMNS),
    doc: "list the workflow files that the service has read, with their errors",
    shown: { as: "list", columns: COLUMNS, hasProblems: true },
  },
  {
    ...show("workflows", "a workflow with its steps, triggers and errors"),
    args: ["NAME"],
    path: "/workflows/{NAME}",
    shown: { as: "record", hasProblems: true },
  },
];
