import { assert, assertEquals, assertThrows } from "#assert";
import { readRateLimitRequest, writeDecision } from "../../../../src/http/routes/rate_limit_json.ts";
import { JsonRequestError } from "../../../../src/http/server/json_reader.ts";
import type { Decision } from "../../../../src/ratelimit/decision.ts";
import type { Descriptor, RateLimitRequest } from "../../../../src/ratelimit/request.ts";

const EMPTY: RateLimitRequest = { domain: "", descriptors: [], hitsAddend: 0 };
const ENTRIES = { entries: [] };
const MOST = 2 ** 53;
const limitOf = (unit: "WEEK" | undefined) => ({ ...ENTRIES, limit: { requestsPerUnit: 0, unit } });

const multiplied = (unitMultiplier: number): Descriptor => ({
  ...ENTRIES,
  limit: { requestsPerUnit: 0, unit: "MINUTE", unitMultiplier },
});

/** Strings with bytes that are not UTF-8: as they are in the decoded body, and as they are read. */
const BYTES: readonly (readonly [name: string, source: string, expected: string])[] = [
  ["an escape of half a pair as its bytes", "a\\ud800b", "a\udced\udca0\udc80b"],
  ["an escape that is no byte as its bytes", "\\udcff", "\udced\udcb3\udcbf"],
  ["a byte as it came", "a\udcffb", "a\udcffb"],
  ["a byte behind an escape of half a pair", "\\ud83d\udc80", "\udced\udca0\udcbd\udc80"],
  ["a byte between escapes", "\\n\udc80\udcff\\u00e9", "\n\udc80\udcff\u00e9"],
  ["a whole pair of escapes", "\\ud83d\\udc80", "\u{1f480}"],
];

/** Descriptors as they are written and read. */
const DESCRIPTORS: readonly (readonly [name: string, text: string, read: Descriptor])[] = [
  [
    "nulls inside a descriptor",
    '{"entries":null,"limit":null,"hitsAddend":null,"isNegativeHits":null}',
    ENTRIES,
  ],
  ["2^53 as a number", '{"hitsAddend":9007199254740992}', { ...ENTRIES, hitsAddend: MOST }],
  ["2^53 as a string", '{"hitsAddend":"9007199254740992"}', { ...ENTRIES, hitsAddend: MOST }],
  ["2^53 + 1 as a string", '{"hits_addend":"9007199254740993"}', { ...ENTRIES, hitsAddend: MOST }],
  ["more hits than any limit", '{"hitsAddend":18446744073709551615}', { ...ENTRIES, hitsAddend: MOST }],
  ["WEEK by name", '{"limit":{"unit":"WEEK"}}', limitOf("WEEK")],
  ["WEEK by number", '{"limit":{"unit":7}}', limitOf("WEEK")],
  ["2 units", '{"limit":{"unit":2,"unitMultiplier":"2"}}', multiplied(2)],
  ["most units", '{"limit":{"unit":2,"unit_multiplier":4294967295}}', multiplied(4_294_967_295)],
  ["no number of units", '{"limit":{"unit":7,"unitMultiplier":null}}', limitOf("WEEK")],
  ...["", '"unit":null', '"unit":"UNKNOWN"', '"unit":0', '"unit":99', '"unit":-1'].map((unit) =>
    [`no unit in {${unit}}`, `{"limit":{${unit}}}`, limitOf(undefined)] as const
  ),
  ...BYTES.map(([name, value, read]) =>
    [name, `{"entries":[{"key":"${value}","value":"${value}"}]}`, {
      entries: [{ key: read, value: read }],
    }] as const
  ),
];

const READABLE: readonly (readonly [name: string, text: string, expected: RateLimitRequest])[] = [
  ["an empty object", "{}", EMPTY],
  ["nulls are defaults", '{"domain":null,"descriptors":null,"hitsAddend":null}', EMPTY],
  [
    "all fields",
    `{"domain":"d","hitsAddend":2,"descriptors":[
      {"entries":[{"key":"k","value":"v"},{"key":"l"}],"limit":{"requestsPerUnit":5,"unit":"HOUR"},
       "hitsAddend":"3","isNegativeHits":true},
      {"entries":[]}]}`,
    {
      domain: "d",
      descriptors: [
        {
          entries: [{ key: "k", value: "v" }, { key: "l", value: "" }],
          limit: { requestsPerUnit: 5, unit: "HOUR" },
          hitsAddend: 3,
          isNegativeHits: true,
        },
        ENTRIES,
      ],
      hitsAddend: 2,
    },
  ],
  [
    "snake_case",
    `{"hits_addend":1,"descriptors":[{"hits_addend":0,"is_negative_hits":false,
      "limit":{"requests_per_unit":"4294967295","unit":1}}]}`,
    {
      domain: "",
      descriptors: [{
        entries: [],
        limit: { requestsPerUnit: 4_294_967_295, unit: "SECOND" },
        hitsAddend: 0,
        isNegativeHits: false,
      }],
      hitsAddend: 1,
    },
  ],
  ["largest request hits", '{"hitsAddend":"4294967295"}', { ...EMPTY, hitsAddend: 4_294_967_295 }],
  ["more hits than any limit", '{"hitsAddend":4294967296}', { ...EMPTY, hitsAddend: 4_294_967_295 }],
  [
    "every escape, and text beyond ASCII",
    `{"dom\\u0061in":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\ude00 é😀\u2028\u007f"}`,
    { ...EMPTY, domain: `"\\/\b\f\n\r\t\u00e9\u{1f600} é😀\u2028\u007f` },
  ],
  [
    "white space everywhere",
    ` \t\r\n{ "domain"\n:\t"d" ,\r"descriptors" : [ { } , { "entries" : [ ] } ] } \n`,
    { domain: "d", descriptors: [ENTRIES, ENTRIES], hitsAddend: 0 },
  ],
  ["1.0 is whole", '{"hitsAddend":1.0}', { ...EMPTY, hitsAddend: 1 }],
  ["1e2 is whole", '{"hitsAddend":1e2}', { ...EMPTY, hitsAddend: 100 }],
  ["-0 is 0", '{"hitsAddend":-0}', EMPTY],
  ...DESCRIPTORS.map(([name, text, read]) =>
    [`${name}, of a descriptor`, `{"descriptors":[${text}]}`, { ...EMPTY, descriptors: [read] }] as const
  ),
];

for (const [name, text, expected] of READABLE) {
  Deno.test(`reads ${name}`, () => assertEquals(readRateLimitRequest(text), expected));
}

const WHOLE_32 = "must be a whole number from 0 to 4294967295";
const WHOLE = "must be a whole number of 0 or more";
const UNITS = "must be one of UNKNOWN, SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR, or a number";

const UNREADABLE: readonly (readonly [text: string, field: string, reason: string])[] = [
  ["", "body", "empty, expected a JSON object"],
  [" \n", "body", "empty, expected a JSON object"],
  ["}", "body", "not valid JSON at line 1 column 1"],
  ["\ufeff{}", "body", "not valid JSON at line 1 column 1"],
  ["\u00a0{}", "body", "not valid JSON at line 1 column 1"],
  ["nothing", "body", "not valid JSON at line 1 column 1"],
  ["{", "body", "not valid JSON at line 1 column 2"],
  ["{domain:1}", "body", "not valid JSON at line 1 column 2"],
  ["{,}", "body", "not valid JSON at line 1 column 2"],
  [`{"domain"}`, "body", "not valid JSON at line 1 column 10"],
  [`{"domain":}`, "body", "not valid JSON at line 1 column 11"],
  [`{"domain":nul}`, "body", "not valid JSON at line 1 column 11"],
  [`{"domain":nullify}`, "body", "not valid JSON at line 1 column 15"],
  [`{"domain":'d'}`, "body", "not valid JSON at line 1 column 11"],
  [`{"domain":"d`, "body", "not valid JSON at line 1 column 13"],
  [`{"domain":"d\\`, "body", "not valid JSON at line 1 column 13"],
  [`{"domain":"\\x"}`, "body", "not valid JSON at line 1 column 12"],
  [`{"domain":"\\u12g4"}`, "body", "not valid JSON at line 1 column 12"],
  [`{"domain":"a\tb"}`, "body", "not valid JSON at line 1 column 13"],
  [`{"domain":"d"`, "body", "not valid JSON at line 1 column 14"],
  [`{"domain":"d"]`, "body", "not valid JSON at line 1 column 14"],
  [`{"domain":"d"\n "hitsAddend":1}`, "body", "not valid JSON at line 2 column 2"],
  ["{\r\n}\r\n{}", "body", "not valid JSON at line 3 column 1"],
  ["{}x", "body", "not valid JSON at line 1 column 3"],
  [`{"hitsAddend":01}`, "body", "not valid JSON at line 1 column 16"],
  [`{"hitsAddend":1.}`, "body", "not valid JSON at line 1 column 16"],
  [`{"hitsAddend":1e}`, "body", "not valid JSON at line 1 column 16"],
  [`{"hitsAddend":+1}`, "body", "not valid JSON at line 1 column 15"],
  [`{"hitsAddend":-}`, "body", "not valid JSON at line 1 column 15"],
  [`{"hitsAddend":.5}`, "body", "not valid JSON at line 1 column 15"],
  [`{"hitsAddend":NaN}`, "body", "not valid JSON at line 1 column 15"],
  [`{"descriptors":[{},]}`, "body", "not valid JSON at line 1 column 20"],
  [`{"descriptors":[{}`, "body", "not valid JSON at line 1 column 19"],
  [`{"domain":"d",}`, "body", "not valid JSON at line 1 column 15"],
  [`{"domain":${"[".repeat(200_000)}`, "domain", "must be a string"],
  [`{"descriptors":${"[".repeat(200_000)}`, "descriptors[0]", "must be an object"],
  ["[]", "body", "must be an object"],
  ["null", "body", "must be an object"],
  ["7", "body", "must be an object"],
  [`{"extra":1}`, "extra", "unknown field"],
  [`{"__proto__":1}`, "__proto__", "unknown field"],
  [`{"${"x".repeat(65)}":1}`, `${"x".repeat(64)}…`, "unknown field"],
  [`{"\udcff":1}`, "\\xff", "unknown field"],
  [`{"domain":"d","domain":"e"}`, "domain", "must be given only once"],
  [`{"domain":"d","dom\\u0061in":"d"}`, "domain", "must be given only once"],
  [`{"descriptors":[],"descriptors":[]}`, "descriptors", "must be given only once"],
  [
    `{"descriptors":[{"entries":[{},{"key":"k","key":"k"}]}]}`,
    "descriptors[0].entries[1].key",
    "must be given only once",
  ],
  [
    `{"descriptors":[{"limit":{"requestsPerUnit":1,"requests_per_unit":1}}]}`,
    "descriptors[0].limit.requestsPerUnit",
    "must be given only once",
  ],
  [`{"Domain":"d"}`, "Domain", "unknown field"],
  [`{"domain":1}`, "domain", "must be a string"],
  [`{"hitsAddend":1,"hits_addend":1}`, "hitsAddend", "must be given only once"],
  [`{"hitsAddend":null,"hits_addend":1}`, "hitsAddend", "must be given only once"],
  [`{"hitsAddend":-1}`, "hitsAddend", WHOLE],
  [`{"hitsAddend":1.5}`, "hitsAddend", WHOLE],
  [`{"hitsAddend":"x"}`, "hitsAddend", WHOLE],
  [`{"hitsAddend":""}`, "hitsAddend", WHOLE],
  [`{"hitsAddend":true}`, "hitsAddend", WHOLE],
  [`{"hitsAddend":[]}`, "hitsAddend", WHOLE],
  [`{"descriptors":{}}`, "descriptors", "must be a list"],
  [`{"descriptors":[null]}`, "descriptors[0]", "must be an object"],
  [`{"descriptors":[{},7]}`, "descriptors[1]", "must be an object"],
  [`{"descriptors":[{"extra":1}]}`, "descriptors[0].extra", "unknown field"],
  [`{"descriptors":[{"hitsAddend":-1}]}`, "descriptors[0].hitsAddend", WHOLE],
  [`{"descriptors":[{"isNegativeHits":"true"}]}`, "descriptors[0].isNegativeHits", "must be true or false"],
  [`{"descriptors":[{"isNegativeHits":1}]}`, "descriptors[0].isNegativeHits", "must be true or false"],
  [`{"descriptors":[{"entries":[{"key":1}]}]}`, "descriptors[0].entries[0].key", "must be a string"],
  [`{"descriptors":[{"entries":[{"Key":""}]}]}`, "descriptors[0].entries[0].Key", "unknown field"],
  [`{"descriptors":[{"limit":5}]}`, "descriptors[0].limit", "must be an object"],
  [`{"descriptors":[{"limit":{"unit":"minute"}}]}`, "descriptors[0].limit.unit", UNITS],
  [`{"descriptors":[{"limit":{"unit":"2"}}]}`, "descriptors[0].limit.unit", UNITS],
  [
    `{"descriptors":[{"limit":{"unit":1.5}}]}`,
    "descriptors[0].limit.unit",
    "must be the name or the number of a unit",
  ],
  [
    `{"descriptors":[{"limit":{"unit":2147483648}}]}`,
    "descriptors[0].limit.unit",
    "must be the name or the number of a unit",
  ],
  ...["0", "4294967296", "1.5", '"x"', "true"].map((count) =>
    [
      `{"descriptors":[{"limit":{"unitMultiplier":${count}}}]}`,
      "descriptors[0].limit.unitMultiplier",
      "must be a whole number from 1 to 4294967295",
    ] as const
  ),
  [
    `{"descriptors":[{"limit":{"requestsPerUnit":4294967296}}]}`,
    "descriptors[0].limit.requestsPerUnit",
    WHOLE_32,
  ],
];

for (const [text, field, reason] of UNREADABLE) {
  Deno.test(`refuses ${text.slice(0, 60)}`, () => {
    const error = assertThrows(() => readRateLimitRequest(text));
    assert(error instanceof JsonRequestError);
    assertEquals(
      { field: error.field, reason: error.reason, message: error.message },
      { field, reason, message: `Cannot read "${field}": ${reason}` },
    );
  });
}

function times(count: number, text: string): string {
  return Array(count).fill(text).join(",");
}

const TINY = { key: "", value: "" };

const BEYOND_BOUNDS: typeof READABLE = [
  [
    "1,000 descriptors of 64 entries whole",
    `{"descriptors":[${times(1_000, `{"entries":[${times(64, "{}")}]}`)}]}`,
    { ...EMPTY, descriptors: Array(1_000).fill({ entries: Array(64).fill(TINY) }) },
  ],
  [
    "1,001 of 300,000 descriptors, and what stands behind them",
    `{"descriptors":[${times(300_000, "{}")}],"domain":"d"}`,
    { ...EMPTY, domain: "d", descriptors: Array(1_001).fill(ENTRIES) },
  ],
  [
    "65 of 300,000 entries, and what stands behind them",
    `{"descriptors":[{"entries":[${times(300_000, "{}")}],"hitsAddend":3},{}]}`,
    { ...EMPTY, descriptors: [{ entries: Array(65).fill(TINY), hitsAddend: 3 }, ENTRIES] },
  ],
  [
    "nothing of the brackets and strings beyond the bound",
    `{"descriptors":[{"entries":[${times(65, "{}")},{"key":"]}\\"]"},[[{"a":[]}]],7]}],"domain":"d"}`,
    { ...EMPTY, domain: "d", descriptors: [{ entries: Array(65).fill(TINY) }] },
  ],
];

for (const [name, text, expected] of BEYOND_BOUNDS) {
  Deno.test(`reads ${name}`, () => assertEquals(readRateLimitRequest(text), expected));
}

const KEYS = Array.from({ length: 80_000 }, (_, index) => `"k${index}":1`).join(",");

// A megabyte that is refused must cost next to nothing: while it is read, no other call is answered.
const HOSTILE: readonly (readonly [name: string, text: string, field: string])[] = [
  ["numbers in place of the request", `[${times(520_000, "1")}]`, "body"],
  ["numbers in place of descriptors", `{"descriptors":[${times(520_000, "1")}]}`, "descriptors[0]"],
  ["80,000 keys in the request", `{${KEYS}}`, "k0"],
  ["80,000 keys in a descriptor", `{"descriptors":[{${KEYS}}]}`, "descriptors[0].k0"],
  ["one key 80,000 times", `{${times(80_000, '"domain":null')}}`, "domain"],
  ["a nest of 500,000 lists", `{"descriptors":[{"limit":${"[".repeat(500_000)}`, "descriptors[0].limit"],
];

for (const [name, text, field] of HOSTILE) {
  Deno.test(`refuses ${name} within the first 100 characters`, () => {
    const error = assertThrows(() => readRateLimitRequest(text));
    assert(error instanceof JsonRequestError);
    assertEquals({ field: error.field, early: error.offset < 100 }, { field, early: true });
  });
}

Deno.test("refuses a list that never ends beyond the bound", () => {
  const text = `{"descriptors":[${times(1_001, "{}")},${"[".repeat(500_000)}`;
  const error = assertThrows(() => readRateLimitRequest(text));
  assertEquals(error.message, `Cannot read "body": not valid JSON at line 1 column ${text.length + 1}`);
});

const WRITTEN: readonly { name: string; decision: Decision; text: string }[] = [
  {
    name: "nothing",
    decision: { overallCode: "OK", statuses: [], responseHeadersToAdd: [], dynamicMetadata: undefined },
    text: `{"overallCode":"OK"}`,
  },
  {
    name: "an unmatched descriptor",
    decision: {
      overallCode: "OK",
      statuses: [{ code: "OK", limitRemaining: 0 }],
      responseHeadersToAdd: [],
      dynamicMetadata: undefined,
    },
    text: `{"overallCode":"OK","statuses":[{"code":"OK"}]}`,
  },
  {
    name: "everything, in the order of the message",
    decision: {
      dynamicMetadata: { a: { b: [1, null] } },
      responseHeadersToAdd: [{ value: "3", key: "RateLimit-Limit" }, { key: "x", value: "" }],
      statuses: [
        {
          secondsUntilReset: 58,
          limitRemaining: 2,
          currentLimit: { unit: "MINUTE", requestsPerUnit: 3, name: "n" },
          code: "OK",
        },
        {
          code: "OVER_LIMIT",
          limitRemaining: 0,
          currentLimit: { name: "", requestsPerUnit: 0, unit: "WEEK" },
          secondsUntilReset: 604_800,
        },
      ],
      overallCode: "OVER_LIMIT",
    },
    text: `{"overallCode":"OVER_LIMIT","statuses":[` +
      `{"code":"OK","currentLimit":{"name":"n","requestsPerUnit":3,"unit":"MINUTE"},"limitRemaining":2,` +
      `"durationUntilReset":"58s"},` +
      `{"code":"OVER_LIMIT","currentLimit":{"unit":"WEEK"},"durationUntilReset":"604800s"}],` +
      `"responseHeadersToAdd":[{"key":"RateLimit-Limit","value":"3"},{"key":"x"}],` +
      `"dynamicMetadata":{"a":{"b":[1,null]}}}`,
  },
  {
    name: "metadata that is there but empty",
    decision: { overallCode: "OK", statuses: [], responseHeadersToAdd: [], dynamicMetadata: {} },
    text: `{"overallCode":"OK","dynamicMetadata":{}}`,
  },
];

for (const { name, decision, text } of WRITTEN) {
  Deno.test(`writes ${name}`, () => assertEquals(writeDecision(decision), text));
}
