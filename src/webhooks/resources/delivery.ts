import { CREATED, type Fields, type Resource } from "./field.ts";

/** The states of a delivery. */
const DELIVERY_STATES = ["attempting", "retrying", "acknowledged", "failed"] as const;
/** Retries of the schedule. */
const RETRIES = 8;

/** The fields of an attempt of a delivery. */
export const ATTEMPT_FIELDS = {
  number: { type: "integer", words: "Number, from 1.", min: 1 },
  url: { type: "text", words: "The URL of the endpoint at that time." },
  manual: { type: "flag", words: "Whether `resend` requested it." },
  result: {
    type: "choice",
    choices: ["acknowledged", "failed", "interrupted"],
    words: "Result.",
    shown: "sometimes",
  },
  status: { type: "integer", words: "The status of the response.", shown: "sometimes" },
  errorKind: {
    type: "choice",
    choices: [
      "status",
      "redirect",
      "timeout",
      "dns",
      "connect",
      "tls",
      "reset",
      "protocol",
      "blocked_address",
      // The request could not be created, for example because its secret cannot be decrypted.
      "unsendable",
      // No access token for the receiver.
      "token",
      "interrupted",
    ],
    words: "The kind of the error.",
    shown: "sometimes",
  },
  error: { type: "text", words: "Human-readable error.", shown: "sometimes" },
  response: {
    type: "text",
    words: "The start of the response's body, at most 16 KiB; lists omit it.",
    shown: "sometimes",
  },
  startedAt: { type: "time", words: "Start time." },
  finishedAt: { type: "time", words: "End time; absent while it runs.", shown: "sometimes" },
} as const satisfies Fields;

/** The requests of a delivery. */
export const DELIVERY_REQUESTS = {
  body: {
    type: "text",
    words:
      "The body, exactly as it is signed and sent; absent before the first attempt and without a payload.",
    shown: "sometimes",
  },
  requests: {
    type: "records",
    words: "The requests in the order of their attempts; those of interrupted attempts are absent.",
    fields: {
      number: ATTEMPT_FIELDS.number,
      url: ATTEMPT_FIELDS.url,
      headers: {
        type: "object",
        words:
          "The headers that Weir creates, by name; never static headers and credentials. A token with the role `read` receives them without signatures.",
      },
    },
    of: "DeliveryRequest",
  },
} as const satisfies Fields;

/** The fields of a delivery that records keep. */
export const STORED_DELIVERY = {
  id: {
    type: "id",
    words: "The identifier, also sent in the header `X-Svc-Delivery`.",
    label: "Identifier",
  },
  endpointId: { type: "id", words: "The endpoint.", label: "Endpoint" },
  eventId: { type: "id", words: "The event." },
  event: { type: "text", words: "The kind of the event.", label: "Event" },
  state: { type: "choice", choices: DELIVERY_STATES, words: "The state.", label: "State" },
  slot: {
    type: "integer",
    words: "Number of used retries of the schedule.",
    min: 0,
    max: RETRIES,
  },
  reason: {
    type: "choice",
    choices: [
      "exhausted",
      "endpoint_disabled",
      "endpoint_deleted",
      "payload_erased",
      "backlog_full",
      "rate_limited",
      "unrenderable",
    ],
    words: "Reason of the permanent failure.",
    shown: "sometimes",
  },
  replayId: {
    type: "id",
    words: "The replay that created it, or retried it last.",
    shown: "sometimes",
    label: "Replay",
  },
  createdAt: CREATED,
  firstFailureAt: {
    type: "time",
    words: "Time of the first failed attempt, at which the retry schedule begins.",
    shown: "sometimes",
  },
  finishedAt: {
    type: "time",
    words: "Time at which it was acknowledged or failed.",
    shown: "sometimes",
    label: "Finished",
  },
} as const satisfies Fields;

/** The fields of a delivery. */
export const DELIVERY_FIELDS = {
  ...STORED_DELIVERY,
  attempts: {
    type: "records",
    words: "Attempts in order.",
    fields: ATTEMPT_FIELDS,
    of: "Attempt",
    label: "Attempts",
  },
  lastError: {
    type: "text",
    words: "Reason of the last attempt, if it failed.",
    shown: "sometimes",
  },
  nextAttemptAt: {
    type: "time",
    words: "Time at which the next attempt is due.",
    shown: "sometimes",
    label: "Next attempt",
  },
  why: {
    type: "text",
    words: "Explanation of the current state, with the reason of the last failed attempt.",
    label: "Reason",
  },
} as const satisfies Fields;

/** Deliveries. */
export const DELIVERIES: Resource = {
  list: "deliveries",
  noun: "delivery",
  fields: DELIVERY_FIELDS,
  filters: {
    endpointId: {
      type: "id",
      words: "Only deliveries to this endpoint.",
      expected: "the identifier of an endpoint",
      flag: "endpoint",
      label: "Endpoint",
    },
    eventId: {
      type: "id",
      words: "Only deliveries of this event.",
      expected: "the identifier of an event",
      flag: "event-id",
      label: "Event identifier",
      hint: "of one event",
    },
    state: {
      type: "choice",
      choices: DELIVERY_STATES,
      words: "Only deliveries in this state.",
      value: "STATE",
      label: "State",
    },
    event: {
      type: "kind",
      words: "Only deliveries of events of this kind.",
      label: "Event",
      hint: "exact kind",
    },
    replayId: {
      type: "id",
      words: "Only deliveries of this replay.",
      expected: "the identifier of a replay",
      flag: "replay",
      label: "Replay",
      hint: "identifier of a replay",
    },
  },
  columns: ["id", "event", "endpointId", "state", "attempts", "lastError", "nextAttemptAt"],
};

/** The pause of all deliveries. */
export const DELIVERY_PAUSE = {
  paused: { type: "flag", words: "Whether all deliveries are paused." },
  since: { type: "time", words: "Start of the pause.", shown: "sometimes" },
  by: { type: "text", words: "The administrator who paused them.", shown: "sometimes" },
} as const satisfies Fields;
