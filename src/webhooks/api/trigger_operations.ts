import {
  choiceSchema,
  closedSchema,
  flagSchema,
  idSchema,
  listSchema,
  objectSchema,
  openSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
  timeSchema,
} from "../../base/json_schema.ts";
import { MAX_KEY_LENGTH } from "./calls.ts";
import { listParameters, pageAnswer } from "./list_parameters.ts";
import type { AdministrationOperations, OperationAnswer, Operations } from "./operation.ts";
import { LIMIT_VALUE, lineSchema, WORD_PATTERN } from "./text_forms.ts";
import { SECRET_FIELD, VERIFICATION_SCHEMAS } from "./trigger_verification.ts";

/** Most entries of a descriptor of a limit. */
export const MAX_ENTRIES = 16;
/** What a repeated key with another body does. */
export const ON_BODY_MISMATCH = ["replay", "reject"] as const;
/** What a failed decision does. */
export const ON_LIMIT_ERROR = ["deny", "allow"] as const;

const NAME_TEXT = "1 to 64 of a to z, 0 to 9 and `-`; the first is not `-`.";
const NAME = textSchema(`The last part of the path of the trigger: ${NAME_TEXT}`, {
  pattern: "^[a-z0-9][a-z0-9-]{0,63}$",
});
const WORKFLOW: SchemaProperties = {
  workflow: textSchema("The name of a workflow.", {
    minLength: 1,
    maxLength: 128,
    pattern: WORD_PATTERN,
  }),
};
/** The fields of a limit. */
export const LIMIT_FIELDS: SchemaProperties = {
  domain: lineSchema("The domain of the rules.", { minLength: 1 }),
  descriptors: listSchema(
    {
      type: "object",
      propertyNames: { minLength: 1 },
      additionalProperties: { type: "string", pattern: LIMIT_VALUE },
      minProperties: 1,
      maxProperties: MAX_ENTRIES,
    },
    "Descriptors as keys and values; values may have templates such as `{{ input.customer }}`.",
    { minItems: 1, maxItems: 16 },
  ),
};
const OPTIONAL: SchemaProperties = {
  requireIdempotencyKey: flagSchema(
    "Whether a call requires an `Idempotency-Key`. Default for a new trigger: `false`.",
  ),
  onBodyMismatch: choiceSchema(
    ON_BODY_MISMATCH,
    "Response to a repeated `Idempotency-Key` with another body: `replay` the first response, or `reject` with 422. Default for a new trigger: `replay`.",
  ),
  limit: {
    anyOf: [schemaOf("TriggerLimit"), { type: "null" }],
    description: "The rate limit of each call, which the rules of this Weir define; `null` removes it.",
  },
  onLimitError: choiceSchema(
    ON_LIMIT_ERROR,
    "Decision when the rate limit of a call cannot be checked. Default for a new trigger: `deny`.",
  ),
  enabled: flagSchema("Whether calls are accepted. Default for a new trigger: `true`."),
};

/** The fields that a change may have. */
export const TRIGGER_CHANGE_FIELDS: SchemaProperties = {
  ...WORKFLOW,
  ...OPTIONAL,
  verify: schemaOf("TriggerVerificationChange"),
};
const NEW_OPTIONAL: SchemaProperties = { ...OPTIONAL, verify: schemaOf("NewTriggerVerification") };
/** The fields of a call by the administration. */
export const CALLED_TRIGGER_FIELDS: SchemaProperties = {
  data: openSchema("The `input` of the workflow, nested at most 63 deep."),
};
/** The fields of a new trigger. */
export const NEW_TRIGGER_FIELDS: SchemaProperties = { name: NAME, ...WORKFLOW, ...NEW_OPTIONAL };
/** The fields of a rotation. */
export const TRIGGER_ROTATION_FIELDS: SchemaProperties = SECRET_FIELD;

const KEY_TEXT = textSchema("The trigger key. Only this response contains it.", { pattern: "^svct_" });
const SECRET_TEXT = textSchema(
  "The secret that signs the calls, if Weir generated it. Only this response contains it.",
  { pattern: "^whsec_" },
);

/** Schemas of triggers, by name. */
export const TRIGGER_SCHEMAS: SchemaProperties = {
  TriggerLimit: closedSchema(LIMIT_FIELDS),
  TriggerKey: objectSchema({
    id: idSchema("The identifier."),
    lastFour: textSchema("The last four characters of the key."),
    createdAt: timeSchema("Creation time."),
  }),
  ...VERIFICATION_SCHEMAS,
  TriggerSecret: objectSchema({
    id: idSchema("The identifier."),
    createdAt: timeSchema("Creation time."),
  }),
  Trigger: objectSchema({
    id: idSchema("The identifier."),
    name: NAME,
    ...WORKFLOW,
    enabled: flagSchema("Whether calls are accepted."),
    requireIdempotencyKey: flagSchema("Whether a call requires an `Idempotency-Key`."),
    onBodyMismatch: choiceSchema(ON_BODY_MISMATCH, "Response to a repeated key with a different body."),
    onLimitError: choiceSchema(ON_LIMIT_ERROR, "Decision when the rate limit of a call cannot be checked."),
    keys: listSchema(
      schemaOf("TriggerKey"),
      "Valid keys, the newest first; none if the calls are signed.",
      { maxItems: 2 },
    ),
    createdAt: timeSchema("Creation time."),
    updatedAt: timeSchema("Time of the last change."),
  }, {
    limit: schemaOf("TriggerLimit"),
    verify: schemaOf("TriggerVerification"),
    secrets: listSchema(
      schemaOf("TriggerSecret"),
      "Valid secrets, the newest first, if the calls are signed.",
      {
        maxItems: 2,
      },
    ),
  }),
  NewTrigger: closedSchema({ name: NAME, ...WORKFLOW }, NEW_OPTIONAL),
  TriggerChange: closedSchema({}, TRIGGER_CHANGE_FIELDS),
  CalledTrigger: closedSchema(CALLED_TRIGGER_FIELDS),
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
export const IDEMPOTENCY_KEY: SchemaProperties = {
  "Idempotency-Key": lineSchema(
    "Identifies the call for 24 hours: a call with the same key returns the same response and starts no execution.",
    { minLength: 1, maxLength: MAX_KEY_LENGTH },
  ),
};
/** Headers of the answer to a repeated `Idempotency-Key`. */
export const REPLAY_HEADERS: SchemaProperties = {
  "Idempotency-Replayed": choiceSchema(["true"], "Present when the call repeats an earlier one."),
  "Idempotency-Body-Mismatch": choiceSchema(["true"], "Present when the body differs from the first one."),
};

const CALLED: OperationAnswer = {
  description: "The execution is stored and will run.",
  schema: objectSchema({}, {
    executionId: idSchema("The identifier of the execution; absent for the `ping` event of GitHub."),
  }),
  example: { executionId: "6bdb9dc3-e8f4-42fc-90e4-9ff087fde12f" },
  headers: REPLAY_HEADERS,
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
        schema: { allOf: [schemaOf("Trigger"), objectSchema({}, { key: KEY_TEXT, secret: SECRET_TEXT })] },
        example: { ...EXAMPLE, key: KEY_EXAMPLE },
      },
    },
    problems: ["name_taken"],
  },
  "GET /triggers": {
    id: "listTriggers",
    role: "read",
    summary: "List triggers",
    query: listParameters("triggers"),
    answers: { 200: pageAnswer(schemaOf("Trigger"), EXAMPLE) },
  },
  "GET /triggers/:id": {
    id: "getTrigger",
    role: "read",
    summary: "Show a trigger",
    answers: { 200: SHOWN },
  },
  "PATCH /triggers/:id": {
    id: "updateTrigger",
    role: "admin",
    summary: "Change fields of a trigger",
    body: { schema: schemaOf("TriggerChange"), example: { enabled: false } },
    answers: { 200: SHOWN },
  },
  "DELETE /triggers/:id": {
    id: "deleteTrigger",
    role: "admin",
    summary: "Delete a trigger",
    answers: { 204: { description: "The trigger was deleted." } },
  },
  "POST /triggers/:id/call": {
    id: "testTrigger",
    summary: "Call a trigger without its key",
    role: "admin",
    description:
      "`id` is the identifier or the name of the trigger. The call is accepted as one with the key: the limit of the trigger counts it, and an `Idempotency-Key` is the same as in a call with the key.",
    headers: IDEMPOTENCY_KEY,
    body: { schema: schemaOf("CalledTrigger"), example: { data: INPUT } },
    answers: { 202: CALLED },
    problems: CALL_PROBLEMS,
  },
  "POST /triggers/:id/rotate": {
    id: "rotateTriggerKey",
    role: "admin",
    summary: "Create a second key or secret of a trigger",
    description:
      "A trigger has at most two keys or secrets. If it already has two, the older one is deleted. Only a trigger whose calls are signed accepts `secret`.",
    body: { schema: closedSchema({}, TRIGGER_ROTATION_FIELDS), example: {}, isOptional: true },
    answers: {
      200: {
        description: "The new key or secret; a given secret is not repeated.",
        schema: objectSchema({}, {
          key: KEY_TEXT,
          keyId: idSchema("The identifier of the new key."),
          keys: listSchema(schemaOf("TriggerKey"), "Valid keys, the newest first."),
          secret: SECRET_TEXT,
          secretId: idSchema("The identifier of the new secret."),
          secrets: listSchema(schemaOf("TriggerSecret"), "Valid secrets, the newest first."),
        }),
        example: { key: KEY_EXAMPLE, keyId: KEY.id, keys: [KEY] },
      },
    },
  },
  "DELETE /triggers/:id/keys/:keyId": {
    id: "revokeTriggerKey",
    role: "admin",
    summary: "Revoke a key of a trigger",
    answers: { 204: { description: "The key was revoked." } },
  },
  "DELETE /triggers/:id/secrets/:secretId": {
    id: "revokeTriggerSecret",
    role: "admin",
    summary: "Revoke a secret of a trigger",
    answers: { 204: { description: "The secret was revoked." } },
  },
} as const satisfies AdministrationOperations;

/** The call of a trigger. */
export const TRIGGER_CALL_OPERATIONS = {
  "POST /workflows/triggers/:name": {
    id: "callTrigger",
    summary: "Start a run of a trigger's workflow",
    description:
      "Served on the HTTP port or `TRIGGER_ADDR`, with a trigger key as the bearer token. A call without a bearer token requires the signature that `verify` of the trigger describes.",
    credentials: ["trigger", "signature"],
    headers: IDEMPOTENCY_KEY,
    body: { schema: openSchema("The `input` of the workflow, nested at most 64 deep."), example: INPUT },
    answers: { 202: CALLED },
    problems: CALL_PROBLEMS,
  },
} as const satisfies Operations;
