import {
  choiceSchema,
  flagSchema,
  idSchema,
  objectSchema,
  openSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
} from "../../base/json_schema.ts";
import {
  NEW_TRIGGER,
  TRIGGER_CALL,
  TRIGGER_CHANGE,
  TRIGGER_FIELDS,
  TRIGGER_LIMIT,
  TRIGGERS,
} from "../resources/trigger.ts";
import { VERIFICATION_SECRET } from "../resources/trigger_verification.ts";
import { MAX_KEY_LENGTH } from "./calls.ts";
import { bodySchema, innerSchemas, onceSchema, recordSchema, sentSchemas } from "./field_schemas.ts";
import type { AdministrationOperations, OperationAnswer, Operations } from "./operation.ts";
import { verificationSchemas } from "./trigger_verification.ts";
import { listOperation, readOperation, removal } from "./resource_operations.ts";

/** Schemas of triggers, by name. */
export const TRIGGER_SCHEMAS: SchemaProperties = {
  ...innerSchemas(TRIGGER_FIELDS),
  ...verificationSchemas(),
  TriggerLimit: bodySchema(TRIGGER_LIMIT),
  Trigger: recordSchema(TRIGGER_FIELDS),
  NewTrigger: bodySchema(NEW_TRIGGER, " for a new trigger"),
  TriggerChange: bodySchema(TRIGGER_CHANGE),
  CalledTrigger: bodySchema(TRIGGER_CALL),
};

const EXAMPLE_TIME = "2026-11-22T02:43:02.047Z";
const KEY = { id: "1485160c-000a-406b-800e-b26c380bd7bd", lastFour: "CtNM", createdAt: EXAMPLE_TIME };
const KEY_EXAMPLE = "svct_aZxC_3igAZgC6Y7_V8eKQEaVPn9WNH5vmULRidtCtNM";
const EXAMPLE = {
  id: "fe019132-4f4e-4b4e-b21b-826c5921980a",
  name: "order-intake",
  workflow: "order-intake",
  enabled: true,
  requireIdempotencyKey: false,
  onBodyMismatch: "replay",
  onLimitError: "deny",
  keys: [KEY],
  createdAt: EXAMPLE_TIME,
  updatedAt: EXAMPLE_TIME,
};
const SHOWN: OperationAnswer = { description: "The trigger.", schema: schemaOf("Trigger"), example: EXAMPLE };

/** `Idempotency-Key` of a request. */
export const IDEMPOTENCY_KEY: SchemaProperties = sentSchemas({
  "Idempotency-Key": {
    type: "text",
    words:
      "Identifies the call for 24 hours: a call with the same key returns the same response and starts no execution.",
    min: 1,
    max: MAX_KEY_LENGTH,
  },
});
/** Headers of the answer to a repeated `Idempotency-Key`. */
export const REPLAY_HEADERS: SchemaProperties = {
  "Idempotency-Replayed": choiceSchema(["true"], "Present when the call repeats an earlier one."),
  "Idempotency-Body-Mismatch": choiceSchema(["true"], "Present when the body differs from the first one."),
};

/** The answer to what starts an execution. */
export const CALLED: OperationAnswer = {
  description: "The execution is stored and will run.",
  schema: objectSchema({}, {
    executionId: idSchema("The identifier of the execution; absent for the `ping` event of GitHub."),
  }),
  example: { executionId: "6bdb9dc3-e8f4-42fc-90e4-9ff087fde12f" },
  headers: REPLAY_HEADERS,
};
const FILTERED: OperationAnswer = {
  description:
    "The condition `when` of the trigger does not hold and nothing starts, or `answer` of the trigger is 200 and the execution is stored.",
  // With the other answer's field, so that clients can read it without knowing the status.
  schema: objectSchema({}, {
    filtered: flagSchema("`true` if the condition `when` does not hold; otherwise absent."),
    executionId: idSchema("The identifier of the execution; absent if nothing started."),
  }),
  example: { filtered: true },
};
const INPUT = { id: "1001", customer: "acme", total: 99.9 };
const CALL_PROBLEMS = [
  "invalid_idempotency_key",
  "idempotency_key_required",
  "trigger_disabled",
  "in_flight",
  "body_mismatch",
  "limit_value_missing",
  "limit_value_too_long",
  "over_limit",
  "limit_failed",
  "workflow_unavailable",
  "store_full",
] as const;

/** Operations of `/triggers`. */
export const TRIGGER_OPERATIONS = {
  "POST /triggers": {
    id: "createTrigger",
    role: "admin",
    summary: "Create a trigger",
    body: {
      schema: schemaOf("NewTrigger"),
      example: { name: "order-intake", workflow: "order-intake" },
    },
    answers: {
      201: {
        description: "The trigger, and its key or generated secret.",
        schema: { allOf: [schemaOf("Trigger"), onceSchema(TRIGGER_FIELDS, false)] },
        example: { ...EXAMPLE, key: KEY_EXAMPLE },
      },
    },
    problems: ["name_taken"],
  },
  "GET /triggers": listOperation(TRIGGERS, "Trigger", EXAMPLE),
  "GET /triggers/:id": readOperation("getTrigger", "Show a trigger", SHOWN),
  "PATCH /triggers/:id": {
    id: "updateTrigger",
    role: "admin",
    summary: "Change fields of a trigger",
    body: { schema: schemaOf("TriggerChange"), example: { enabled: false } },
    answers: { 200: SHOWN },
  },
  "DELETE /triggers/:id": removal("deleteTrigger", "Delete a trigger", "The trigger was deleted."),
  "POST /triggers/:id/call": {
    id: "testTrigger",
    summary: "Call a trigger without its key",
    role: "admin",
    description:
      "`id` is the identifier or the name of the trigger. The call is accepted as one with the key: the limit of the trigger counts it, and an `Idempotency-Key` is the same as in a call with the key.",
    headers: IDEMPOTENCY_KEY,
    body: { schema: schemaOf("CalledTrigger"), example: { data: INPUT } },
    answers: { 200: FILTERED, 202: CALLED },
    problems: CALL_PROBLEMS,
  },
  "POST /triggers/:id/rotate": {
    id: "rotateTriggerKey",
    role: "admin",
    summary: "Create a second key or secret of a trigger",
    description:
      "A trigger has at most two keys or secrets. If it already has two, the older one is deleted. Only a trigger whose calls are signed accepts `secret`.",
    body: { schema: bodySchema(VERIFICATION_SECRET), example: {}, isOptional: true },
    answers: {
      200: {
        description: "The new key or secret; a given secret is not repeated.",
        schema: recordSchema({
          key: { ...TRIGGER_FIELDS.key, shown: "sometimes" },
          keyId: { type: "id", words: "The identifier of the new key.", shown: "sometimes" },
          keys: { ...TRIGGER_FIELDS.keys, shown: "sometimes" },
          secret: { ...TRIGGER_FIELDS.secret, shown: "sometimes" },
          secretId: { type: "id", words: "The identifier of the new secret.", shown: "sometimes" },
          secrets: TRIGGER_FIELDS.secrets,
        }),
        example: { key: KEY_EXAMPLE, keyId: KEY.id, keys: [KEY] },
      },
    },
  },
  "DELETE /triggers/:id/keys/:keyId": removal(
    "revokeTriggerKey",
    "Revoke a key of a trigger",
    "The key was revoked.",
  ),
  "DELETE /triggers/:id/secrets/:secretId": removal(
    "revokeTriggerSecret",
    "Revoke a secret of a trigger",
    "The secret was revoked.",
  ),
} as const satisfies AdministrationOperations;

/** The parameters of the checks of Meta and Dropbox. */
const CHECK_QUERY: SchemaProperties = {
  "hub.mode": textSchema("`subscribe` in the check of Meta."),
  "hub.challenge": textSchema("The text that the check of Meta expects."),
  "hub.verify_token": textSchema("The token of the trigger, in the check of Meta."),
  challenge: textSchema("The text that the check of Dropbox expects."),
};
const CHECKED = { description: "The trigger answers the check or the probe, and nothing starts." };

/** The call of a trigger, and the check of its URL. */
export const TRIGGER_CALL_OPERATIONS = {
  "GET /workflows/triggers/:name": {
    id: "checkTrigger",
    summary: "Check the URL of a trigger",
    description: "Answered only by an enabled trigger with `challenge` or `probe`, as a provider calls it.",
    credentials: [],
    query: CHECK_QUERY,
    answers: {
      200: {
        ...CHECKED,
        schema: textSchema("The text of the check; empty for a probe."),
        example: "1158201444",
        mediaType: "text/plain",
      },
    },
    problems: ["method_not_allowed"],
  },
  "HEAD /workflows/triggers/:name": {
    id: "probeTrigger",
    summary: "Probe the URL of a trigger",
    description: "Answered only by an enabled trigger with `probe`.",
    credentials: [],
    answers: { 200: CHECKED },
    problems: ["method_not_allowed"],
  },
  "POST /workflows/triggers/:name": {
    id: "callTrigger",
    summary: "Start a run of a trigger's workflow",
    description:
      "Served on the HTTP port or `TRIGGER_ADDR`, with a trigger key as the bearer token. A call without a bearer token requires the signature that `verify` of the trigger describes. A check of the URL by its `challenge` is answered as the provider expects, as text, in its JSON or with 204; no other call has such an answer.",
    credentials: ["trigger", "signature"],
    headers: IDEMPOTENCY_KEY,
    body: { schema: openSchema("The `input` of the workflow, nested at most 64 deep."), example: INPUT },
    answers: { 200: { ...FILTERED, headers: REPLAY_HEADERS }, 201: CALLED, 202: CALLED },
    problems: ["invalid_challenge", "sender_unavailable", ...CALL_PROBLEMS],
  },
} as const satisfies Operations;
