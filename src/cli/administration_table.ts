import { timeText } from "../base/rfc3339.ts";
import {
  bodyFlag,
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
  saidFlag,
} from "./administration_flags.ts";
import type { Command } from "./command.ts";

/** How an answer is shown to people. */
export type Shown =
  /** Rows of these fields, page by page. */
  | { readonly as: "list"; readonly columns: readonly string[] }
  /** Every field; `secret` is one that is shown this once, and a false in `good` is a failure. */
  | { readonly as: "record"; readonly secret?: string | undefined; readonly good?: string | undefined }
  /** One field alone. */
  | { readonly as: "field"; readonly field: string }
  /** A sentence; `{ID}` and the like stand for arguments. */
  | { readonly as: "sentence"; readonly text: string };

/** A command that makes one call of the administration. */
export interface AdministrationCommand extends Command {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Behind `/api/v1`; `{ID}` and the like stand for arguments. */
  readonly path: string;
  readonly flags: Readonly<Record<string, CallFlag>>;
  /** Arguments that become fields of the body. */
  readonly fields?: Readonly<Record<string, string>> | undefined;
  /** Whether there has to be something in the body. */
  readonly isChange?: boolean | undefined;
  readonly shown: Shown;
}

/** What the groups of commands are about. */
export const GROUPS: Readonly<Record<string, string>> = {
  endpoints: "where events are delivered",
  triggers: "what starts workflows",
  "event-keys": "who may post events beside the administration",
  events: "what happened",
  deliveries: "events on their way to endpoints",
  executions: "runs of workflows",
  audit: "what was done, and by whom",
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
  event: bodyFlag("events", "KIND", "kind that is wanted, a prefix such as workflow.*, or *", {
    repeated: true,
    read: readTexts,
  }),
  description: bodyFlag("description", "TEXT", "what it is for"),
  header: bodyFlag("headers", "'NAME: VALUE'", "static header of every request", {
    repeated: true,
    read: readHeaders,
  }),
  "headers-file": bodyFlag("headers", "FILE", "file of static headers, one a line, that others may not see", {
    isFile: true,
    read: readHeaderLines,
  }),
  concurrency: bodyFlag("concurrency", "N", "how many attempts may run at once", { read: readWhole }),
  "attempt-timeout": ATTEMPT_TIMEOUT,
  "standard-webhooks": saidFlag("standardWebhooks", "send the headers of Standard Webhooks, too"),
};

const WORKFLOW = bodyFlag("workflow", "NAME", "the workflow that it starts");
const TRIGGER_FLAGS = {
  "require-idempotency-key": saidFlag("requireIdempotencyKey", "refuse calls without Idempotency-Key"),
  "on-body-mismatch": bodyFlag(
    "onBodyMismatch",
    "HOW",
    "known key with another body: replay (default) or reject",
  ),
  "limit-domain": bodyFlag("limit.domain", "DOMAIN", "domain of the rate limit that calls are asked for"),
  "limit-descriptor": bodyFlag("limit.descriptors", "KEY=VALUE,...", "descriptor of it, with {{ input.… }}", {
    repeated: true,
    read: readDescriptors,
  }),
  "on-limit-error": bodyFlag("onLimitError", "HOW", "when that decision fails: deny (default) or allow"),
};
const SWITCHES = {
  enable: saidFlag("enabled", "switch it on"),
  disable: saidFlag("enabled", "switch it off", { is: false }),
};
const DISABLED = saidFlag("enabled", "make it switched off", { is: false });

const ENDPOINTS: readonly AdministrationCommand[] = [
  list("endpoints", "endpoints", TIMES, ["id", "url", "events", "enabled", "description"]),
  {
    words: "endpoints add",
    args: ["URL"],
    doc: "adds an endpoint and shows its signing secret once",
    method: "POST",
    path: "/endpoints",
    fields: { URL: "url" },
    flags: { ...ENDPOINT_FLAGS, disabled: DISABLED },
    shown: { as: "record", secret: "secret" },
  },
  show("endpoints", "an endpoint"),
  {
    words: "endpoints edit",
    args: ["ID"],
    doc: "changes what is said of an endpoint",
    method: "PATCH",
    path: "/endpoints/{ID}",
    isChange: true,
    flags: {
      to: bodyFlag("url", "URL", "where its events go from the next attempt on"),
      ...ENDPOINT_FLAGS,
      "no-headers": saidFlag("headers", "take its static headers away", { is: null }),
      "default-attempt-timeout": saidFlag("timeoutMs", "let attempts take as long as WEBHOOK_TIMEOUT", {
        is: null,
      }),
      ...SWITCHES,
    },
    shown: { as: "record" },
  },
  remove("endpoints", "endpoint", "deletes an endpoint; its open deliveries fail"),
  {
    words: "endpoints rotate",
    args: ["ID"],
    doc: "makes a new signing secret and shows it once",
    method: "POST",
    path: "/endpoints/{ID}/rotate",
    flags: {
      "active-in": bodyFlag("activeIn", "DURATION", "when it begins to sign (default 24h; 0 for now)", {
        read: readDurationText,
      }),
    },
    shown: { as: "record", secret: "secret" },
  },
  {
    words: "endpoints check",
    args: ["ID"],
    doc: "tries an endpoint with a signed sample, stage by stage",
    method: "POST",
    path: "/endpoints/{ID}/check",
    flags: {},
    notes: "exit code: 1 when a stage fails",
    shown: { as: "record", good: "ok" },
  },
  {
    words: "endpoints recover",
    args: ["ID"],
    doc: "opens the failed deliveries of an endpoint again, with a new schedule",
    method: "POST",
    path: "/endpoints/{ID}/recover",
    flags: {
      since: { ...SINCE, into: "body", doc: `${SINCE.doc} (required)`, isRequired: true },
      until: { ...UNTIL, into: "body", doc: "only before this time (default now)", otherwise: timeText },
      "dry-run": saidFlag("dryRun", "only count them"),
    },
    shown: { as: "record" },
  },
];

const TRIGGERS: readonly AdministrationCommand[] = [
  list("triggers", "triggers", TIMES, ["id", "name", "workflow", "enabled", "createdAt"]),
  {
    words: "triggers create",
    args: ["NAME"],
    doc: "makes a trigger and shows its key once",
    method: "POST",
    path: "/triggers",
    fields: { NAME: "name" },
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
    doc: "changes what is said of a trigger",
    method: "PATCH",
    path: "/triggers/{ID}",
    isChange: true,
    flags: {
      workflow: WORKFLOW,
      ...TRIGGER_FLAGS,
      "no-limit": saidFlag("limit", "take its rate limit away", { is: null }),
      ...SWITCHES,
    },
    shown: { as: "record" },
  },
  remove("triggers", "trigger", "deletes a trigger with its keys; its executions stay"),
  {
    words: "triggers rotate",
    args: ["ID"],
    doc: "makes a second key and shows it once; the older of two goes",
    method: "POST",
    path: "/triggers/{ID}/rotate",
    flags: {},
    shown: { as: "record", secret: "key" },
  },
  {
    words: "triggers revoke",
    args: ["ID", "KEY_ID"],
    doc: "revokes a key of a trigger at once",
    method: "DELETE",
    path: "/triggers/{ID}/keys/{KEY_ID}",
    flags: {},
    shown: { as: "sentence", text: "key {KEY_ID} of trigger {ID} is revoked" },
  },
];

const EVENTS: readonly AdministrationCommand[] = [
  list("event-keys", "event keys", TIMES, ["id", "name", "kinds", "lastFour", "createdAt"]),
  {
    words: "event-keys create",
    args: ["NAME"],
    doc: "makes a key for posting events and shows it once",
    method: "POST",
    path: "/event-keys",
    fields: { NAME: "name" },
    flags: {
      kind: bodyFlag("kinds", "KIND", "kind that it may post, a prefix such as agent.*, or * (required)", {
        repeated: true,
        read: readTexts,
        isRequired: true,
      }),
    },
    shown: { as: "record", secret: "key" },
  },
  remove("event-keys", "event key", "deletes a key for posting events"),
  {
    words: "events post",
    args: ["KIND"],
    doc: "posts an event to every endpoint that wants its kind",
    method: "POST",
    path: "/events",
    fields: { KIND: "event" },
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
        doc: "post it once, however often this is run within 24 hours",
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
    doc: "erases the payload of an event; its open deliveries fail",
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
  {
    words: "deliveries resend",
    args: ["ID"],
    doc: "asks for one more attempt now",
    method: "POST",
    path: "/deliveries/{ID}/resend",
    flags: {},
    shown: { as: "sentence", text: "delivery {ID} is sent again now" },
  },
  {
    words: "deliveries why",
    args: ["ID"],
    doc: "says why a delivery is not delivered yet",
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
  {
    words: "executions cancel",
    args: ["ID"],
    doc: "ends an execution after the step that runs",
    method: "POST",
    path: "/executions/{ID}/cancel",
    flags: {},
    shown: { as: "sentence", text: "execution {ID} is asked to end" },
  },
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
    doc: `lists ${what}, the newest first`,
    method: "GET",
    path: `/${group}`,
    flags: {
      ...filters,
      limit: filterFlag("limit", "N", "at most this many, up to 200 (default 50)"),
      cursor: filterFlag("cursor", "CURSOR", "where a page begins, as the page before it says"),
    },
    shown: { as: "list", columns },
  };
}

function show(group: string, what: string): AdministrationCommand {
  return {
    words: `${group} show`,
    args: ["ID"],
    doc: `shows ${what}`,
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
