import {
  choiceSchema,
  closedSchema,
  flagSchema,
  integerSchema,
  type JsonSchema,
  listSchema,
  objectSchema,
  openSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
  timeSchema,
} from "../../base/json_schema.ts";
import { ALGORITHMS } from "../../ratelimit/rule_source.ts";
import {
  MAX_REQUESTS_PER_UNIT,
  MAX_UNIT_MULTIPLIER,
  numberOfUnit,
  UNIT_NAMES,
} from "../../ratelimit/units.ts";
import { MAX_DESCRIPTORS, MAX_ENTRIES } from "../../ratelimit/decision/validate.ts";
import { MAX_PAIRS } from "../../ratelimit/rules/match_bucket.ts";
import type { AdministrationOperations, Operations } from "../../webhooks/api/operation.ts";

const UNIT = choiceSchema(UNIT_NAMES, "The unit of the window.");
const CODE = choiceSchema(["OK", "OVER_LIMIT"], "The decision.");

/** A count, which the JSON form of protocol buffers also allows as a text, and `null` as its default. */
function count(
  description: string,
  { minimum = 0, maximum }: { readonly minimum?: 0 | 1; readonly maximum?: number } = {},
): JsonSchema {
  const zero = minimum === 0 ? "0|" : "";
  const numbers = maximum === undefined ? "[1-9][0-9]*" : wholeNumbersTo(maximum);
  const texts = { type: "string", pattern: `^(?:${zero}${numbers})$` } as const;
  const numeric = { type: "integer", minimum, ...(maximum === undefined ? {} : { maximum }) } as const;
  return { anyOf: [numeric, texts, { type: "null" }], description };
}

/** A pattern of the whole numbers from 1 to a maximum, by their first digit that is lower. */
function wholeNumbersTo(maximum: number): string {
  const digits = String(maximum);
  const lower = [...digits].flatMap((digit, index) => {
    const least = index === 0 ? 1 : 0;
    if (Number(digit) <= least) return [];
    return [`${digits.slice(0, index)}[${least}-${Number(digit) - 1}][0-9]{${digits.length - index - 1}}`];
  });
  return [`[1-9][0-9]{0,${digits.length - 2}}`, ...lower, digits].join("|");
}

/** A field that may also be `null`, which is its default. */
function nullable(schema: JsonSchema): JsonSchema {
  return {
    anyOf: [schema, { type: "null" }],
    description: schema.description ?? "The limit of the request.",
  };
}

/** A unit by its name or its number in the protocol. */
const REQUEST_UNIT: JsonSchema = {
  anyOf: [UNIT, { type: "integer", enum: UNIT_NAMES.map(numberOfUnit) }],
  description: "The unit of the window.",
};

const LIMITED: SchemaProperties = {
  limited: { type: "boolean", enum: [true] },
  cacheKey: textSchema("The name of the counter in the cache."),
  limit: integerSchema("The limit; the maximum in flight of a `concurrency` limit.", { minimum: 0 }),
  windowSeconds: integerSchema("The length of the window, or of the lease."),
  used: integerSchema("Hits that count now: in the window, taken from the bucket, or in flight.", {
    minimum: 0,
  }),
  remaining: integerSchema("Hits that can pass now.", { minimum: 0 }),
  resetsAt: timeSchema("End time of the window; for another algorithm, when the full limit is available."),
};
const DESCRIPTOR = textSchema("The descriptor, as `key=value` joined by commas; absent in `windows`.");
const RULE: SchemaProperties = {
  descriptor: DESCRIPTOR,
  rule: textSchema("The full name of the rule; absent for a limit in the request."),
  algorithm: choiceSchema(ALGORITHMS, "Absent for a fixed window."),
  burst: integerSchema("Hits that a token bucket holds."),
  timezone: textSchema(
    "The time zone of the calendar that windows follow; absent for windows of one length.",
  ),
};
/** Of a rule with several windows. */
function windowsOf(schema: string): JsonSchema {
  return listSchema(
    schemaOf(schema),
    "All windows of the rule; the fields next to it are those of the tightest.",
  );
}

const UNLIMITED = objectSchema({
  limited: { type: "boolean", enum: [false] },
  reason: choiceSchema(
    ["unknown_domain", "no_rule", "unlimited", "replaced"],
    "Reason why no hits are counted.",
  ),
}, { descriptor: DESCRIPTOR, rule: textSchema("The full name of the rule.") });

const DOMAIN = textSchema("The domain of the rules.", { minLength: 1 });
const DESCRIPTORS = listSchema(schemaOf("Descriptor"), "Weir decides each descriptor separately.", {
  minItems: 1,
  maxItems: MAX_DESCRIPTORS,
});
const HITS = count(
  "Hits of descriptors without their own; 0 and absent mean 1, and more than 2^32 - 1 count as that.",
);
const BUCKET = listSchema(
  closedSchema({ key: textSchema("The key.", { minLength: 1 }) }, {
    value: nullable(textSchema("The value.")),
  }),
  "The pairs of a bucket of a quota, in any order, in place of descriptors.",
  { minItems: 1, maxItems: MAX_PAIRS },
);

/** Schemas of decisions and counters, by name. */
export const RATE_LIMIT_SCHEMAS: SchemaProperties = {
  RateLimitRequest: closedSchema({ domain: DOMAIN, descriptors: DESCRIPTORS }, { hitsAddend: HITS }),
  PeekRequest: objectSchema({ domain: DOMAIN }, {
    descriptors: DESCRIPTORS,
    hitsAddend: HITS,
    bucket: nullable(BUCKET),
  }, {
    additionalProperties: false,
    anyOf: [
      objectSchema({ descriptors: DESCRIPTORS }, { bucket: { type: "null" } }),
      objectSchema({ bucket: BUCKET }, { descriptors: { type: "null" } }),
    ],
  }),
  Descriptor: closedSchema({}, {
    entries: nullable(listSchema(schemaOf("Entry"), "Keys and values, matched level by level.", {
      maxItems: MAX_ENTRIES,
    })),
    limit: nullable(schemaOf("LimitOverride")),
    hitsAddend: count(
      "Hits of this descriptor; 0 reads the counter without adding hits, and more than 2^53 count as that.",
    ),
    isNegativeHits: nullable(flagSchema("Whether the hits are subtracted; default `false`.")),
  }),
  Entry: closedSchema({}, {
    key: nullable(textSchema("The key.")),
    value: nullable(textSchema("The value.")),
  }),
  LimitOverride: closedSchema({ unit: REQUEST_UNIT }, {
    requestsPerUnit: count("The limit; 0 and absent block every request.", {
      maximum: MAX_REQUESTS_PER_UNIT,
    }),
    unitMultiplier: count("The length of the window in units; default 1.", {
      minimum: 1,
      maximum: MAX_UNIT_MULTIPLIER,
    }),
  }),
  RateLimitResponse: objectSchema({
    overallCode: CODE,
    statuses: listSchema(schemaOf("DescriptorStatus"), "In the order of the request."),
  }, {
    responseHeadersToAdd: listSchema(
      objectSchema({ key: textSchema("The name.") }, { value: textSchema("The value.") }),
      "Present with `LIMIT_RESPONSE_HEADERS_ENABLED`, `LIMIT_ALL_DESCRIPTORS_HEADERS_ENABLED` or " +
        "`LIMIT_STANDARD_HEADERS_ENABLED` set to `true`.",
    ),
    dynamicMetadata: openSchema("Present with `RESPONSE_DYNAMIC_METADATA=true`."),
  }),
  DescriptorStatus: objectSchema({ code: CODE }, {
    currentLimit: objectSchema({}, {
      unit: choiceSchema(UNIT_NAMES, "The unit; absent with `concurrency`."),
      name: textSchema("The name of the limit."),
      requestsPerUnit: integerSchema("The limit, or the maximum in flight; absent if 0.", { minimum: 1 }),
    }),
    limitRemaining: integerSchema("Hits that can pass now; absent if 0.", { minimum: 1 }),
    durationUntilReset: textSchema(
      "Seconds until the window ends; of another algorithm, until one hit would pass after a refusal, or else until " +
        "all is free.",
      { pattern: "^[0-9]+s$" },
    ),
  }),
  Counter: {
    anyOf: [objectSchema(LIMITED, { ...RULE, unit: UNIT, windows: windowsOf("Counter") }), UNLIMITED],
  },
  ResetCounter: {
    anyOf: [
      objectSchema({ ...LIMITED, usedBefore: integerSchema("Hits before the reset.", { minimum: 0 }) }, {
        ...RULE,
        unit: UNIT,
        windows: windowsOf("ResetCounter"),
      }),
      UNLIMITED,
    ],
  },
};

const REQUEST_EXAMPLE = {
  domain: "shop",
  descriptors: [{ entries: [{ key: "account", value: "ann" }] }],
};
const BODY = { schema: schemaOf("RateLimitRequest"), example: REQUEST_EXAMPLE };
const COUNTER_EXAMPLE = {
  descriptor: "account=ann",
  limited: true,
  rule: "shop.account",
  cacheKey: "shop_account_ann_1795327500",
  limit: 5,
  unit: "MINUTE",
  windowSeconds: 60,
  used: 3,
  remaining: 2,
  resetsAt: "2026-11-22T06:06:00Z",
};
const LIMIT = { name: "uploads", requestsPerUnit: 5, unit: "MINUTE" };

/** The decision over HTTP. */
export const DECISION_OPERATIONS = {
  "POST /json": {
    id: "shouldRateLimit",
    summary: "Decide on a request",
    description:
      "The JSON form of `ShouldRateLimit`. Names can be in camelCase or snake_case; counts can be strings. `Content-Type` is not checked.",
    credentials: [],
    body: BODY,
    answers: {
      200: {
        description:
          "The request is within its limits. `responseHeadersToAdd` are headers of this response as well.",
        schema: schemaOf("RateLimitResponse"),
        example: {
          overallCode: "OK",
          statuses: [{ code: "OK", currentLimit: LIMIT, limitRemaining: 4, durationUntilReset: "39s" }],
        },
      },
      429: {
        description:
          "The request is over a limit. `responseHeadersToAdd` are headers of this response as well.",
        headers: {
          "Retry-After": integerSchema("Seconds until each refused descriptor has a hit again.", {
            minimum: 1,
          }),
        },
        schema: schemaOf("RateLimitResponse"),
        example: {
          overallCode: "OVER_LIMIT",
          statuses: [{ code: "OVER_LIMIT", currentLimit: LIMIT, durationUntilReset: "39s" }],
        },
      },
    },
  },
} as const satisfies Operations;

/** The counters of a request. */
export const COUNTER_OPERATIONS = {
  "POST /counters/peek": {
    id: "peekCounters",
    role: "read",
    summary: "Show the counters of a request, or the quota of a bucket",
    description: "Does not count hits. The quota is that of the clients of this instance.",
    body: { schema: schemaOf("PeekRequest"), example: REQUEST_EXAMPLE },
    answers: {
      200: {
        description: "One counter per descriptor, or the quota.",
        schema: {
          anyOf: [
            objectSchema({
              descriptors: listSchema(schemaOf("Counter"), "In the order of the request."),
            }),
            schemaOf("Quota"),
          ],
        },
        example: { descriptors: [COUNTER_EXAMPLE] },
      },
    },
  },
  "POST /counters/reset": {
    id: "resetCounters",
    role: "admin",
    summary: "Reset the counters of a request",
    description: "Deletes the counters of the current windows.",
    body: BODY,
    answers: {
      200: {
        description: "One counter per descriptor.",
        schema: objectSchema({
          descriptors: listSchema(schemaOf("ResetCounter"), "In the order of the request."),
          otherInstances: textSchema("Counters that the reset does not affect."),
        }),
        example: {
          descriptors: [{ ...COUNTER_EXAMPLE, used: 0, remaining: 5, usedBefore: 3 }],
          otherInstances: "The local cache of every other instance still denies the keys that it knows",
        },
      },
    },
  },
} as const satisfies AdministrationOperations;
