import {
  choiceSchema,
  flagSchema,
  idSchema,
  integerSchema,
  listSchema,
  objectSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
  timeSchema,
} from "../../base/json_schema.ts";
import { STEP_KINDS } from "../resources/execution.ts";
import { listSchemas, pageFields } from "./list_query.ts";
import type { AdministrationOperations } from "./operation.ts";
import { readOperation } from "./resource_operations.ts";

/** Most problems of a workflow in an answer. */
export const MAX_SHOWN_PROBLEMS = 50;
/** Most triggers of a workflow in an answer. */
export const MAX_SHOWN_TRIGGERS = 20;

/** The parameters of the list. */
export const WORKFLOW_LIST = pageFields("workflows\\.(?:[0-9a-f]{2})+");

const STATES = ["valid", "outdated", "invalid"];
const POSITION = "as `file:line:column`";

/** Schemas of workflow files, by name. */
export const WORKFLOW_SCHEMAS: SchemaProperties = {
  Workflow: objectSchema({
    id: textSchema("The name of the workflow; the name of the file if it has no valid one."),
    file: textSchema("The path of the file."),
    state: choiceSchema(
      STATES,
      "`valid`: the file is in use. `outdated`: the file has errors, and its previous version is in use. " +
        "`invalid`: no version is in use, and its triggers return 503.",
    ),
    steps: listSchema(schemaOf("WorkflowStep"), "Steps of the version in use, in order."),
    triggers: listSchema(schemaOf("WorkflowTrigger"), "Triggers that start the workflow, by name.", {
      maxItems: MAX_SHOWN_TRIGGERS,
    }),
    triggerCount: integerSchema("Number of all its triggers.", { minimum: 0 }),
    problems: listSchema(schemaOf("ConfigurationProblem"), "Errors of the file.", {
      maxItems: MAX_SHOWN_PROBLEMS,
    }),
    problemCount: integerSchema("Number of all its errors.", { minimum: 0 }),
  }, {
    name: textSchema("The name of the workflow; absent if the file has no valid one."),
    at: textSchema(`Position of the name in the version in use, ${POSITION}.`),
    versionId: textSchema("SHA-256 of the version in use, in lower-case hex."),
    loadedAt: timeSchema("Time at which this instance loaded the version in use."),
    timeoutMs: integerSchema("Timeout of an execution in milliseconds.", { minimum: 1 }),
  }),
  WorkflowStep: objectSchema({
    name: textSchema("The name of the step."),
    kind: choiceSchema(STEP_KINDS, "The kind of the step."),
    at: textSchema(`Position in the version in use, ${POSITION}.`),
  }),
  WorkflowTrigger: objectSchema({
    id: idSchema("The trigger."),
    name: textSchema("The name of the trigger."),
    enabled: flagSchema("Whether calls are accepted."),
  }),
  ConfigurationProblem: objectSchema({
    severity: choiceSchema(["error", "warning"], "Whether the file is rejected."),
    at: textSchema(`Position, ${POSITION}; only the file if it could not be read.`),
    path: textSchema("Path of the field, such as `steps[0].set`; empty for the whole file."),
    text: textSchema("The problem."),
  }),
};

const EXAMPLE = {
  id: "order-intake",
  name: "order-intake",
  file: "config/workflows/order-intake.yaml",
  state: "valid",
  at: "config/workflows/order-intake.yaml:1:1",
  versionId: "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683",
  loadedAt: "2026-11-22T02:43:02.047Z",
  timeoutMs: 3_600_000,
  steps: [{ name: "result", kind: "set", at: "config/workflows/order-intake.yaml:3:5" }],
  triggers: [{ id: "fe019132-4f4e-4b4e-b21b-826c5921980a", name: "order-intake", enabled: true }],
  triggerCount: 1,
  problems: [],
  problemCount: 0,
};

/** Operations of `/workflows`, except for the calls of triggers. */
export const WORKFLOW_OPERATIONS = {
  "GET /workflows": {
    id: "listWorkflows",
    summary: "List workflow files with their errors",
    role: "read",
    description: "Shows the files that the responding instance has read.",
    query: listSchemas(WORKFLOW_LIST),
    answers: {
      200: {
        description: "A page of workflows.",
        schema: objectSchema({
          items: listSchema(schemaOf("Workflow"), "Sorted by `id`."),
          problems: listSchema(schemaOf("ConfigurationProblem"), "Errors of the folder itself."),
        }, {
          folder: textSchema("`WORKFLOW_DIRECTORY`; absent if it is not set."),
          nextCursor: textSchema("The `cursor` of the next page; absent on the last page."),
        }),
        example: { items: [EXAMPLE], folder: "config/workflows", problems: [] },
      },
    },
  },
  "GET /workflows/:id": readOperation("getWorkflow", "Show a workflow with its steps, triggers and errors", {
    description: "The workflow.",
    schema: schemaOf("Workflow"),
    example: EXAMPLE,
  }),
} as const satisfies AdministrationOperations;
