import { timeText } from "../base/rfc3339.ts";
import {
  bodyFlag,
  booleanFlag,
  type CallFlag,
  filterFlag,
  readDescriptors,
  readDurationText,
  readHeaderLines,
  readHeaders,
  readJson,
  readMilliseconds,
  readMoment,
  readTexts,
  readWhole,
} from "./administration_flags.ts";
import type { Command } from "./command.ts";

/** How an answer is printed for people. */
export type Shown =
  /** Rows of these fields, page by page. */
  | { readonly as: "list"; readonly columns: readonly string[] }
  /** Every field; `secret` is shown only once, and false in `good` is a failure. */
  | { readonly as: "record"; readonly secret?: string | undefined; readonly good?: string | undefined }
  /** One field alone. */
  | { readonly as: "field"; readonly field: string }
  /** A sentence with placeholders for arguments, such as `{ID}`. */
  | { readonly as: "sentence"; readonly text: string };

/** A command that makes one call of the administration. */
export interface AdministrationCommand extends Command {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Behind `/api/v1`, with placeholders for arguments, such as `{ID}`. */
  readonly path: string;
  readonly flags: Readonly<Record<string, CallFlag>>;
  /** Arguments that become fields of the body. */
  readonly fields?: Readonly<Record<string, string>> | undefined;
  /** Whether the body must not be empty. */
  readonly isChange?: boolean | undefined;
  readonly shown: Shown;
}

/** The groups of commands. */
export const GROUPS: Readonly<Record<string, string>> = {
  endpoints: "receivers of events",
  triggers: "starting points of workflows",
  "event-keys": "keys of other systems for posting events",
  events: "occurrences to deliver",
  deliveries: "events on their way to endpoints",
  executions: "runs of workflows",
  audit: "log of administrative actions",
};

const SINCE = filterFlag("since", "TIME", "only from this time on; 24h means 24 hours ago", {
  read: readMoment,
});
const UNTIL = filterFlag("until", "TIME", "only before this time", { read: readMoment });
const TIMES = { since: SINCE, until: UNTIL };

const ATTEMPT_TIMEOUT = bodyFlag("timeoutMs", "DURATION", "how long one attempt may take", {
  read: readMilliseconds,
});
const ENDPOINT_FLAGS = {
  event: bodyFlag("events", "KIND", "subscribed kind, a prefix such as workflow.*, or *", {
    repeated: true,
    read: readTexts,
  }),
  description: bodyFlag("description", "TEXT", "what it is for"),
  header: bodyFlag("headers", "'NAME: VALUE'", "static header of every request", {
    repeated: true,
    read: readHeaders,
  }),
  "headers-file": bodyFlag("headers", "FILE", "file of secret static headers, one per line", {
    isFile: true,
    read: readHeaderLines,
  }),
  concurrency: bodyFlag("concurrency", "N", "how many attempts may run concurrently", { read: readWhole }),
  "attempt-timeout": ATTEMPT_TIMEOUT,
  "standard-webhooks": booleanFlag("standardWebhooks", "also send the headers of Standard Webhooks"),
};

const WORKFLOW = bodyFlag("workflow", "NAME", "the workflow that it starts");
const TRIGGER_FLAGS = {
  "require-idempotency-key": booleanFlag("requireIdempotencyKey", "refuse calls without Idempotency-Key"),
  "on-body-mismatch": bodyFlag(
    "onBodyMismatch",
    "HOW",
    "known key with another body: replay (default) or reject",
  ),
  "limit-domain": bodyFlag("limit.domain", "DOMAIN", "domain of the rate limit of calls"),
  "limit-descriptor": bodyFlag(
    "limit.descriptors",
    "KEY=VALUE,...",
    "descriptor of that limit, with {{ input.… }}",
    {
      repeated: true,
      read: readDescriptors,
    },
  ),
  "on-limit-error": bodyFlag("onLimitError", "HOW", "when that decision fails: deny (default) or allow"),
};
const SWITCHES = {
  enable: booleanFlag("enabled", "enable it"),
  disable: booleanFlag("enabled", "disable it", { is: false }),
};
const DISABLED = booleanFlag("enabled", "create it disabled", { is: false });

const ENDPOINTS: readonly AdministrationCommand[] = [
  list("endpoints", "endpoints", TIMES, ["id", "url", "events", "enabled", "description"]),
  {
    ...create("endpoints add", "add an endpoint and show its signing secret once", { URL: "url" }),
    flags: { ...ENDPOINT_FLAGS, disabled: DISABLED },
    shown: { as: "record", secret: "secret" },
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
      to: bodyFlag("url", "URL", "its URL from the next attempt on"),
      ...ENDPOINT_FLAGS,
      "no-headers": booleanFlag("headers", "remove its static headers", { is: null }),
      "default-attempt-timeout": booleanFlag("timeoutMs", "use WEBHOOK_TIMEOUT for its attempts", {
        is: null,
      }),
      ...SWITCHES,
    },
    shown: { as: "record" },
  },
  remove("endpoints", "endpoint", "delete an endpoint; its open deliveries fail"),
  {
    ...action("endpoints rotate", "create a new signing secret and show it once", {
      as: "record",
      secret: "secret",
    }),
    flags: {
      "active-in": bodyFlag("activeIn", "DURATION", "when it starts to sign (default 24h; 0 for now)", {
        read: readDurationText,
      }),
    },
  },
  {
    ...action("endpoints check", "test an endpoint with a signed sample, stage by stage", {
      as: "record",
      good: "ok",
    }),
    notes: "exit code: 1 when a stage fails",
  },
  {
    ...action("endpoints recover", "retry the failed deliveries of an endpoint with a new schedule", {
      as: "record",
    }),
    flags: {
      since: { ...SINCE, into: "body", doc: `${SINCE.doc} (required)`, isRequired: true },
      until: { ...UNTIL, into: "body", doc: "only before this time (default now)", otherwise: timeText },
      "dry-run": booleanFlag("dryRun", "only count them"),
    },
  },
];

const TRIGGERS: readonly AdministrationCommand[] = [
  list("triggers", "triggers", TIMES, ["id", "name", "workflow", "enabled", "createdAt"]),
  {
    ...create("triggers create", "create a trigger and show its key once", { NAME: "name" }),
    flags: {
      workflow: { ...WORKFLOW, doc: `${WORKFLOW.doc} (required)`, isRequired: true },
      ...TRIGGER_FLAGS,
      disabled: DISABLED,
    },
    shown: { as: "record", secret: "key" },
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
      ...TRIGGER_FLAGS,
      "no-limit": booleanFlag("limit", "remove its rate limit", { is: null }),
      ...SWITCHES,
    },
    shown: { as: "record" },
  },
  remove("triggers", "trigger", "delete a trigger with its keys; its executions stay"),
  action("triggers rotate", "create a second key and show it once; of two, the older is deleted", {
    as: "record",
    secret: "key",
  }),
  {
    words: "triggers revoke",
    args: ["ID", "KEY_ID"],
    doc: "revoke a key of a trigger immediately",
    method: "DELETE",
    path: "/triggers/{ID}/keys/{KEY_ID}",
    flags: {},
    shown: { as: "sentence", text: "key {KEY_ID} of trigger {ID} is revoked" },
  },
];

const EVENTS: readonly AdministrationCommand[] = [
  list("event-keys", "event keys", TIMES, ["id", "name", "kinds", "lastFour", "createdAt"]),
  {
    ...create("event-keys create", "create a key for posting events and show it once", { NAME: "name" }),
    flags: {
      kind: bodyFlag("kinds", "KIND", "kind that it may post, a prefix such as agent.*, or * (required)", {
        repeated: true,
        read: readTexts,
        isRequired: true,
      }),
    },
    shown: { as: "record", secret: "key" },
  },
  remove("event-keys", "event key", "delete a key for posting events"),
  {
    ...create("events post", "post an event to every endpoint that subscribes to its kind", {
      KIND: "event",
    }),
    flags: {
      data: bodyFlag("data", "JSON", "its payload, an object (default {})", {
        read: readJson,
        otherwise: () => ({}),
      }),
      "data-file": bodyFlag("data", "FILE", "file of its payload, - for standard input", {
        read: readJson,
        isFile: true,
      }),
      "idempotency-key": {
        into: "header",
        field: "idempotency-key",
        value: "KEY",
        doc: "post it only once within 24 hours",
      },
    },
    notes: "The token may be an event key.",
    shown: { as: "record" },
  },
  list("events", "events", { event: filterFlag("event", "KIND", "only of this kind"), ...TIMES }, [
    "id",
    "event",
    "isErased",
    "createdAt",
  ]),
  show("events", "an event and its payload"),
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
    endpoint: filterFlag("endpointId", "ID", "only to this endpoint"),
    state: filterFlag("state", "STATE", "only attempting, retrying, acknowledged or failed ones"),
    event: filterFlag("event", "KIND", "only of events of this kind"),
    ...TIMES,
  }, ["id", "event", "endpointId", "state", "nextAttemptAt"]),
  show("deliveries", "a delivery with its attempts"),
  action("deliveries resend", "request one more attempt now", {
    as: "sentence",
    text: "delivery {ID} is sent again now",
  }),
  {
    words: "deliveries why",
    args: ["ID"],
    doc: "explain why a delivery is not delivered yet",
    method: "GET",
    path: "/deliveries/{ID}",
    flags: {},
    shown: { as: "field", field: "why" },
  },
  list("executions", "executions", {
    state: filterFlag("state", "STATUS", "only queued, running, succeeded, failed or cancelled ones"),
    ...TIMES,
  }, ["id", "workflow", "status", "startedAt", "finishedAt"]),
  show("executions", "an execution with its steps"),
  action("executions cancel", "cancel an execution after its current step", {
    as: "sentence",
    text: "execution {ID} is being cancelled",
  }),
  {
    ...list("audit", "the audit log", {
      action: filterFlag("event", "ACTION", "only this action, such as delivery.failed"),
      ...TIMES,
    }, ["at", "actor", "action", "object", "details"]),
    words: "audit",
  },
];

/** Every command over the administration, group by group. */
export const ADMINISTRATION_COMMANDS: readonly AdministrationCommand[] = [
  ...ENDPOINTS,
  ...TRIGGERS,
  ...EVENTS,
  ...WORK,
];

function list(
  group: string,
  what: string,
  filters: Readonly<Record<string, CallFlag>>,
  columns: readonly string[],
): AdministrationCommand {
  return {
    words: `${group} list`,
    args: [],
    doc: `list ${what}, newest first`,
    method: "GET",
    path: `/${group}`,
    flags: {
      ...filters,
      limit: filterFlag("limit", "N", "at most this many, up to 200 (default 50)"),
      cursor: filterFlag("cursor", "CURSOR", "the start of a page, as printed with the previous page"),
    },
    shown: { as: "list", columns },
  };
}

/** `POST /<group>`, whose argument becomes a field of the body. */
function create(words: string, doc: string, fields: Readonly<Record<string, string>>) {
  return {
    words,
    args: Object.keys(fields),
    doc,
    method: "POST",
    path: `/${words.split(" ")[0]}`,
    fields,
  } as const;
}

/** `POST /<group>/<ID>/<action>`. */
function action(words: string, doc: string, shown: Shown): AdministrationCommand {
  const [group, verb] = words.split(" ");
  return { words, args: ["ID"], doc, method: "POST", path: `/${group}/{ID}/${verb}`, flags: {}, shown };
}

function show(group: string, what: string): AdministrationCommand {
  return {
    words: `${group} show`,
    args: ["ID"],
    doc: `show ${what}`,
    method: "GET",
    path: `/${group}/{ID}`,
    flags: {},
    shown: { as: "record" },
  };
}

function remove(group: string, one: string, doc: string): AdministrationCommand {
  return {
    words: `${group} delete`,
    args: ["ID"],
    doc,
    method: "DELETE",
    path: `/${group}/{ID}`,
    flags: {},
    shown: { as: "sentence", text: `${one} {ID} is deleted` },
  };
}
