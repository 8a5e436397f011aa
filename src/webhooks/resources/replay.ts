import { DELIVERIES } from "./delivery.ts";
import { ENDPOINT_FIELDS } from "./endpoint.ts";
import { CREATED, type Fields, ID, type Resource } from "./field.ts";

/** Most replays that run at the same time. */
export const MAX_RUNNING_REPLAYS = 10;

const REPLAY_STATES = ["running", "finished", "cancelled", "failed"] as const;
const { endpointId, eventId } = DELIVERIES.filters;
/** The states of deliveries that are retried. */
const RETRIED_STATES = ["failed", "retrying"] as const;
const RETRIED_STATE = { type: "choice", choices: RETRIED_STATES } as const;

/** The fields of a replay. */
export const REPLAY_FIELDS = {
  id: ID,
  source: {
    type: "choice",
    choices: ["events", "deliveries"],
    words: "`events` for new deliveries of events to an endpoint, `deliveries` for a retry of deliveries.",
    label: "Of",
  },
  state: { type: "choice", choices: REPLAY_STATES, words: "The state.", label: "State" },
  reason: {
    type: "choice",
    choices: ["endpoint_deleted"],
    words: "Reason of the failure.",
    shown: "sometimes",
    label: "Reason",
  },
  count: {
    type: "integer",
    words:
      "Number of matching events or deliveries when it was started; absent if counting them took too long.",
    shown: "sometimes",
    label: "Matches",
  },
  done: { type: "integer", words: "Number of deliveries that it has created or retried.", label: "Done" },
  endpointId: { type: "id", words: "The endpoint; absent for all.", shown: "sometimes", label: "Endpoint" },
  eventId: { type: "id", words: "The event; absent for all.", shown: "sometimes", label: "Event" },
  events: {
    type: "kinds",
    words: "Kinds of events; absent for all.",
    shown: "sometimes",
    label: "Kinds",
  },
  filter: {
    type: "filter",
    words: "Conditions on fields of `data`; absent for none.",
    shown: "sometimes",
    label: "Filter",
  },
  deliveryState: {
    ...RETRIED_STATE,
    words: "The state of the deliveries that it retries.",
    shown: "sometimes",
    label: "Deliveries in state",
  },
  since: {
    type: "time",
    words: "Events or deliveries since this time; absent for all.",
    shown: "sometimes",
    label: "Since",
  },
  until: { type: "time", words: "Events or deliveries before this time.", label: "Before" },
  createdAt: CREATED,
  finishedAt: { type: "time", words: "End time.", shown: "sometimes", label: "Ended" },
} as const satisfies Fields;

/** Replays of events, and retries of deliveries. */
export const REPLAYS: Resource = {
  list: "replays",
  noun: "replay",
  fields: REPLAY_FIELDS,
  filters: {
    endpointId: {
      type: "id",
      words: "Only replays to this endpoint.",
      expected: "the identifier of an endpoint",
      flag: "endpoint",
      label: "Endpoint",
    },
    state: {
      type: "choice",
      choices: REPLAY_STATES,
      words: "Only replays in this state.",
      value: "STATE",
      label: "State",
    },
  },
  columns: ["id", "source", "state", "done", "count", "endpointId", "createdAt"],
};

const DRY_RUN = {
  type: "flag",
  words: "Whether to count the matches without starting a replay.",
  help: "count the matches without starting a replay",
  default: false,
} as const;

const UNTIL = {
  type: "moment",
  words: "The end of the range, exclusive: a time, or a duration before now; now if absent.",
  label: "Created before",
} as const;

/** Events to send to an endpoint again. */
export const ENDPOINT_REPLAY = {
  since: {
    type: "moment",
    words: "The start of the range: a time, or a duration before now such as `48h`.",
    isRequired: true,
    label: "Created since",
  },
  until: UNTIL,
  events: {
    type: "kinds",
    words: "Only events of these kinds, among those that the endpoint receives.",
    max: 100,
    flag: "event",
    label: "Events",
    hint: "Kinds and prefixes, separated by spaces; all that the endpoint receives when empty",
  },
  filter: {
    type: "filter",
    words: "Only events whose `data` meets these conditions too, as in the filter of an endpoint.",
    help: ENDPOINT_FIELDS.filter.help.replace("receive only", "only"),
    label: "Filter",
    hint: ENDPOINT_FIELDS.filter.hint,
  },
  dryRun: DRY_RUN,
} as const satisfies Fields;

/** Deliveries to retry: those that a list with the same filters shows. */
export const DELIVERY_RETRY = {
  endpointId: { ...endpointId, type: "id", words: "Only deliveries to this endpoint." },
  eventId: { ...eventId, type: "id", words: "Only deliveries of this event." },
  state: {
    ...RETRIED_STATE,
    words:
      "The state of the deliveries: `failed` ones begin a new retry schedule, `retrying` ones have one more attempt.",
    default: "failed",
    value: "STATE",
  },
  event: { type: "kind", words: "Only deliveries of events of this kind." },
  since: {
    type: "moment",
    words: "Only deliveries created since: a time, or a duration before now such as `48h`.",
  },
  until: UNTIL,
  dryRun: DRY_RUN,
} as const satisfies Fields;
