import { timeText } from "../base/rfc3339.ts";
import { AUDIT } from "../webhooks/resources/audit_entry.ts";
import { DELIVERIES } from "../webhooks/resources/delivery.ts";
import {
  ENDPOINT_CHECK,
  ENDPOINT_RECOVERY,
  ENDPOINT_ROTATION,
  ENDPOINTS,
} from "../webhooks/resources/endpoint.ts";
import { EVENT_KEYS, EVENT_RECEIVER, EVENTS } from "../webhooks/resources/event.ts";
import { EXECUTIONS } from "../webhooks/resources/execution.ts";
import { DELIVERY_RETRY, ENDPOINT_REPLAY, REPLAYS } from "../webhooks/resources/replay.ts";
import { CHALLENGE_TOKEN, TRIGGER_CALL, TRIGGERS } from "../webhooks/resources/trigger.ts";
import { VERIFICATION_SECRET } from "../webhooks/resources/trigger_verification.ts";
import {
  action,
  type AdministrationCommand,
  change,
  create,
  list,
  PAGE_FLAGS,
  remove,
  show,
} from "./administration_verbs.ts";
import {
  type CallFlag,
  type CallFlags,
  flagsOf,
  payloadFlags,
  withCustomPlaces,
} from "./administration_flags.ts";
import { COUNTER_COMMANDS } from "./counter_commands.ts";

/** The groups of commands. */
export const GROUPS: Readonly<Record<string, string>> = {
  counters: "counters of rate limits",
  endpoints: "receivers of events",
  triggers: "HTTP endpoints that start workflows",
  workflows: "workflow files",
  "event-keys": "keys that other systems use to post events",
  events: "events to deliver",
  deliveries: "deliveries of events to endpoints",
  replays: "new deliveries of past events, and retries of deliveries",
  executions: "executions of workflows",
  audit: "log of administrative actions",
};

const REPLAY_SHOWN = { as: "record", next: "weir replays show {id}" } as const;

const ENDPOINT_COMMANDS: readonly AdministrationCommand[] = [
  list(ENDPOINTS),
  create(ENDPOINTS, "add", { args: ["url"], doc: "add an endpoint and show its signing secret once" }),
  show(ENDPOINTS),
  change(ENDPOINTS, "weir endpoints recover {ID} --since {missedSince}"),
  remove(ENDPOINTS, "; its open deliveries fail"),
  action(ENDPOINTS, "rotate", {
    doc: "create a new signing secret and show it once",
    fields: ENDPOINT_ROTATION,
    shown: { as: "record", secrets: ["secret"] },
  }),
  {
    ...action(ENDPOINTS, "test", {
      doc: "send a signed test request to an endpoint, and report each stage",
      fields: ENDPOINT_CHECK,
      shown: { as: "record", good: "ok" },
    }),
    aliases: ["endpoints check"],
    exitCodes: { 0: "every stage passes", 1: "a stage fails" },
  },
  {
    ...action(ENDPOINTS, "recover", {
      doc: "retry the failed deliveries of an endpoint with a new schedule",
      shown: { as: "record" },
    }),
    flags: recoveryFlags(),
  },
  action(ENDPOINTS, "replay", {
    doc: "send past events to an endpoint again, as new deliveries",
    fields: ENDPOINT_REPLAY,
    shown: REPLAY_SHOWN,
  }),
];

/** The range ends now when it is not given. */
function recoveryFlags(): CallFlags {
  const until = { type: "moment", words: ENDPOINT_RECOVERY.until.words } as const;
  const flags = flagsOf({ ...ENDPOINT_RECOVERY, until });
  const { until: flag } = flags;
  if (flag === undefined) return flags;
  return { ...flags, until: { ...flag, doc: `${flag.doc} (default now)`, otherwise: timeText } };
}

/** A new trigger shows one of them, and so does a rotation. */
const CREDENTIALS = ["key", "secret"];
const NEW_TRIGGER = create(TRIGGERS, "create", {
  args: ["name"],
  doc: "create a trigger and show its key or secret once",
});

const TRIGGER_CHANGE = change(TRIGGERS);
const { data: _, ...CALL_FIELDS } = TRIGGER_CALL;
/** Without the file of secret headers: headers of a test are no secrets. */
const { "headers-file": __, ...CALL_FLAGS } = flagsOf(CALL_FIELDS);

const TRIGGER_COMMANDS: readonly AdministrationCommand[] = [
  list(TRIGGERS),
  {
    ...NEW_TRIGGER,
    flags: {
      ...withCustomPlaces(NEW_TRIGGER.flags),
      ...flagsOf(VERIFICATION_SECRET, "body", "verify."),
      ...flagsOf(CHALLENGE_TOKEN),
    },
  },
  show(TRIGGERS),
  { ...TRIGGER_CHANGE, flags: { ...withCustomPlaces(TRIGGER_CHANGE.flags), ...flagsOf(CHALLENGE_TOKEN) } },
  remove(TRIGGERS, " with its keys and secrets; its executions remain"),
  {
    ...action(TRIGGERS, "call", {
      doc: "call a trigger without its key",
      shown: { as: "record", id: "executionId", next: "weir executions show {executionId}" },
    }),
    args: ["NAME"],
    path: "/triggers/{NAME}/call",
    flags: {
      ...payloadFlags("input"),
      ...CALL_FLAGS,
      "idempotency-key": keyFlag("start at most one execution with this key within 24 hours"),
    },
    notes: "NAME is the name or the identifier of the trigger.",
  },
  action(TRIGGERS, "rotate", {
    doc: "create a second key or secret and show it once; if two exist, delete the older one",
    fields: VERIFICATION_SECRET,
    shown: { as: "record", secrets: CREDENTIALS },
  }),
  revoke("revoke", "key"),
  revoke("revoke-secret", "secret"),
];

function revoke(verb: string, noun: "key" | "secret"): AdministrationCommand {
  const id = `${noun.toUpperCase()}_ID`;
  return {
    words: `triggers ${verb}`,
    args: ["ID", id],
    doc: `revoke a ${noun} of a trigger immediately`,
    method: "DELETE",
    path: `/triggers/{ID}/${noun}s/{${id}}`,
    flags: {},
    question: `This revokes ${noun} {${id}} of trigger {ID} immediately`,
    shown: { as: "sentence", text: `${noun} {${id}} of trigger {ID} is revoked` },
  };
}

const WORKFLOW_COLUMNS = ["id", "state", "triggerCount", "loadedAt", "file"];
const WORKFLOW_COMMANDS: readonly AdministrationCommand[] = [
  {
    words: "workflows list",
    args: [],
    doc: "list the workflow files that the service has read, with their errors",
    method: "GET",
    path: "/workflows",
    flags: PAGE_FLAGS,
    shown: { as: "list", columns: WORKFLOW_COLUMNS, hasProblems: true },
  },
  {
    words: "workflows show",
    args: ["NAME"],
    doc: "show a workflow with its steps, triggers and errors",
    method: "GET",
    path: "/workflows/{NAME}",
    flags: {},
    shown: { as: "record", id: "id", hasProblems: true },
  },
];

const EVENT_COMMANDS: readonly AdministrationCommand[] = [
  list(EVENT_KEYS),
  create(EVENT_KEYS, "create", {
    args: ["name"],
    doc: "create a key for posting events and show it once",
  }),
  show(EVENT_KEYS),
  { ...remove(EVENT_KEYS), doc: "delete a key for posting events" },
  {
    words: "events post",
    args: ["KIND"],
    doc: "post an event to every endpoint that subscribes to its kind",
    method: "POST",
    path: "/events",
    fields: { KIND: "event" },
    flags: {
      ...payloadFlags("payload"),
      "idempotency-key": keyFlag("post at most one event with this key within 24 hours"),
    },
    notes: "The token may be an event key instead of the administration token.",
    shown: { as: "record", id: "id", next: "weir deliveries list --event-id {id}" },
  },
  list(EVENTS),
  show(EVENTS, " and its payload"),
  {
    words: "events why",
    args: ["ID"],
    doc: "explain which endpoints receive an event, and why or why not",
    method: "GET",
    path: "/events/{ID}/why",
    flags: flagsOf(EVENT_RECEIVER, "query"),
    shown: {
      as: "field",
      field: "why",
      columns: { endpoints: ["endpointId", "url", "deliveryId", "why"] },
    },
  },
  {
    words: "events erase",
    args: ["ID"],
    doc: "erase the payload of an event; its open deliveries fail",
    method: "DELETE",
    path: "/events/{ID}/payload",
    flags: {},
    question: "This erases the payload of event {ID}; its open deliveries fail",
    shown: { as: "sentence", text: "the payload of event {ID} is erased" },
  },
];

const DELIVERY_COMMANDS: readonly AdministrationCommand[] = [
  list(DELIVERIES),
  show(DELIVERIES, " with its attempts"),
  action(DELIVERIES, "resend", {
    doc: "request one more attempt now",
    shown: {
      as: "sentence",
      text: "delivery {ID} has one more attempt queued",
      held: "delivery {ID} is not sent yet: {why}",
    },
  }),
  {
    ...show(DELIVERIES),
    words: "deliveries why",
    doc: "explain why a delivery has not arrived yet",
    shown: { as: "field", field: "why" },
  },
  {
    ...everyDelivery("pause", "pause all deliveries, on all instances, until they are resumed"),
    notes: "Weir starts no new attempts. Attempts in flight end normally, and Weir still accepts events.",
  },
  everyDelivery("resume", "resume all deliveries"),
  {
    ...everyDelivery("retry", "retry all deliveries that match the flags"),
    flags: flagsOf(DELIVERY_RETRY),
    shown: REPLAY_SHOWN,
  },
];

const REPLAY_COMMANDS: readonly AdministrationCommand[] = [
  list(REPLAYS),
  show(REPLAYS, " with its progress"),
  action(REPLAYS, "cancel", {
    doc: "cancel a replay; the deliveries that it has created or retried stay",
    shown: { as: "record" },
  }),
];

function everyDelivery(verb: string, doc: string): AdministrationCommand {
  const path = `/deliveries/${verb}`;
  return {
    words: `deliveries ${verb}`,
    args: [],
    doc,
    method: "POST",
    path,
    flags: {},
    shown: { as: "record" },
  };
}

const EXECUTION_COMMANDS: readonly AdministrationCommand[] = [
  list(EXECUTIONS),
  show(EXECUTIONS, " with its steps"),
  action(EXECUTIONS, "cancel", {
    doc: "cancel an execution after its current step",
    shown: { as: "sentence", text: "execution {ID} is being cancelled" },
  }),
  {
    ...action(EXECUTIONS, "rerun", {
      doc: "run an ended execution again, with the same input and the current workflow",
      shown: { as: "record", id: "executionId", next: "weir executions show {executionId}" },
    }),
    flags: { "idempotency-key": keyFlag("run it again at most once with this key within 24 hours") },
  },
  { ...list(AUDIT), words: "audit", doc: "list the audit log, newest first" },
];

function keyFlag(doc: string): CallFlag {
  return { into: "header", field: "idempotency-key", value: "KEY", doc };
}

/** Every command over the administration, group by group. */
export const ADMINISTRATION_COMMANDS: readonly AdministrationCommand[] = [
  ...COUNTER_COMMANDS,
  ...ENDPOINT_COMMANDS,
  ...TRIGGER_COMMANDS,
  ...WORKFLOW_COMMANDS,
  ...EVENT_COMMANDS,
  ...DELIVERY_COMMANDS,
  ...REPLAY_COMMANDS,
  ...EXECUTION_COMMANDS,
];
