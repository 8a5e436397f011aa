import { CREATED, type Fields, ID, type Resource } from "./field.ts";

const KIND_WORDS =
  "Words of letters, digits, `_` and `-`, separated by dots, such as `agent.reply.completed`; case-sensitive, and no word begins with `-`.";

/** The fields of an event. */
export const EVENT_FIELDS = {
  id: ID,
  event: { type: "kind", words: KIND_WORDS, label: "Kind" },
  isErased: { type: "flag", words: "Whether the payload was erased.", label: "Payload" },
  createdAt: { type: "time", words: "Time at which Weir accepted it.", label: "Created" },
} as const satisfies Fields;

/** Events. */
export const EVENTS: Resource = {
  list: "events",
  noun: "event",
  fields: EVENT_FIELDS,
  filters: {
    event: { type: "kind", words: "Only events of this kind.", label: "Kind", hint: "exact kind" },
  },
  columns: ["id", "event", "isErased", "createdAt"],
};

/** An event that another system posts. */
export const POSTED_EVENT = {
  event: { type: "kind", words: KIND_WORDS, isRequired: true, label: "Kind" },
  data: {
    type: "object",
    words: "The payload, nested at most 63 deep; numbers keep every digit.",
    isRequired: true,
  },
} as const satisfies Fields;

/** The endpoint that may receive an event; all of them if absent. */
export const EVENT_RECEIVER = {
  endpointId: {
    type: "id",
    words: "The endpoint; every endpoint if absent.",
    expected: "the identifier of an endpoint",
    flag: "endpoint",
  },
} as const satisfies Fields;

/** The fields of an event key. */
export const EVENT_KEY_FIELDS = {
  id: ID,
  name: {
    type: "text",
    words: "Name that the audit log and lists show.",
    min: 1,
    max: 128,
    pattern:
      "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$",
    expected: "a text that is not empty",
    set: "new",
    isRequired: true,
    label: "Name",
    hint: "Who uses the key",
  },
  kinds: {
    type: "kinds",
    words: "Kinds of events that the key may report.",
    max: 100,
    set: "new",
    isRequired: true,
    flag: "kind",
    label: "Kinds",
    hint: "Kinds, prefixes such as agent.*, or *",
  },
  lastFour: { type: "text", words: "The last four characters of the key.", label: "Ends in" },
  createdAt: CREATED,
  key: {
    type: "text",
    words: "The event key. Only this response contains it.",
    pattern: "^svce_",
    shown: "once",
  },
} as const satisfies Fields;

/** Event keys. */
export const EVENT_KEYS: Resource = {
  list: "event-keys",
  noun: "event key",
  fields: EVENT_KEY_FIELDS,
  filters: {},
  columns: ["id", "name", "kinds", "lastFour", "createdAt"],
};
