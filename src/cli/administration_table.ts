import { timeText } from "../base/rfc3339.ts";
import { action, type AdministrationCommand, create, list, remove, show } from "./administration_command.ts";
import {
  bodyFlag,
  booleanFlag,
  filterFlag,
  idempotencyKeyFlag,
  payloadFlags,
  readDescriptors,
  readDurationText,
  readFilter,
  readHeaderLines,
  readHeaders,
  readJson,
  readMilliseconds,
  readMoment,
  readTexts,
  readWhole,
} from "./administration_flags.ts";
import { COUNTER_COMMANDS } from "./counter_commands.ts";
import { PAUSE_COMMANDS } from "./pause_commands.ts";
import { WORKFLOW_COMMANDS } from "./workflow_commands.ts";
import { secretFileFlag, SIGNATURE_FLAGS } from "./signature_flags.ts";

/** The groups of commands. */
export const GROUPS: Readonly<Record<string, string>> = {
  counters: "counters of rate limits",
  endpoints: "receivers of events",
  triggers: "HTTP endpoints that start workflows",
  workflows: "workflow files",
  "event-keys": "keys that other systems use to post events",
  events: "events to deliver",
  deliveries: "deliveries of events to endpoints",
  executions: "executions of workflows",
  audit: "log of administrative actions",
};

const SINCE = filterFlag(
  "since",
  "TIME",
  "only records from this time on, such as 2026-01-31T12:00:00Z, or 24h for 24 hours ago",
  {
    read: readMoment,
  },
);
const UNTIL = filterFlag("until", "TIME", "only records before this time, in the same forms", {
  read: readMoment,
});
const TIMES = { since: SINCE, until: UNTIL };

const ATTEMPT_TIMEOUT = bodyFlag(
  "timeoutMs",
  "DURATION",
  "timeout of one attempt (default WEBHOOK_TIMEOUT)",
  {
    read: readMilliseconds,
  },
);
const ENDPOINT_FLAGS = {
  event: bodyFlag("events", "KIND", "kind of event to subscribe to, a prefix such as workflow.*, or *", {
    repeated: true,
    read: readTexts,
  }),
  description: bodyFlag("description", "TEXT", "description of the endpoint"),
  header: bodyFlag("headers", "'NAME: VALUE'", "static header of every request", {
    repeated: true,
    read: readHeaders,
  }),
  "headers-file": bodyFlag(
    "headers",
    "FILE",
    "file with secret static headers, one per line; - for standard input",
    {
      isFile: true,
      read: readHeaderLines,
    },
  ),
  filter: bodyFlag(
    "filter",
    "PATH=VALUE,...",
    "receive only events whose data has one of the values at the path, such as customer.plan=pro,team",
    { repeated: true, read: readFilter },
  ),
  concurrency: bodyFlag("concurrency", "N", "maximum number of concurrent attempts (4 for a new endpoint)", {
    read: readWhole,
  }),
  "attempt-timeout": ATTEMPT_TIMEOUT,
  "standard-webhooks": booleanFlag("standardWebhooks", "also send the headers of Standard Webhooks"),
};

/** A new trigger shows one of them, and so does a rotation. */
const CREDENTIALS = ["key", "secret"];
const WORKFLOW = bodyFlag("workflow", "NAME", "workflow to start");
const TRIGGER_FLAGS = {
  "require-idempotency-key": booleanFlag(
    "requireIdempotencyKey",
    "reject calls without the header Idempotency-Key",
  ),
  "on-body-mismatch": bodyFlag(
    "onBodyMismatch",
    "HOW",
    "response to a repeated key with a different body: replay (default) or reject",
  ),
  "limit-domain": bodyFlag("limit.domain", "DOMAIN", "domain of the rate limit for calls"),
  "limit-descriptor": bodyFlag(
    "limit.descriptors",
    "KEY=VALUE,...",
    "descriptor of the rate limit for calls; values may contain {{ input.… }}",
    {
      repeated: true,
      read: readDescriptors,
    },
  ),
  "on-limit-error": bodyFlag(
    "onLimitError",
    "HOW",
    "decision when the rate limit of a call cannot be checked: deny (default) or allow",
  ),
};
const SWITCHES = {
  enable: booleanFlag("enabled", "enable it"),
  disable: booleanFlag("enabled", "disable it", { is: false }),
};
const DISABLED = booleanFlag("enabled", "create it disabled", { is: false });

const ENDPOINTS: readonly AdministrationCommand[] = [
  list("endpoints", "endpoints", TIMES, ["id", "url", "events", "enabled", "failingSince", "description"]),
  {
    ...create("endpoints add", "add an endpoint and show its signing secret once", { URL: "url" }),
    flags: { ...ENDPOINT_FLAGS, disabled: DISABLED },
    shown: { as: "record", secrets: ["secret"] },
  },
  show("endpoints", "an endpoint"),
  {
    words: "endpoints edit",
    args: ["ID"],
    doc: "change an endpoint",
    method: "PATCH",
    path: "/endpoints/{ID}",
    isChange: true,
    flags: {
      to: bodyFlag("url", "URL", "new URL, used from the next attempt on"),
      ...ENDPOINT_FLAGS,
      "no-filter": booleanFlag("filter", "remove the filter", { is: null }),
      "no-headers": booleanFlag("headers", "remove all static headers", { is: null }),
      "default-attempt-timeout": booleanFlag(
        "timeoutMs",
        "reset the timeout of attempts to WEBHOOK_TIMEOUT",
        {
          is: null,
        },
      ),
      ...SWITCHES,
    },
    shown: { as: "record", next: "weir endpoints recover {ID} --since {missedSince}" },
  },
  remove("endpoints", "endpoint", "delete an endpoint; its open deliveries fail"),
  {
    ...action("endpoints rotate", "create a new signing secret and show it once", {
      as: "record",
      secrets: ["secret"],
    }),
    flags: {
      "active-in": bodyFlag(
        "activeIn",
        "DURATION",
        "delay until Weir signs with the new secret (default 24h; 0 for immediately)",
        {
          read: readDurationText,
        },
      ),
    },
  },
  {
    ...action("endpoints check", "send a signed test request to an endpoint, and report each stage", {
      as: "record",
      good: "ok",
    }),
    flags: {
      event: bodyFlag("event", "KIND", "also check whether the endpoint subscribes to this kind of event"),
      data: bodyFlag(
        "data",
        "JSON",
        "also check whether the filter matches this payload, which is not sent",
        {
          read: readJson,
        },
      ),
    },
    exitCodes: { 0: "every stage passes", 1: "a stage fails" },
  },
  {
    ...action("endpoints recover", "retry the failed deliveries of an endpoint with a new schedule", {
      as: "record",
    }),
    flags: {
      since: { ...SINCE, into: "body", doc: `${SINCE.doc} (required)`, isRequired: true },
      until: {
        ...UNTIL,
        into: "body",
        doc: "only records before this time, in the same forms (default now)",
        otherwise: timeText,
      },
      "dry-run": booleanFlag("dryRun", "count the deliveries, but do not retry them"),
    },
  },
];

const TRIGGERS: readonly AdministrationCommand[] = [
  list("triggers", "triggers", TIMES, ["id", "name", "workflow", "enabled", "createdAt"]),
  {
    ...create("triggers create", "create a trigger and show its key or secret once", { NAME: "name" }),
    flags: {
      workflow: { ...WORKFLOW, doc: `${WORKFLOW.doc} (required)`, isRequired: true },
      ...SIGNATURE_FLAGS,
      "secret-file": secretFileFlag("verify.secret"),
      ...TRIGGER_FLAGS,
      disabled: DISABLED,
    },
    shown: { as: "record", secrets: CREDENTIALS },
  },
  show("triggers", "a trigger"),
  {
    words: "triggers edit",
    args: ["ID"],
    doc: "change a trigger",
    method: "PATCH",
    path: "/triggers/{ID}",
    isChange: true,
    flags: {
      workflow: WORKFLOW,
      ...SIGNATURE_FLAGS,
      ...TRIGGER_FLAGS,
      "no-limit": booleanFlag("limit", "remove the rate limit", { is: null }),
      ...SWITCHES,
    },
    shown: { as: "record" },
  },
  remove("triggers", "trigger", "delete a trigger with its keys and secrets; its executions remain"),
  {
    ...action("triggers call", "call a trigger without its key", {
      as: "record",
      next: "weir executions show {executionId}",
    }),
    args: ["NAME"],
    path: "/triggers/{NAME}/call",
    flags: {
      ...payloadFlags("input"),
      "idempotency-key": idempotencyKeyFlag("start at most one execution with this key within 24 hours"),
    },
    notes: "NAME is the name or the identifier of the trigger.",
  },
  {
    ...action(
      "triggers rotate",
      "create a second key or secret and show it once; if two exist, delete the older one",
      { as: "record", secrets: CREDENTIALS },
    ),
    flags: { "secret-file": secretFileFlag("secret") },
  },
  {
    words: "triggers revoke",
    args: ["ID", "KEY_ID"],
    doc: "revoke a key of a trigger immediately",
    method: "DELETE",
    path: "/triggers/{ID}/keys/{KEY_ID}",
    flags: {},
    shown: { as: "sentence", text: "key {KEY_ID} of trigger {ID} is revoked" },
  },
  {
    words: "triggers revoke-secret",
    args: ["ID", "SECRET_ID"],
    doc: "revoke a secret of a trigger immediately",
    method: "DELETE",
    path: "/triggers/{ID}/secrets/{SECRET_ID}",
    flags: {},
    shown: { as: "sentence", text: "secret {SECRET_ID} of trigger {ID} is revoked" },
  },
];

const EVENTS: readonly AdministrationCommand[] = [
  list("event-keys", "event keys", TIMES, ["id", "name", "kinds", "lastFour", "createdAt"]),
  {
    ...create("event-keys create", "create a key for posting events and show it once", { NAME: "name" }),
    flags: {
      kind: bodyFlag(
        "kinds",
        "KIND",
        "kind of event that the key may post, a prefix such as agent.*, or * (required)",
        {
          repeated: true,
          read: readTexts,
          isRequired: true,
        },
      ),
    },
    shown: { as: "record", secrets: ["key"] },
  },
  remove("event-keys", "event key", "delete a key for posting events"),
  {
    ...create("events post", "post an event to every endpoint that subscribes to its kind", {
      KIND: "event",
    }),
    flags: {
      ...payloadFlags("payload"),
      "idempotency-key": idempotencyKeyFlag("post at most one event with this key within 24 hours"),
    },
    notes: "The token may be an event key instead of the administration token.",
    shown: { as: "record", next: "weir deliveries list --event-id {id}" },
  },
  list("events", "events", { event: filterFlag("event", "KIND", "only events of this kind"), ...TIMES }, [
    "id",
    "event",
    "isErased",
    "createdAt",
  ]),
  show("events", "an event and its payload"),
  {
    words: "events why",
    args: ["ID"],
    doc: "explain why an endpoint does not receive an event, or the state of its delivery",
    method: "GET",
    path: "/events/{ID}/why",
    flags: {
      endpoint: filterFlag("endpointId", "ID", "the endpoint (required)", { isRequired: true }),
    },
    shown: { as: "field", field: "why" },
  },
  {
    words: "events erase",
    args: ["ID"],
    doc: "erase the payload of an event; its open deliveries fail",
    method: "DELETE",
    path: "/events/{ID}/payload",
    flags: {},
    shown: { as: "sentence", text: "the payload of event {ID} is erased" },
  },
];

const WORK: readonly AdministrationCommand[] = [
  list("deliveries", "deliveries", {
    endpoint: filterFlag("endpointId", "ID", "only deliveries to this endpoint"),
    "event-id": filterFlag("eventId", "ID", "only deliveries of this event"),
    state: filterFlag(
      "state",
      "STATE",
      "only deliveries in this state: attempting, retrying, acknowledged or failed",
    ),
    event: filterFlag("event", "KIND", "only deliveries of events of this kind"),
    ...TIMES,
  }, ["id", "event", "endpointId", "state", "nextAttemptAt"]),
  show("deliveries", "a delivery with its attempts"),
  action("deliveries resend", "request one more attempt now", {
    as: "sentence",
    text: "delivery {ID} has one more attempt queued",
    held: "delivery {ID} is not sent yet: {why}",
  }),
  {
    words: "deliveries why",
    args: ["ID"],
    doc: "explain why a delivery has not arrived yet",
    method: "GET",
    path: "/deliveries/{ID}",
    flags: {},
    shown: { as: "field", field: "why" },
  },
  ...PAUSE_COMMANDS,
  list("executions", "executions", {
    state: filterFlag(
      "state",
      "STATUS",
      "only executions with this status: queued, running, succeeded, failed or cancelled",
    ),
    ...TIMES,
  }, ["id", "workflow", "status", "startedAt", "finishedAt"]),
  show("executions", "an execution with its steps"),
  action("executions cancel", "cancel an execution after its current step", {
    as: "sentence",
    text: "execution {ID} is being cancelled",
  }),
  {
    ...list("audit", "the audit log", {
      action: filterFlag("event", "ACTION", "only entries with this action, such as delivery.failed"),
      ...TIMES,
    }, ["at", "actor", "action", "object", "details"]),
    words: "audit",
  },
];

/** Every command over the administration, group by group. */
export const ADMINISTRATION_COMMANDS: readonly AdministrationCommand[] = [
  ...COUNTER_COMMANDS,
  ...ENDPOINTS,
  ...TRIGGERS,
  ...WORKFLOW_COMMANDS,
  ...EVENTS,
  ...WORK,
];
