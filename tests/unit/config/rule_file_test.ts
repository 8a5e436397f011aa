import { assert, assertEquals } from "#assert";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import type { DescriptorSource, DomainSource, RateLimitSource } from "../../../src/ratelimit/rule_source.ts";
import { problemText } from "../../../src/base/problem.ts";

/** The source of a file that has no problems. */
function read(text: string): DomainSource {
  const { source, problems } = readRuleFile("r.yaml", text);
  assertEquals(problems, []);
  assert(source !== undefined);
  return source;
}

function errors(text: string): string[] {
  return readRuleFile("r.yaml", text).problems.map(problemText);
}

function descriptor(
  fields: Partial<DescriptorSource> & { at: string; path: string; key: string },
): DescriptorSource {
  return {
    value: "",
    rateLimit: undefined,
    shadowMode: false,
    quotaMode: false,
    onCacheFailure: undefined,
    detailedMetric: false,
    valueToMetric: false,
    shareThreshold: false,
    identifies: false,
    metadata: undefined,
    events: undefined,
    match: undefined,
    fallback: undefined,
    descriptors: [],
    ...fields,
  };
}

function rateLimit(fields: Partial<RateLimitSource> & { at: string; path: string }): RateLimitSource {
  return {
    unlimited: false,
    unit: "MINUTE",
    requestsPerUnit: 5,
    unitMultiplier: 1,
    name: "",
    replaces: [],
    ...fields,
  };
}

const EVERY_FIELD = `
domain: shop
descriptors:
  - key: route
    value: /cart*
    share_threshold: true
    value_to_metric: On
    descriptors:
      - key: user
        shadow_mode: TRUE
        quota_mode: y
        on_cache_failure: local
        detailed_metric: yes
        metadata: {team: carts, tags: [a, 1, 2.5, 0x10, 0b11, true, ~, "2026-11-21"], __proto__: {x: yes}}
        rate_limit:
          unit: Week
          requests_per_unit: 1_000
          unit_multiplier: 2
          name: users
          replaces:
            - name: all
            - {name: 7}
  - key: health
    rate_limit: {unlimited: true}
`;

const EVERY_FIELD_READ: DomainSource = {
  at: "r.yaml:2:9",
  domain: "shop",
  descriptors: [
    descriptor({
      at: "r.yaml:4:5",
      path: "descriptors[0]",
      key: "route",
      value: "/cart*",
      shareThreshold: true,
      valueToMetric: true,
      descriptors: [
        descriptor({
          at: "r.yaml:9:9",
          path: "descriptors[0].descriptors[0]",
          key: "user",
          shadowMode: true,
          quotaMode: true,
          onCacheFailure: "local",
          detailedMetric: true,
          metadata: JSON.parse(
            '{"team": "carts", "tags": ["a", 1, 2.5, 16, 3, true, null, "2026-11-21"], "__proto__": {"x": true}}',
          ),
          rateLimit: rateLimit({
            at: "r.yaml:16:11",
            path: "descriptors[0].descriptors[0].rate_limit",
            unit: "WEEK",
            requestsPerUnit: 1000,
            unitMultiplier: 2,
            name: "users",
            replaces: [["r.yaml:21:15", "all"], ["r.yaml:22:15", "7"]].map(([at = "", name = ""], index) => {
              return { at, path: `descriptors[0].descriptors[0].rate_limit.replaces[${index}]`, name };
            }),
          }),
        }),
      ],
    }),
    descriptor({
      at: "r.yaml:23:5",
      path: "descriptors[1]",
      key: "health",
      rateLimit: rateLimit({
        at: "r.yaml:24:17",
        path: "descriptors[1].rate_limit",
        unlimited: true,
        unit: undefined,
        requestsPerUnit: 0,
      }),
    }),
  ],
};

Deno.test("yaml: every field, with its position", () => assertEquals(read(EVERY_FIELD), EVERY_FIELD_READ));

const VALUES: readonly (readonly [written: string, value: string])[] = [
  ["1.5", "1.5"],
  ["1.50", "1.50"],
  ["404", "404"],
  ["0x1F", "0x1F"],
  ["99999999999999999999", "99999999999999999999"],
  ["yes", "yes"],
  ["True", "True"],
  ["2026-11-21", "2026-11-21"],
  ["a b", "a b"],
  ["'it''s'", "it's"],
  ['"null"', "null"],
  ['"tab\\t"', "tab\t"],
  ["!!str 12", "12"],
  ["|-\n    block", "block"],
  ["''", ""],
  ["", ""],
  ["~", ""],
  ["null", ""],
];

for (const [written, value] of VALUES) {
  Deno.test(`yaml: value ${JSON.stringify(written)} is ${JSON.stringify(value)}`, () => {
    const { descriptors } = read(`domain: d\ndescriptors:\n- key: k\n  value: ${written}\n`);
    assertEquals(descriptors.map((one) => one.value), [value]);
  });
}

const TEXTS = "5 -5 +5 017 0b11 1_000 9223372036854775807 -9223372036854775808 yes 10.0.0.1".split(" ");

for (const written of TEXTS) {
  Deno.test(`yaml: key, domain and name ${written} are texts as written`, () => {
    const limit = `{unlimited: true, name: ${written}}`;
    const { domain, descriptors } = read(
      `domain: ${written}\ndescriptors:\n- key: ${written}\n  rate_limit: ${limit}\n`,
    );
    const texts = descriptors.map((one) => [one.key, one.rateLimit?.name]);
    assertEquals([domain, texts], [written, [[written, written]]]);
  });
}

const YES = "y Y yes Yes YES on On ON true True TRUE".split(" ");
const NO = [..."n N no No NO off Off OFF false False FALSE ~".split(" "), ""];

Deno.test("yaml: flags in every spelling", () => {
  const rules = [...YES, ...NO].map((written, index) =>
    `- {key: k${index}, shadow_mode: ${written}, rate_limit: {unlimited: true}}\n`
  );
  assertEquals(
    read(`domain: d\ndescriptors:\n${rules.join("")}`).descriptors.map((one) => one.shadowMode),
    [...YES.map(() => true), ...NO.map(() => false)],
  );
});

Deno.test("yaml: numbers and units in every spelling", () => {
  const spellings = ["0", "+7", "4294967295", "1_0", "0xff", "0o17", "0b11"];
  const units = ["second", "MINUTE", "Hour", "day", "week", "month", "yeaR"];
  const limits = [
    ...spellings.map((count) => `{unit: day, requests_per_unit: ${count}}`),
    ...units.map((unit) => `{unit: "${unit}", requests_per_unit: 1}`),
  ];
  const rules = limits.map((limit, index) => `- {key: k${index}, rate_limit: ${limit}}\n`).join("");
  const found = read(`domain: d\ndescriptors:\n${rules}`).descriptors.map((one) => one.rateLimit);
  assertEquals(found.slice(0, 7).map((limit) => limit?.requestsPerUnit), [0, 7, 4294967295, 10, 255, 15, 3]);
  assertEquals<unknown>(found.slice(7).map((limit) => limit?.unit), units.map((unit) => unit.toUpperCase()));
});

Deno.test("yaml: Windows line ends and a byte order mark change no position", () => {
  assertEquals(read("\uFEFFdomain: d\r\ndescriptors:\r\n- key: k\r\n"), {
    at: "r.yaml:1:9",
    domain: "d",
    descriptors: [descriptor({ at: "r.yaml:3:3", path: "descriptors[0]", key: "k" })],
  });
});

Deno.test("yaml: aliases stand at their use", () => {
  const text = `domain: d
descriptors:
- key: a
  rate_limit: &five {unit: minute, requests_per_unit: 5}
  descriptors: &below
  - key: x
- key: b
  rate_limit: *five
  descriptors: *below
`;
  const [, second] = read(text).descriptors;
  assertEquals(
    second,
    descriptor({
      at: "r.yaml:7:3",
      path: "descriptors[1]",
      key: "b",
      rateLimit: rateLimit({ at: "r.yaml:8:15", path: "descriptors[1].rate_limit" }),
      descriptors: [descriptor({ at: "r.yaml:9:16", path: "descriptors[1].descriptors[0]", key: "x" })],
    }),
  );
});

Deno.test("yaml: an anchor that is set again holds from there on", () => {
  const text = "domain: &a d\ndescriptors:\n- key: *a\n- key: &a e\n- key: *a\n  value: x\n";
  assertEquals(read(text).descriptors.map(({ key }) => key), ["d", "e", "e"]);
});

Deno.test("yaml: merge keys, where explicit keys win and of several sources the first", () => {
  const text = `domain: d
descriptors:
- key: a
  rate_limit: &a {unit: minute, requests_per_unit: 5, name: first}
- key: b
  rate_limit: {requests_per_unit: 6, <<: *a}
- key: c
  rate_limit:
    <<: [{unit: hour}, *a]
    name: third
- key: "<<"
`;
  assertEquals(read(text).descriptors.map(({ key, rateLimit }) => [key, rateLimit]), [
    ["a", rateLimit({ at: "r.yaml:4:18", path: "descriptors[0].rate_limit", name: "first" })],
    [
      "b",
      rateLimit({ at: "r.yaml:6:15", path: "descriptors[1].rate_limit", requestsPerUnit: 6, name: "first" }),
    ],
    ["c", rateLimit({ at: "r.yaml:9:5", path: "descriptors[2].rate_limit", unit: "HOUR", name: "third" })],
    ["<<", undefined],
  ]);
});

const HEAD = "domain: d\ndescriptors:\n";

const ALIAS_ERRORS: readonly (readonly [name: string, text: string, errors: string[]])[] = [
  ["an error in an alias stands at the use", `${HEAD}- &a {key: a, vale: 1}\n- *a\n`, [
    "r.yaml:3:15: descriptors[0]: unknown key 'vale'; did you mean 'value'?",
    "r.yaml:4:3: descriptors[1]: unknown key 'vale'; did you mean 'value'?",
  ]],
  [
    "an error in a merge stands at the merge",
    `${HEAD}- key: a\n  metadata: &a {b: .nan}\n- {key: b, metadata: {<<: *a}}\n`,
    [
      "r.yaml:4:20: descriptors[0].metadata.b: expected a value of JSON, got the number .nan; put it in quotes",
      "r.yaml:5:27: descriptors[1].metadata.b: expected a value of JSON, got the number .nan; put it in quotes",
    ],
  ],
  ["unknown", `${HEAD}- key: a\n  value: *b\n`, [
    "r.yaml:4:10: descriptors[0].value: unknown alias '*b'; write '&b' at an earlier value, " +
    "or put a text that begins with * in quotes",
  ]],
  ["before its anchor", `${HEAD}- key: *b\n- key: &b b\n`, [
    "r.yaml:3:8: descriptors[0].key: unknown alias '*b'; write '&b' at an earlier value, " +
    "or put a text that begins with * in quotes",
  ]],
  ["without a name", `${HEAD}- key: a\n  value: *\n`, [
    "r.yaml:4:10: an alias has no name; put a text that begins with * in quotes",
  ]],
  ["cyclic list", `domain: d\ndescriptors: &a\n- key: a\n  descriptors: *a\n`, [
    "r.yaml:4:16: descriptors[0].descriptors: alias '*a' is inside its own value; " +
    "use it outside of that value",
  ]],
  ["cyclic merge", `${HEAD}- &a\n  key: a\n  <<: *a\n`, [
    "r.yaml:5:7: descriptors[0].<<: alias '*a' is inside its own value; use it outside of that value",
  ]],
  ["merge of a text", `${HEAD}- {key: a, <<: b}\n`, [
    "r.yaml:3:16: descriptors[0]: '<<' takes a mapping or a list of mappings, such as '<<: *name'",
  ]],
  ["tag of our own", `${HEAD}- !rule {key: a}\n`, [
    "r.yaml:3:9: descriptors[0]: unknown tag '!rule'; remove it",
  ]],
  ["more values than aliases may stand for", bomb(), [
    "r.yaml:10:14: descriptors[0].metadata.a5[0][8][4][5][5][3]: aliases stand for more than 100000 values in this file; " +
    "use fewer",
  ]],
];

for (const [name, text, expected] of ALIAS_ERRORS) {
  Deno.test(`yaml, aliases and tags: ${name}`, () => assertEquals(errors(text), expected));
}

/** Each list holds ten times the previous one. */
function bomb(): string {
  const lists = Array.from(
    { length: 9 },
    (_, i) => `    a${i + 1}: &a${i + 1} [${Array(10).fill(`*a${i}`).join(", ")}]`,
  );
  return [`${HEAD}- key: a`, "  metadata:", "    a0: &a0 [x, x, x, x]", ...lists, ""].join("\n");
}

Deno.test("yaml: 150 levels are deep enough, 151 are not", () => {
  // The file, the list, the descriptor and the metadata are four.
  const tooDeep = (levels: number) =>
    errors(`${HEAD}- key: a\n  metadata: {a: ${"[".repeat(levels)}${"]".repeat(levels)}}\n`)
      .filter((line) => line.includes("lists and mappings"));
  assertEquals(tooDeep(146), []);
  assertEquals(tooDeep(147), [
    `r.yaml:4:163: descriptors[0].metadata.a${"[0]".repeat(146)}: ` +
    "lists and mappings are nested more than 150 levels deep; use fewer levels",
  ]);
});

Deno.test("yaml: metadata is at most 24 levels deep", () => {
  const nested = (levels: number) =>
    errors(
      `${HEAD}- key: a\n  rate_limit: {unlimited: true}\n  metadata: ${"{a: ".repeat(levels)}1${
        "}".repeat(levels)
      }\n`,
    );
  assertEquals(nested(24), []);
  assertEquals(nested(25), [
    `r.yaml:5:109: descriptors[0].metadata${".a".repeat(24)}: ` +
    "expected at most 24 levels of metadata; use fewer levels",
  ]);
});

const EXHAUSTING: readonly (readonly [name: string, text: string])[] = [
  ["lists in brackets", "[".repeat(20_000)],
  ["mappings in braces", "{a: ".repeat(20_000)],
  ["lists by dashes", "- ".repeat(20_000)],
  [
    "mappings by indentation",
    Array.from({ length: 3_000 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n"),
  ],
];

for (const [name, text] of EXHAUSTING) {
  Deno.test(`yaml: ${name} nested without end are one error`, () => {
    assertEquals(errors(text).map((line) => line.replace(/^r\.yaml:[0-9]+:[0-9]+: /, "")), [
      "lists and mappings are nested more than 150 levels deep; use fewer levels",
    ]);
  });
}
