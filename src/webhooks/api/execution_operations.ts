import {
  choiceSchema,
  closedSchema,
  flagSchema,
  idSchema,
  integerSchema,
  listSchema,
  objectSchema,
  openSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
  timeSchema,
} from "../../base/json_schema.ts";
import { AUDIT_ACTIONS } from "../model/audit_actions.ts";
import { MAX_LISTED_OUTPUT_BYTES } from "../model/records.ts";
import { ACTION_FILTER, listParameters, pageAnswer, stateFilter } from "./list_parameters.ts";
import type { AdministrationOperations } from "./operation.ts";

const STATUSES = ["queued", "running", "succeeded", "failed", "cancelled"];
/** The kinds of steps. */
export const STEP_KINDS = ["request", "limit", "set"];

/** Schemas of executions and of the audit log, by name. */
export const EXECUTION_SCHEMAS: SchemaProperties = {
  Execution: objectSchema({
    id: idSchema("The identifier."),
    workflow: textSchema("The name of the workflow."),
    versionId: textSchema("SHA-256 of the workflow's file, in lower-case hex."),
    triggerId: idSchema("The trigger."),
    status: choiceSchema(STATUSES, "The status."),
    createdAt: timeSchema("Time at which Weir accepted it."),
    cancelRequested: flagSchema("Whether a cancellation was requested."),
    steps: listSchema(schemaOf("ExecutionStep"), "Finished steps in execution order."),
  }, {
    event: textSchema("The kind of event that the provider named in a header of its signed call."),
    startedAt: timeSchema("Start time."),
    finishedAt: timeSchema("End time."),
    output: { description: `The output; lists omit outputs of more than ${MAX_LISTED_OUTPUT_BYTES} bytes.` },
    error: textSchema("Reason of the failure."),
  }),
  ExecutionStep: objectSchema({
    index: integerSchema("Index, from 0.", { minimum: 0 }),
    name: textSchema("The name of the step."),
    kind: choiceSchema(STEP_KINDS, "The kind of the step."),
    status: choiceSchema(["succeeded", "failed"], "Result."),
    attempts: integerSchema("Number of attempts.", { minimum: 0 }),
    startedAt: timeSchema("Start time."),
    finishedAt: timeSchema("End time."),
  }, {
    result: { description: "The result; lists omit it." },
    error: textSchema("Reason of the failure."),
  }),
  CurrentStep: objectSchema({
    attempt: integerSchema("The number of the attempt, from 1.", { minimum: 1 }),
  }, {
    name: textSchema("The name of the step."),
    kind: choiceSchema(STEP_KINDS, "The kind of the step."),
    lastError: textSchema("The error of the previous attempt."),
    nextAttemptAt: timeSchema("Time at which the next attempt is due."),
  }),
  AuditEntry: objectSchema({
    id: idSchema("The identifier."),
    at: timeSchema("Time of the action."),
    actor: textSchema("`admin`, `system`, `trigger:<name>` or `event-key:<name>`."),
    action: textSchema("The action.", { examples: Object.keys(AUDIT_ACTIONS) }),
    object: textSchema("The record, such as `delivery:<id>`."),
    details: openSchema("Details; never a secret."),
  }),
};

const EXAMPLE_ID = "6bdb9dc3-e8f4-42fc-90e4-9ff087fde12f";
const EXAMPLE_TIME = "2026-11-22T02:43:15.120Z";
const EXAMPLE = {
  id: EXAMPLE_ID,
  workflow: "order-intake",
  versionId: "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683",
  triggerId: "fe019132-4f4e-4b4e-b21b-826c5921980a",
  status: "succeeded",
  createdAt: EXAMPLE_TIME,
  startedAt: EXAMPLE_TIME,
  finishedAt: EXAMPLE_TIME,
  cancelRequested: false,
  output: { total: 99.9 },
  steps: [],
};

/** Operations of `/executions` and `/audit`. */
export const EXECUTION_OPERATIONS = {
  "GET /executions": {
    id: "listExecutions",
    role: "read",
    summary: "List executions",
    query: listParameters("executions", stateFilter(STATUSES)),
    answers: { 200: pageAnswer(schemaOf("Execution"), EXAMPLE) },
  },
  "GET /executions/:id": {
    id: "getExecution",
    role: "read",
    summary: "Show an execution with its input and steps",
    answers: {
      200: {
        description: "The execution.",
        schema: {
          allOf: [
            schemaOf("Execution"),
            objectSchema({ input: openSchema("The body of the trigger call.") }, {
              currentStep: schemaOf("CurrentStep"),
            }),
          ],
        },
        example: { ...EXAMPLE, input: { id: "1001", total: 99.9 } },
      },
    },
  },
  "POST /executions/:id/cancel": {
    id: "cancelExecution",
    role: "admin",
    summary: "Cancel an execution after its current step",
    body: { schema: closedSchema({}), example: {}, isOptional: true },
    answers: {
      202: {
        description: "The cancellation was requested.",
        schema: objectSchema({ id: idSchema("The execution.") }),
        example: { id: EXAMPLE_ID },
      },
    },
    problems: ["already_ended"],
  },
  "GET /audit": {
    id: "listAudit",
    role: "read",
    summary: "List entries of the audit log",
    query: listParameters("audit", ACTION_FILTER),
    answers: {
      200: pageAnswer(schemaOf("AuditEntry"), {
        id: "b7a9d2a8-0a53-4f0c-9b8e-6f2f1de8c0aa",
        at: EXAMPLE_TIME,
        actor: "admin",
        action: "trigger.created",
        object: "trigger:fe019132-4f4e-4b4e-b21b-826c5921980a",
        details: { name: "order-intake", workflow: "order-intake" },
      }),
    },
  },
} as const satisfies AdministrationOperations;
