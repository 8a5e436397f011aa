import { AUTHENTICATION, ENDPOINT_TLS } from "./endpoint_authentication.ts";
import { CREATED, type Fields, ID, RATE_UNITS, type Resource, UPDATED } from "./field.ts";

/** Most signing secrets of an endpoint. */
export const MAX_ENDPOINT_SECRETS = 8;

/** A signing secret. */
const SECRET = {
  id: ID,
  createdAt: CREATED,
  activeAt: { type: "time", words: "Time from which Weir signs with this secret." },
  signs: { type: "flag", words: "Whether Weir currently signs with this secret, alone or with another one." },
  state: {
    type: "choice",
    choices: ["pending", "signing", "retired"],
    words: "Whether Weir will sign with this secret, signs with it now, or signed with it before.",
  },
} as const satisfies Fields;

/** The attempts of some time. */
const ATTEMPTS = {
  period: { type: "choice", choices: ["1h", "24h"], words: "The last hour or the last day." },
  attempts: { type: "integer", words: "Number of attempts." },
  failures: { type: "integer", words: "Number of failed attempts." },
  successRate: {
    type: "share",
    words: "Share of successful attempts, from 0 to 1, rounded down to four decimals.",
  },
  meanMs: {
    type: "integer",
    words: "Mean time of the attempts with a response, in milliseconds; absent if there are none.",
    shown: "sometimes",
  },
  maxMs: { type: "integer", words: "The longest of these times, in milliseconds.", shown: "sometimes" },
} as const satisfies Fields;

/** The attempts of one hour. */
export const ATTEMPT_HOUR = {
  at: { type: "time", words: "Start of the hour." },
  succeeded: { type: "integer", words: "Number of successful attempts." },
  failed: { type: "integer", words: "Number of failed attempts." },
} as const satisfies Fields;

/** A rate of attempts. */
const RATE = {
  unit: { type: "choice", choices: RATE_UNITS, words: "The unit of time.", isRequired: true },
  requestsPerUnit: {
    type: "integer",
    words: "Number of attempts per unit of time, and the most at the same time after a pause.",
    min: 1,
    max: 1_000_000,
    isRequired: true,
  },
} as const satisfies Fields;

/** The fields of an endpoint. */
export const ENDPOINT_FIELDS = {
  id: ID,
  url: {
    type: "url",
    words: "Destination URL: https, or http for addresses in `WEBHOOK_ALLOW_CIDRS`.",
    max: 2_048,
    set: "always",
    isRequired: true,
    flag: "to",
    help: "new URL, used from the next attempt on",
    label: "URL",
    hint: "https, and an address that the service may call",
  },
  events: {
    type: "kinds",
    words: "Kinds of events that the endpoint receives.",
    max: 100,
    set: "always",
    default: ["*"],
    flag: "event",
    label: "Events",
    hint: "Kinds, prefixes such as workflow.*, or * for all, separated by spaces",
  },
  description: {
    type: "text",
    words: "Free-text description.",
    set: "always",
    default: "",
    label: "Description",
  },
  enabled: {
    type: "flag",
    words: "Whether deliveries are attempted.",
    set: "always",
    default: true,
    label: "State",
  },
  disabledReason: {
    type: "choice",
    choices: ["admin", "failing", "gone"],
    words:
      "If disabled: whether an administrator disabled it, or Weir because its attempts only failed, or because it is gone: it returned 410, and `onGone` is `disable`.",
    shown: "sometimes",
  },
  disabledAt: { type: "time", words: "If disabled: since when.", shown: "sometimes" },
  failingSince: {
    type: "time",
    words: "Time of the first failed attempt since the last success; absent if there is none.",
    shown: "sometimes",
  },
  consecutiveFailures: {
    type: "integer",
    words: "Number of failed attempts since the last success; absent if there are none.",
    min: 1,
    shown: "sometimes",
  },
  headers: {
    type: "headers",
    words: "Static headers of every delivery, by name. Weir encrypts the values and never returns them.",
    set: "always",
    isNullable: true,
    flag: "header",
    clear: ["no-headers", "remove all static headers"],
    label: "Headers",
  },
  authentication: {
    type: "credentials",
    words:
      "How deliveries authenticate to the receiver, in the header `Authorization`; none if absent. A change replaces all of it. Weir encrypts the secrets and never returns them.",
    fields: AUTHENTICATION,
    of: "EndpointAuthentication",
    set: "always",
    isNullable: true,
    shown: "sometimes",
    clear: ["no-auth", "remove the authentication"],
    label: "Authentication",
  },
  tls: {
    type: "credentials",
    words:
      "The client certificate of deliveries, and the authorities of the receiver; none if absent. A change replaces all of it. Weir encrypts it and never returns the key.",
    fields: ENDPOINT_TLS,
    of: "EndpointTls",
    set: "always",
    isNullable: true,
    shown: "sometimes",
    clear: ["no-tls", "remove the client certificate and the authorities"],
    label: "Client certificate",
  },
  concurrency: {
    type: "integer",
    words: "Maximum number of attempts in flight.",
    min: 1,
    max: 100,
    set: "always",
    default: 4,
    label: "Concurrency",
  },
  rateLimit: {
    type: "rate",
    words: "Maximum rate of attempts, over all instances of a store; none if absent.",
    fields: RATE,
    of: "EndpointRate",
    set: "always",
    isNullable: true,
    shown: "sometimes",
    help: "maximum rate of attempts, such as 10/second; units: second, minute, hour and day",
    clear: ["no-rate-limit", "remove the maximum rate"],
    label: "Rate limit",
    hint: "Attempts per second, minute, hour or day, such as 10/second; none when empty",
  },
  timeoutMs: {
    type: "milliseconds",
    words: "Timeout of one attempt in milliseconds; `WEBHOOK_TIMEOUT` applies if absent.",
    min: 1,
    max: 600_000,
    set: "always",
    isNullable: true,
    shown: "sometimes",
    flag: "attempt-timeout",
    help: "timeout of one attempt (default WEBHOOK_TIMEOUT)",
    clear: ["default-attempt-timeout", "reset the timeout of attempts to WEBHOOK_TIMEOUT"],
    label: "Timeout",
    hint: "WEBHOOK_TIMEOUT when empty",
  },
  standardWebhooks: {
    type: "flag",
    words: "Whether deliveries include the headers of Standard Webhooks.",
    set: "always",
    default: true,
    label: "Also send the Standard Webhooks headers",
  },
  filter: {
    type: "filter",
    words:
      'Conditions on fields of `data`, such as `{"plan":["pro"],"total":{"greater":100}}`: the endpoint receives an event only if all of them hold.',
    set: "always",
    isNullable: true,
    shown: "sometimes",
    help:
      'receive only events whose data has one of the values at the path, such as customer.plan=pro,team, or for which operators hold, such as total={"greater":100}',
    clear: ["no-filter", "remove the filter"],
    label: "Filter",
    hint:
      'Conditions on fields of data as JSON, such as {"customer.plan": ["pro", "team"], "total": {"greater": 100}}; all events when empty',
  },
  rotationOverlapMs: {
    type: "milliseconds",
    words:
      "Time before and after the switch to a new secret in which Weir also signs with the other one, in milliseconds; none if absent.",
    min: 1,
    max: 2_592_000_000,
    set: "always",
    isNullable: true,
    shown: "sometimes",
    flag: "rotation-overlap",
    help: "time before and after the switch to a new secret in which both sign, such as 24h",
    clear: ["no-rotation-overlap", "sign with one secret at a time"],
    label: "Rotation overlap",
    hint: "86400000 for a day; one secret signs at a time when empty",
  },
  format: {
    type: "choice",
    choices: ["cloudevents"],
    words:
      "Form of the body: `cloudevents` for CloudEvents 1.0 in the structured mode; if absent, `event` and `data`, or the template.",
    set: "always",
    isNullable: true,
    shown: "sometimes",
    help: "form of the body instead of event and data: cloudevents",
    clear: ["no-format", "send event and data"],
    label: "Format",
    hint: "cloudevents for CloudEvents 1.0; otherwise event and data, or the template",
  },
  template: {
    type: "template",
    words:
      'Template of the body, such as `{"text":"Order {{ data.id }}"}`, instead of `format`; if absent, there is none.',
    set: "always",
    isNullable: true,
    shown: "sometimes",
    help: "template of the body, a JSON object with values such as {{ data.id }} and {{ event }}",
    clear: ["no-template", "remove the template"],
    label: "Template",
    hint: 'A JSON object, such as {"text": "Order {{ data.id }}"}; none when empty',
  },
  onGone: {
    type: "choice",
    choices: ["disable"],
    words:
      "Effect of a response with status 410: `disable` disables the endpoint; if absent, it is a failed attempt like others.",
    set: "always",
    isNullable: true,
    shown: "sometimes",
    help: "effect of a response with status 410 in addition to the failed attempt: disable",
    clear: ["no-on-gone", "treat status 410 like other failures"],
    label: "On status 410",
    hint: "disable disables the endpoint; otherwise its deliveries are retried",
  },
  attempts: {
    type: "records",
    words: "Attempts of the last hour and of the last day; a period without attempts is absent.",
    fields: ATTEMPTS,
    of: "AttemptStatistics",
    min: 1,
    max: 2,
    shown: "sometimes",
    label: "Success rate",
  },
  secrets: {
    type: "records",
    words: "Signing secrets, the newest first.",
    fields: SECRET,
    of: "EndpointSecret",
    max: MAX_ENDPOINT_SECRETS,
    label: "Secret since",
  },
  createdAt: CREATED,
  updatedAt: UPDATED,
  secret: {
    type: "text",
    words: "The signing secret. Only this response contains it.",
    pattern: "^whsec_",
    shown: "once",
  },
} as const satisfies Fields;

/** Endpoints. */
export const ENDPOINTS: Resource = {
  list: "endpoints",
  noun: "endpoint",
  fields: ENDPOINT_FIELDS,
  filters: {},
  columns: ["id", "url", "events", "enabled", "failingSince", "description"],
};

/** A new signing secret of an endpoint. */
export const ENDPOINT_ROTATION = {
  activeIn: {
    type: "delay",
    words:
      "Delay until Weir signs with the new secret: a duration such as `30m`, at most 30 days, or 0 for immediately; default `24h`.",
    label: "Active in",
    hint: "A duration such as 30m or 24h; 0 for now",
  },
} as const satisfies Fields;

/** A dry run of an endpoint: an event to compare with it. */
export const ENDPOINT_CHECK = {
  event: {
    type: "kind",
    words: "A kind of event: the check fails unless the endpoint subscribes to it.",
  },
  data: {
    type: "object",
    words: "A payload: the check fails unless the filter of the endpoint matches. Weir does not send it.",
  },
} as const satisfies Fields;

/** Failed deliveries of an endpoint to open again. */
export const ENDPOINT_RECOVERY = {
  since: {
    type: "moment",
    words: "The start of the range: a time, or a duration before now such as `48h`.",
    isRequired: true,
    label: "Created since",
  },
  until: {
    type: "moment",
    words: "The end of the range, exclusive, in the same form; later than `since`.",
    isRequired: true,
    label: "Created before",
  },
  dryRun: {
    type: "flag",
    words: "Whether to count the deliveries without reopening them.",
    default: false,
  },
} as const satisfies Fields;
