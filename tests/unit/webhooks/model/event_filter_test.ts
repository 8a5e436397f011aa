import { assertEquals } from "#assert";
import { type JsonObject, parseJson } from "../../../../src/base/exact_json.ts";
import { MAX_CONDITION_BYTES } from "../../../../src/webhooks/model/condition.ts";
import {
  eventFilterProblem,
  filterMismatch,
  matchesFilter,
  payloadOf,
  readEventFilter,
  subscriptionMismatch,
} from "../../../../src/webhooks/model/event_filter.ts";

const PLAN = '{"customer.plan":["pro","team"]}';

/** Filter, data, and why it does not match. */
const MATCHES: readonly (readonly [title: string, filter: string, data: string, mismatch?: string])[] = [
  ["a listed text", PLAN, '{"customer":{"plan":"team"}}'],
  [
    "another text",
    PLAN,
    '{"customer":{"plan":"free"}}',
    'customer.plan is "free"; the filter expects "pro" or "team"',
  ],
  [
    "a missing path",
    PLAN,
    '{"customer":{}}',
    'customer.plan is missing in data; the filter expects "pro" or "team"',
  ],
  [
    "a value in the way",
    PLAN,
    '{"customer":"pro"}',
    'customer.plan is missing in data; the filter expects "pro" or "team"',
  ],
  ["an empty payload", PLAN, "{}", 'customer.plan is missing in data; the filter expects "pro" or "team"'],
  ["all paths match", '{"a":[1],"b":[true]}', '{"a":1,"b":true}'],
  ["one of two paths", '{"a":[1],"b":[true]}', '{"a":1,"b":false}', "b is false; the filter expects true"],
  ["null", '{"a":[null]}', '{"a":null}'],
  ["null is not a missing path", '{"a":[null]}', "{}", "a is missing in data; the filter expects null"],
  ["a number is no text", '{"a":["1"]}', '{"a":1}', 'a is 1; the filter expects "1"'],
  ["a flag is no text", '{"a":["true"]}', '{"a":true}', 'a is true; the filter expects "true"'],
  ["a big number to the digit", '{"a":[12345678901234567890]}', '{"a":12345678901234567890}'],
  [
    "another big number that a double rounds to the same",
    '{"a":[12345678901234567890]}',
    '{"a":12345678901234567891}',
    "a is 12345678901234567891; the filter expects 12345678901234567890",
  ],
  ["a number by its digits", '{"a":[1]}', '{"a":1.0}', "a is 1.0; the filter expects 1"],
  ["the digits of a fraction", '{"a":[1.10]}', '{"a":1.10}'],
  ["an escaped text", '{"a":["é"]}', '{"a":"\\u00e9"}'],
  [
    "a name of the prototype",
    '{"toString":["x"]}',
    "{}",
    'toString is missing in data; the filter expects "x"',
  ],
  ["an own name as of the prototype", '{"__proto__.a":[1]}', '{"__proto__":{"a":1}}'],
  [
    "no name of a prototype",
    '{"constructor.name":["Object"]}',
    "{}",
    'constructor.name is missing in data; the filter expects "Object"',
  ],
  ["a list is not entered", '{"a.0":["x"]}', '{"a":["x"]}', 'a.0 is missing in data; the filter expects "x"'],
  [
    "the length of a list is no field",
    '{"a.length":[1]}',
    '{"a":["x"]}',
    "a.length is missing in data; the filter expects 1",
  ],
  ["a list equals nothing", '{"a":["x"]}', '{"a":["x"]}', 'a is ["x"]; the filter expects "x"'],
  [
    "a big number has no fields",
    '{"a.rawJSON":["1.10"]}',
    '{"a":1.10}',
    'a.rawJSON is missing in data; the filter expects "1.10"',
  ],
  ["a number that is greater", '{"a":{"greater":9}}', '{"a":10}'],
  [
    "an equal number is not greater",
    '{"a":{"greater":10}}',
    '{"a":10}',
    "a is 10; the filter expects a number greater than 10",
  ],
  ["a number in a range", '{"a":{"greater":1.5,"less":2}}', '{"a":1.75}'],
  [
    "big numbers are compared to the digit",
    '{"a":{"less":12345678901234567891}}',
    '{"a":12345678901234567891}',
    "a is 12345678901234567891; the filter expects a number less than 12345678901234567891",
  ],
  ["a big number that is less", '{"a":{"less":12345678901234567891}}', '{"a":12345678901234567890}'],
  [
    "a text is not greater",
    '{"a":{"greater":1}}',
    '{"a":"2"}',
    'a is "2"; the filter expects a number greater than 1',
  ],
  [
    "a missing number",
    '{"a":{"less":1}}',
    "{}",
    "a is missing in data; the filter expects a number less than 1",
  ],
  ["an equal value", '{"a":{"equal":"x"}}', '{"a":"x"}'],
  ["a value that is not equal", '{"a":{"notEqual":"x"}}', '{"a":"y"}'],
  ["a missing value is not equal", '{"a":{"notEqual":"x"}}', "{}"],
  [
    "a value that should differ",
    '{"a":{"notEqual":"x"}}',
    '{"a":"x"}',
    'a is "x"; the filter expects anything but "x"',
  ],
  ["values of an operator", '{"a":{"in":["x","y"]}}', '{"a":"y"}'],
  ["a value that exists", '{"a":{"exists":true}}', '{"a":null}'],
  ["no value that exists", '{"a":{"exists":true}}', "{}", "a is missing in data; the filter expects a value"],
  ["no value", '{"a":{"exists":false}}', '{"b":1}'],
  [
    "a value that should be absent",
    '{"a":{"exists":false}}',
    '{"a":[]}',
    "a is []; the filter expects no value",
  ],
  ["one condition of any", '{"any":[{"a":[1]},{"b":[2]}]}', '{"b":2}'],
  [
    "no condition of any",
    '{"any":[{"a":[1]},{"b":[2]}]}',
    '{"a":2}',
    "none of the 2 conditions of any holds",
  ],
  ["all conditions", '{"all":[{"a":[1]},{"any":[{"b":[2]},{"c":[3]}]}]}', '{"a":1,"c":3}'],
  [
    "not all conditions",
    '{"all":[{"a":[1]},{"b":[2]}]}',
    '{"a":1}',
    "b is missing in data; the filter expects 2",
  ],
  ["a path that is named like a group", '{"any":["x"],"all.b":[1]}', '{"any":"x","all":{"b":1}}'],
  [
    "many and long values are shortened",
    '{"a":[1,2,3,4,5,6,7]}',
    `{"a":"${"x".repeat(100)}"}`,
    `a is "${"x".repeat(59)}…; the filter expects 1 or 2 or 3 or 4 or 5 or one of 2 further values`,
  ],
];

for (const [title, filter, data, mismatch] of MATCHES) {
  Deno.test(`filter: ${title}`, () => {
    const body = new TextEncoder().encode(`{"event":"a.b","data":${data}}`);
    assertEquals(filterMismatch(readEventFilter(filter), payloadOf(body)), mismatch);
    assertEquals(matchesFilter(readEventFilter(filter), payloadOf(body)), mismatch === undefined);
  });
}

Deno.test("filter: a value that no filter can have is not written as JSON to compare it", () => {
  const unreadable = {
    get field(): string {
      throw new Error("read");
    },
  };
  const filter = readEventFilter('{"a":["x"]}');
  assertEquals([{ a: unreadable }, { a: [unreadable] }].map((data) => matchesFilter(filter, data)), [
    false,
    false,
  ]);
});

Deno.test("filter: data that cannot be read matches no filter", () => {
  const deep = `{"event":"a.b","data":${"[1.10,".repeat(100_000)}1${"]".repeat(100_000)}}`;
  for (const text of ["", "no JSON", deep]) {
    const data = payloadOf(new TextEncoder().encode(text));
    assertEquals(
      filterMismatch(readEventFilter('{"a":[null]}'), data),
      "a is missing in data; the filter expects null",
    );
  }
});

const PATHS = "expected paths of at most 256 characters, names joined by dots";
const VALUES = "expected texts, numbers, true, false or null, of at most 256 characters";

const AN_OBJECT = "an object of equal, notEqual, in, exists, greater, less";

const PROBLEMS:
  readonly (readonly [title: string, filter: string, path?: string | undefined, reason?: string])[] = [
    ["texts, numbers, flags and null", '{"a.b":["x",1.10,true,null]}'],
    ["any characters in a name", '{"a b.ü-1":["x"]}'],
    ["no path", "{}", undefined, "expected 1 to 10 paths with their values"],
    [
      "too many paths",
      JSON.stringify(Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`p${index}`, [1]]))),
      undefined,
      "expected 1 to 10 paths with their values",
    ],
    ["an empty path", '{"":[1]}', undefined, PATHS],
    ["an empty name", '{"a..b":[1]}', undefined, PATHS],
    ["a dot at the end", '{"a.":[1]}', undefined, PATHS],
    ["a long path", `{"${"a".repeat(257)}":[1]}`, undefined, PATHS],
    ["a control character in a path", '{"a\\u0000":[1]}', undefined, PATHS],
    ["no list", '{"a":"pro"}', "a", `expected a list of 1 to 50 values, or ${AN_OBJECT}`],
    ["no operator", '{"a":{}}', "a", `expected a list of 1 to 50 values, or ${AN_OBJECT}`],
    [
      "an unknown operator",
      '{"a":{"gt":1}}',
      "a",
      "'gt' is no operator; expected equal, notEqual, in, exists, greater, less",
    ],
    ["a text for a number", '{"a":{"greater":"1"}}', "a", "expected a number for 'greater'"],
    ["a number for a flag", '{"a":{"exists":1}}', "a", "expected true or false for 'exists'"],
    ["a list for a value", '{"a":{"notEqual":[1]}}', "a", `${VALUES} for 'notEqual'`],
    ["an empty group", '{"any":[]}', "any", "expected a list of 1 to 50 values"],
    ["an empty condition of a group", '{"any":[{}]}', undefined, "expected 1 to 10 paths with their values"],
    ["a problem in a group", '{"all":[{"a":[1]},{"b":[]}]}', "b", "expected a list of 1 to 50 values"],
    [
      "a group that is nested too deep",
      '{"any":[{"all":[{"any":[{"all":[{"any":[{"a":[1]}]}]}]}]}]}',
      "any",
      "expected at most 50 conditions, nested at most 4 deep",
    ],
    [
      "too many paths in groups",
      JSON.stringify({ any: Array.from({ length: 11 }, () => ({ a: [1] })) }),
      undefined,
      "expected 1 to 10 paths with their values",
    ],
    ["an empty list", '{"a":[]}', "a", "expected a list of 1 to 50 values"],
    ["a long list", `{"a":[${Array(51).fill(1).join()}]}`, "a", "expected a list of 1 to 50 values"],
    ["an object as a value", '{"a":[{}]}', "a", VALUES],
    ["a list as a value", '{"a":[[1]]}', "a", VALUES],
    ["a long value", `{"a":["${"x".repeat(255)}"]}`, "a", VALUES],
    ["a long number", `{"a":[${"1".repeat(257)}]}`, "a", VALUES],
    ["a control character in a value", '{"a":["\\u001b"]}', "a", VALUES],
    [
      "too many bytes",
      JSON.stringify({ a: Array.from({ length: 50 }, (_, index) => `${index}${"x".repeat(200)}`) }),
      undefined,
      `expected at most ${MAX_CONDITION_BYTES} bytes`,
    ],
  ];

for (const [title, filter, path, reason] of PROBLEMS) {
  Deno.test(`filter: ${title} ${reason === undefined ? "is valid" : "is refused"}`, () => {
    const problem = eventFilterProblem(parseJson(filter) as JsonObject);
    assertEquals([problem?.path, problem?.reason], [path, reason]);
  });
}

Deno.test("subscription: the kind is compared before the filter, and only what is known", () => {
  const endpoint = { events: ["order.*"], filter: PLAN };
  const data = { customer: { plan: "free" } };
  assertEquals(subscriptionMismatch(endpoint, {}), undefined);
  assertEquals(subscriptionMismatch(endpoint, { kind: "order.paid" }), undefined);
  assertEquals(
    subscriptionMismatch(endpoint, { kind: "user.created", data }),
    "the endpoint does not subscribe to user.created",
  );
  assertEquals(
    subscriptionMismatch(endpoint, { data }),
    'customer.plan is "free"; the filter expects "pro" or "team"',
  );
  assertEquals(subscriptionMismatch({ ...endpoint, filter: undefined }, { data }), undefined);
});
