import { idSchema, objectSchema, schemaOf, type SchemaProperties } from "../../base/json_schema.ts";
import { AUDIT, AUDIT_FIELDS } from "../resources/audit_entry.ts";
import { EXECUTION_DETAILS, EXECUTION_FIELDS, EXECUTIONS } from "../resources/execution.ts";
import { innerSchemas, recordSchema } from "./field_schemas.ts";
import type { AdministrationOperations } from "./operation.ts";
import { CALLED, IDEMPOTENCY_KEY } from "./trigger_operations.ts";
import { EMPTY_BODY, listOperation, readOperation } from "./resource_operations.ts";

/** Schemas of executions and of the audit log, by name. */
export const EXECUTION_SCHEMAS: SchemaProperties = {
  ...innerSchemas({ ...EXECUTION_FIELDS, ...EXECUTION_DETAILS }),
  Execution: recordSchema(EXECUTION_FIELDS),
  AuditEntry: recordSchema(AUDIT_FIELDS),
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

/** Operations of `/executions`. */
export const EXECUTION_OPERATIONS = {
  "GET /executions": listOperation(EXECUTIONS, "Execution", EXAMPLE),
  "GET /executions/:id": readOperation("getExecution", "Show an execution with its input and steps", {
    description: "The execution.",
    schema: { allOf: [schemaOf("Execution"), recordSchema(EXECUTION_DETAILS)] },
    example: { ...EXAMPLE, input: { id: "1001", total: 99.9 } },
  }),
  "POST /executions/:id/cancel": {
    id: "cancelExecution",
    role: "admin",
    summary: "Cancel an execution after its current step",
    body: EMPTY_BODY,
    answers: {
      202: {
        description: "The cancellation was requested.",
        schema: objectSchema({ id: idSchema("The execution.") }),
        example: { id: EXAMPLE_ID },
      },
    },
    problems: ["already_ended"],
  },
  "POST /executions/:id/rerun": {
    id: "rerunExecution",
    role: "admin",
    summary: "Run an ended execution again",
    description:
      "The new execution has the same input, trigger and kind of event, runs the current version of the workflow, and names the old one in `rerunOf`. The limit and the conditions of the trigger do not apply; the trigger may be disabled or deleted. An `Idempotency-Key` belongs to the execution that is run again.",
    headers: IDEMPOTENCY_KEY,
    body: EMPTY_BODY,
    answers: { 202: CALLED },
    problems: ["invalid_idempotency_key", "not_ended", "in_flight", "workflow_unavailable", "store_full"],
  },
} as const satisfies AdministrationOperations;

/** Operations of `/audit`. */
export const AUDIT_OPERATIONS = {
  "GET /audit": listOperation(AUDIT, "AuditEntry", {
    id: "b7a9d2a8-0a53-4f0c-9b8e-6f2f1de8c0aa",
    at: EXAMPLE_TIME,
    actor: "admin",
    action: "trigger.created",
    object: "trigger:fe019132-4f4e-4b4e-b21b-826c5921980a",
    details: { name: "order-intake", workflow: "order-intake" },
  }),
} as const satisfies AdministrationOperations;
