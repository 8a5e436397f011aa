import { changeFields, CREATED, type Fields, ID, newFields, type Resource, UPDATED } from "./field.ts";
import { TRIGGER_VERIFICATION } from "./trigger_verification.ts";

/** A key that callers show. */
export const TRIGGER_KEY = {
  id: ID,
  lastFour: { type: "text", words: "The last four characters of the key." },
  createdAt: CREATED,
} as const satisfies Fields;
/** A secret that signs calls. */
export const TRIGGER_SECRET = { id: ID, createdAt: CREATED } as const satisfies Fields;

/** The rate limit of each call. */
export const TRIGGER_LIMIT = {
  domain: {
    type: "text",
    words: "The domain of the rules.",
    min: 1,
    isRequired: true,
    flag: "limit-domain",
    value: "DOMAIN",
    help: "domain of the rate limit for calls",
  },
  descriptors: {
    type: "descriptors",
    words: "Descriptors as keys and values; values may have templates such as `{{ input.customer }}`.",
    max: 16,
    isRequired: true,
    flag: "limit-descriptor",
    help: "descriptor of the rate limit for calls; values may contain {{ input.… }}",
  },
} as const satisfies Fields;

/** Parts of the names of headers that prove who calls, such as X-Gitlab-Token. */
export const CREDENTIAL_WORDS =
  "authorization|cookie2?|signatures?|sign|hmac|token|secret|password|(?:api|access)-?key|auth|jwt|credentials?";
const ANY_CREDENTIAL = CREDENTIAL_WORDS.replaceAll(
  /[a-z]/g,
  (letter) => `[${letter.toUpperCase()}${letter}]`,
);

/** The fields of a trigger. */
export const TRIGGER_FIELDS = {
  id: ID,
  name: {
    type: "text",
    words:
      "The last part of the path of the trigger: 1 to 64 of a to z, 0 to 9 and `-`; the first is not `-`.",
    pattern: "^[a-z0-9][a-z0-9-]{0,63}$",
    expected: "1 to 64 of a to z, 0 to 9 and -, not beginning with -",
    set: "new",
    isRequired: true,
    label: "Name",
    hint: "1 to 64 of a to z, 0 to 9 and -",
  },
  workflow: {
    type: "text",
    words: "The name of a workflow.",
    min: 1,
    max: 128,
    pattern: "^[^\\s\\u0000-\\u001f\\u007f-\\u009f]+$",
    expected: "the name of a workflow",
    set: "always",
    isRequired: true,
    value: "NAME",
    label: "Workflow",
    hint: "The name in the workflow file",
  },
  enabled: {
    type: "flag",
    words: "Whether calls are accepted.",
    set: "always",
    default: true,
    label: "State",
  },
  requireIdempotencyKey: {
    type: "flag",
    words: "Whether a call requires an `Idempotency-Key`.",
    set: "always",
    default: false,
    label: "Reject calls without an Idempotency-Key",
  },
  onBodyMismatch: {
    type: "choice",
    choices: ["replay", "reject"],
    words:
      "Response to a repeated `Idempotency-Key` with another body: `replay` the first response, or `reject` with 422.",
    set: "always",
    default: "replay",
    value: "HOW",
    label: "When a known Idempotency-Key has another body",
  },
  limit: {
    type: "limit",
    words: "The rate limit of each call, which the rules of this Weir define.",
    fields: TRIGGER_LIMIT,
    of: "TriggerLimit",
    set: "always",
    isNullable: true,
    shown: "sometimes",
    clear: ["no-limit", "remove the rate limit"],
    label: "Limit",
  },
  when: {
    type: "condition",
    words:
      'Conditions on the input, the kind of event and passed headers, such as `{"input.action":["opened"]}`: another call starts nothing and is answered with 200.',
    set: "always",
    isNullable: true,
    shown: "sometimes",
    help:
      "start the workflow only if the input has one of the values at the path, such as input.action=opened,closed",
    clear: ["no-when", "remove the conditions"],
    label: "Only when",
    hint: 'Conditions as JSON, such as {"input.action": ["opened"]}; all calls when empty',
  },
  onLimitError: {
    type: "choice",
    choices: ["deny", "allow"],
    words: "Decision when the rate limit of a call cannot be checked.",
    set: "always",
    default: "deny",
    value: "HOW",
    label: "When the rate limit decision fails",
  },
  verify: {
    type: "verification",
    words: "How calls are signed. A scheme cannot be changed later.",
    fields: TRIGGER_VERIFICATION,
    of: "TriggerVerification",
    set: "always",
    shown: "sometimes",
  },
  challenge: {
    type: "choice",
    choices: ["slack", "zoom", "meta", "microsoft", "dropbox", "discord"],
    words: "The provider whose check of the URL is answered; a check starts nothing.",
    set: "always",
    isNullable: true,
    shown: "sometimes",
    value: "PROVIDER",
    clear: ["no-challenge", "answer no check of the URL"],
    label: "Answer the check of the URL by",
  },
  probe: {
    type: "flag",
    words: "Whether `GET` and `HEAD` return 200 without a body.",
    set: "always",
    shown: "sometimes",
    label: "Answer GET and HEAD with 200",
  },
  accept: {
    type: "texts",
    words:
      "The bodies that calls may have: `json` objects (default), `array` also JSON lists, `form` and `text`. Lists and texts become `input.body`.",
    pattern: "^(?:json|form|text|array)$",
    expected: "json, form, text or array",
    max: 4,
    set: "always",
    isNullable: true,
    shown: "sometimes",
    value: "KIND",
    help: "bodies that calls may have: json (default), array, form or text",
    clear: ["no-accept", "accept only JSON objects"],
    label: "Accept",
    hint: "json, array, form and text; JSON objects when empty",
  },
  answer: {
    type: "integer",
    words: "The status that an accepted call returns, 202 by default.",
    min: 200,
    max: 202,
    set: "always",
    isNullable: true,
    shown: "sometimes",
    value: "STATUS",
    help: "status that an accepted call returns: 200, 201 or 202 (default 202)",
    clear: ["no-answer", "return 202"],
    label: "Status of accepted calls",
    hint: "200, 201 or 202; 202 when empty",
  },
  passHeaders: {
    type: "texts",
    words: "Headers of the call that the workflow reads as `execution.headers`; never credentials.",
    pattern: `^(?!(?:[A-Za-z0-9-]*-)?(?:${ANY_CREDENTIAL})(?:-|$))[A-Za-z0-9-]{1,64}$`,
    expected: "1 to 64 letters, digits and -, and no name of a credential",
    max: 16,
    set: "always",
    isNullable: true,
    shown: "sometimes",
    flag: "pass-header",
    value: "NAME",
    help: "header of the call that the workflow reads as execution.headers",
    clear: ["no-pass-headers", "pass no headers to the workflow"],
    label: "Passed headers",
    hint: "Names; the workflow reads them as execution.headers; never credentials",
  },
  warning: {
    type: "text",
    words: "Why the signatures of the calls are weak.",
    shown: "sometimes",
  },
  keys: {
    type: "records",
    words: "Valid keys, the newest first; none if the calls are signed.",
    fields: TRIGGER_KEY,
    of: "TriggerKey",
    max: 2,
    label: "Keys",
  },
  secrets: {
    type: "records",
    words: "Valid secrets, the newest first, if the calls are signed.",
    fields: TRIGGER_SECRET,
    of: "TriggerSecret",
    max: 2,
    shown: "sometimes",
  },
  createdAt: CREATED,
  updatedAt: UPDATED,
  key: {
    type: "text",
    words: "The trigger key. Only this response contains it.",
    pattern: "^svct_",
    shown: "once",
  },
  secret: {
    type: "text",
    words: "The secret that signs the calls, if Weir generated it. Only this response contains it.",
    pattern: "^whsec_",
    shown: "once",
  },
} as const satisfies Fields;

/** The token of a check that shows one. */
export const CHALLENGE_TOKEN = {
  challengeToken: {
    type: "secret",
    words:
      "The verify token that is entered at Meta; required with the challenge `meta`. Weir stores only its hash.",
    min: 16,
    max: 128,
    set: "always",
    flag: "challenge-token-file",
    help: "file with the verify token that is entered at Meta; - for standard input",
    label: "Verify token",
    hint: "At least 16 characters, the same as at Meta",
  },
} as const satisfies Fields;

/** The fields of a new trigger; each scheme of signatures has its own. */
export const NEW_TRIGGER = {
  ...newFields(TRIGGER_FIELDS),
  ...CHALLENGE_TOKEN,
  verify: { ...TRIGGER_FIELDS.verify, of: "NewTriggerVerification" },
} as const satisfies Fields;
/** The fields of a change of a trigger. */
export const TRIGGER_CHANGE = {
  ...changeFields(TRIGGER_FIELDS),
  ...CHALLENGE_TOKEN,
  verify: { ...TRIGGER_FIELDS.verify, of: "TriggerVerificationChange" },
} as const satisfies Fields;

/** Triggers. */
export const TRIGGERS: Resource = {
  list: "triggers",
  noun: "trigger",
  fields: TRIGGER_FIELDS,
  filters: {},
  columns: ["id", "name", "workflow", "enabled", "createdAt"],
};

/** A call by the administration. */
export const TRIGGER_CALL = {
  data: { type: "object", words: "The `input` of the workflow, nested at most 63 deep.", isRequired: true },
  event: {
    type: "text",
    words: "The kind of event that a provider would name, which the workflow reads as `execution.event`.",
    min: 1,
    max: 128,
    value: "KIND",
    help: "kind of event that a provider would name, which the workflow reads as execution.event",
  },
  headers: {
    type: "headers",
    words: "Headers of the call by name, such as the one in which the provider names the kind of event.",
    flag: "header",
    help: "header of the call, such as the one in which the provider names the kind of event",
  },
} as const satisfies Fields;
