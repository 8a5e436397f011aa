import {
  choiceSchema,
  flagSchema,
  integerSchema,
  listSchema,
  objectSchema,
  openSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
  timeSchema,
} from "../../base/json_schema.ts";
import { MATCH_KINDS } from "../../ratelimit/forecast/explain_walk.ts";
import { ALGORITHMS } from "../../ratelimit/rule_source.ts";
import { UNIT_NAMES } from "../../ratelimit/units.ts";
import { LIMIT_EVENTS, REDACTIONS } from "../../ratelimit/rule_events.ts";
import { QUOTA_EXAMPLE } from "./quota_schema.ts";
import type { AdministrationOperations, OperationAnswer, Operations } from "../../webhooks/api/operation.ts";

function textAnswer(description: string, example: string): OperationAnswer {
  return { description, schema: { type: "string" }, example, mediaType: "text/plain" };
}

/** Health and this document. */
export const PORT_OPERATIONS = {
  "GET /healthcheck": {
    id: "getHealth",
    summary: "Show whether the service is healthy",
    credentials: [],
    answers: {
      200: textAnswer("`OK`, and one line for each component with a note.", "OK"),
      503: textAnswer("One line for each failing component.", "sigterm: the service is stopping\n"),
    },
  },
  "GET /livez": {
    id: "getLiveness",
    summary: "Show that the process responds",
    credentials: [],
    answers: { 200: textAnswer("`OK`", "OK") },
  },
  "GET /openapi.json": {
    id: "getOpenApi",
    summary: "Show this document",
    description:
      "Served on the ports of the administration API; 404 without an administration token in the settings.",
    credentials: [],
    answers: {
      200: {
        description: "This document.",
        schema: openSchema("An OpenAPI document."),
        example: { openapi: "3.1.0" },
      },
    },
  },
} as const satisfies Operations;

/** The caller of the administration. */
export const CALLER_OPERATIONS = {
  "GET /whoami": {
    id: "getCaller",
    role: "read",
    summary: "Show the name and the role of the token",
    answers: {
      200: {
        description: "The owner of the token.",
        schema: objectSchema({
          name: textSchema("The name in the audit log."),
          role: choiceSchema(["admin", "read"], "`read` allows only calls that change nothing."),
        }),
        example: { name: "alice", role: "admin" },
      },
    },
  },
} as const satisfies AdministrationOperations;

const ENTRY = objectSchema({ key: textSchema("The key."), value: textSchema("The value.") });

const AMOUNT: SchemaProperties = {
  requestsPerUnit: integerSchema("The limit."),
  unit: choiceSchema(UNIT_NAMES, "The unit of the window."),
  windowSeconds: integerSchema("The length of the window."),
  timezone: textSchema("The time zone of the calendar that windows follow, if they follow one."),
  algorithm: choiceSchema(ALGORITHMS, "Absent for a fixed window."),
  burst: integerSchema("Hits that a token bucket holds."),
  maxInFlight: integerSchema("The maximum in flight of a `concurrency` limit."),
  leaseSeconds: integerSchema("Lease of a concurrency limit, in seconds."),
  identifiedBy: textSchema("The key whose value names each hit in flight; absent if none does."),
};
const COUNTER: SchemaProperties = {
  cacheKey: textSchema("The name of the counter in the cache."),
  windowEnds: timeSchema("End time of a fixed window."),
  used: integerSchema("Hits that count now: in the window, taken from the bucket, or in flight."),
  remaining: integerSchema("Hits that can pass now."),
};

/** Schemas of the debug port, by name. */
export const DEBUG_SCHEMAS: SchemaProperties = {
  Explanation: objectSchema({
    domain: textSchema("The domain."),
    domainKnown: flagSchema("Whether the rules contain the domain."),
    at: timeSchema("The time that selects the windows."),
    counts: textSchema("`shown`, or the reason why they are not shown."),
    descriptors: listSchema(schemaOf("ExplainedDescriptor"), "In the order of the request."),
  }),
  ExplainedDescriptor: objectSchema({
    entries: listSchema(ENTRY, "The same as in the request."),
    levels: listSchema(schemaOf("ExplainedLevel"), "The levels of the rules, compared with the entries."),
    outcome: choiceSchema(["limited", "unlimited", "replaced", "none"], "Whether a limit applies."),
    why: textSchema("Human-readable reason."),
  }, {
    limit: objectSchema({
      override: flagSchema("Whether the limit is in the request."),
      unlimited: flagSchema("Whether the rule is unlimited."),
      shadowMode: flagSchema("Whether the rule is in shadow mode."),
      quotaMode: flagSchema("Whether the rule is in quota mode."),
      replaces: listSchema({ type: "string" }, "Names of the limits that it replaces."),
    }, {
      rule: textSchema("The full name of the rule."),
      name: textSchema("The name of the limit."),
      ...AMOUNT,
      events: listSchema(choiceSchema(LIMIT_EVENTS, "An event."), "Events that the rule reports."),
      eventsRedact: choiceSchema(REDACTIONS, "Content of events instead of values."),
    }),
    replacedBy: listSchema(
      objectSchema({
        descriptor: integerSchema("The index of the descriptor."),
        rule: textSchema("The rule that replaces this one."),
      }),
      "Rules that replace the limit.",
    ),
    ...COUNTER,
    windows: listSchema(
      objectSchema({}, { ...AMOUNT, ...COUNTER }),
      "The windows of a limit with several, in place of its amount, its key and its end.",
    ),
  }),
  ExplainedLevel: objectSchema({
    entry: ENTRY,
    rules: listSchema(
      objectSchema({
        rule: textSchema("The key and value of the rule."),
        by: choiceSchema(MATCH_KINDS, "Kind of comparison."),
        matches: flagSchema("Whether it matches."),
        chosen: flagSchema("Whether it is the most specific match."),
        why: textSchema("Human-readable reason."),
      }),
      "Rules of the key.",
    ),
    furtherRules: integerSchema("Number of further rules of the key."),
    otherKeys: listSchema({ type: "string" }, "Other keys of the level."),
    furtherKeys: integerSchema("Number of further keys of the level."),
  }),
};

const SETTING = objectSchema({
  name: textSchema("The environment variable."),
  group: textSchema("Section of the documentation."),
  source: textSchema("`environment`, `default`, or the variable that names the file of the value."),
  isSecret: flagSchema("Whether the value, or a part of it, is not shown."),
  doc: textSchema("Meaning of the setting."),
}, {
  value: textSchema(
    "The value, with `***` for the credentials in an address; absent without one, and for a secret.",
  ),
  whenUnset: textSchema("Behaviour without a value."),
});

/** The debug port, except for its web page. */
export const DEBUG_OPERATIONS = {
  "GET /": {
    id: "listDebugPaths",
    summary: "List the paths of the debug port",
    credentials: [],
    answers: { 200: textAnswer("One path per line.", "/rlconfig: the active rules\n") },
  },
  "GET /rlconfig": {
    id: "getRules",
    summary: "Show the active rules",
    answers: {
      200: textAnswer("One limit per line, sorted.", "shop.account: unit=MINUTE requests_per_unit=5\n"),
    },
  },
  "GET /stats": {
    id: "getStatistics",
    summary: "Show every counter and gauge",
    answers: {
      200: textAnswer("`name: value` per line, sorted.", "ratelimit.process.http_connections: 1\n"),
    },
  },
  "GET /settings": {
    id: "getSettings",
    summary: "Show every setting with its value and where the value came from",
    description: "Never shows a secret. Also accepts an administration token.",
    credentials: ["debug", "admin"],
    answers: {
      200: {
        description: "The settings.",
        schema: objectSchema({ settings: listSchema(SETTING, "In the order of the documentation.") }),
        example: {
          settings: [{
            name: "GRPC_PORT",
            group: "gRPC",
            source: "environment",
            isSecret: false,
            doc: "Port of gRPC.",
            value: "8081",
          }],
        },
      },
    },
  },
  "GET /explain": {
    id: "explainDecision",
    summary: "Explain which rule decides on a request and why",
    description:
      "Does not count hits. Also accepts an administration token, which adds `used` and `remaining`.",
    credentials: ["debug", "admin"],
    query: {
      domain: textSchema("The domain of the rules."),
      descriptors: textSchema("A descriptor such as `account=acme,path=/a`; repeat it for more descriptors."),
    },
    requiredQuery: ["domain", "descriptors"],
    answers: {
      200: {
        description: "The explanation.",
        schema: schemaOf("Explanation"),
        example: {
          domain: "shop",
          domainKnown: true,
          at: "2026-11-22T06:05:20Z",
          counts: "not shown: they require an administration token",
          descriptors: [],
        },
      },
    },
  },
  "GET /quotas": {
    id: "getQuotas",
    summary: "Show the buckets of quotas with their limits and clients",
    description:
      "Shows at most 1,000 buckets, 100 clients of each, and 5,000 clients in all, of all threads. " +
      "Also accepts an administration token.",
    credentials: ["debug", "admin"],
    query: {
      domain: textSchema("Only buckets of this domain."),
      bucket: textSchema("Only the bucket with these pairs, such as `account=acme,path=/a`, in any order."),
      text: textSchema("Only buckets with this text in their rule, or in a pair such as `account=acme`."),
      limit: integerSchema("The most buckets; 1000 when absent.", { minimum: 1, maximum: 1_000 }),
    },
    answers: {
      200: {
        description: "The buckets.",
        schema: objectSchema({
          buckets: integerSchema("Number of matching buckets, with those that are not shown."),
          quotas: listSchema(schemaOf("Quota"), "The buckets, with the most demand for their limit first."),
        }, { why: textSchema("Why some or all buckets are missing; absent if none are.") }),
        example: { buckets: 1, quotas: [QUOTA_EXAMPLE] },
      },
    },
  },
  "GET /debug/pprof/": {
    id: "listProfiles",
    summary: "List the profiles",
    answers: {
      200: textAnswer("One path per line.", "/debug/pprof/heap: statistics of the JavaScript heap\n"),
    },
  },
  "GET /debug/pprof/heap": {
    id: "getHeapProfile",
    summary: "Show statistics of the JavaScript heap",
    answers: { 200: textAnswer("`name: value` per line, in bytes.", "memory.rss: 104857600\n") },
  },
  "GET /debug/pprof/memory": {
    id: "getMemoryProfile",
    summary: "Show the memory of the process and of the machine",
    answers: { 200: textAnswer("`name: value` per line, in bytes.", "process.rss: 104857600\n") },
  },
  "GET /debug/pprof/profile": {
    id: "recordCpuProfile",
    summary: "Record a CPU profile",
    query: {
      seconds: integerSchema("Duration of the recording.", { minimum: 1, maximum: 300, default: 30 }),
    },
    answers: {
      200: {
        description: "A `.cpuprofile` file for Chrome's developer tools or VS Code.",
        schema: openSchema("A CPU profile."),
        example: { nodes: [], startTime: 0, endTime: 10_000_000 },
      },
    },
  },
} as const satisfies Operations;
