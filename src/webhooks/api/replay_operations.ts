import {
  flagSchema,
  integerSchema,
  objectSchema,
  schemaOf,
  type SchemaProperties,
} from "../../base/json_schema.ts";
import {
  DELIVERY_RETRY,
  ENDPOINT_REPLAY,
  MAX_RUNNING_REPLAYS,
  REPLAY_FIELDS,
  REPLAYS,
} from "../resources/replay.ts";
import { bodySchema, recordSchema } from "./field_schemas.ts";
import type { AdministrationOperations } from "./operation.ts";
import { EMPTY_BODY, listOperation, readOperation } from "./resource_operations.ts";

/** A dry run and a start count matches for so long. */
export const MAX_COUNT_MS = 5_000;

/** Schemas of replays, by name. */
export const REPLAY_SCHEMAS: SchemaProperties = { Replay: recordSchema(REPLAY_FIELDS) };

const EXAMPLE = {
  id: "7c0f6a2e-62a5-4a51-8c5e-0b8f3a0a9a01",
  source: "events",
  state: "running",
  count: 1_200,
  done: 400,
  endpointId: "2a408522-2e64-4252-85b6-a125e9aea5da",
  events: ["order.*"],
  since: "2026-11-20T00:00:00.000Z",
  until: "2026-11-22T02:43:02.047Z",
  createdAt: "2026-11-22T02:43:02.047Z",
};
const SHOWN = { description: "The replay.", schema: schemaOf("Replay"), example: EXAMPLE };
const STARTED = {
  200: {
    description: "The number of matches of a dry run.",
    schema: objectSchema({ count: integerSchema("The number of matching events or deliveries.") }, {
      isPartial: flagSchema(
        `True if counting took more than ${MAX_COUNT_MS / 1_000} s, so that there are more.`,
      ),
    }),
    example: { count: 1_200 },
  },
  202: { ...SHOWN, description: "The replay was started.", example: { ...EXAMPLE, done: 0 } },
};

/** Operations of `/replays`, and those that start one. */
export const REPLAY_OPERATIONS = {
  "POST /endpoints/:id/replay": {
    id: "replayEvents",
    role: "admin",
    summary: "Send events to an endpoint again",
    description:
      "Creates a new delivery for each stored event of the time range that the endpoint receives, and that matches `events` and `filter`. " +
      `It runs in the background, and at most ${MAX_RUNNING_REPLAYS} replays run at the same time.`,
    body: {
      schema: bodySchema(ENDPOINT_REPLAY),
      example: { since: "48h", events: ["order.*"], dryRun: true },
    },
    answers: STARTED,
    problems: ["too_many_replays", "store_full"],
  },
  "POST /deliveries/retry": {
    id: "retryDeliveries",
    role: "admin",
    summary: "Retry all deliveries that match a filter",
    description:
      `Runs in the background, as a replay whose \`source\` is \`deliveries\`. Deliveries of deleted endpoints and of erased events do not match.`,
    body: {
      schema: bodySchema(DELIVERY_RETRY),
      example: { event: "order.created", since: "48h" },
      isOptional: true,
    },
    answers: { ...STARTED, 202: { ...STARTED[202], example: { ...EXAMPLE, source: "deliveries", done: 0 } } },
    problems: ["too_many_replays"],
  },
  "GET /replays": listOperation(REPLAYS, "Replay", EXAMPLE),
  "GET /replays/:id": readOperation("getReplay", "Show a replay with its progress", SHOWN),
  "POST /replays/:id/cancel": {
    id: "cancelReplay",
    role: "admin",
    summary: "Cancel a replay",
    description: "Deliveries that it has created or retried stay as they are.",
    body: EMPTY_BODY,
    answers: {
      200: {
        ...SHOWN,
        description: "The cancelled replay.",
        example: { ...EXAMPLE, state: "cancelled", finishedAt: EXAMPLE.until },
      },
    },
    problems: ["already_ended"],
  },
} as const satisfies AdministrationOperations;
