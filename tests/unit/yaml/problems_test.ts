import { assertEquals } from "#assert";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import { problemText } from "../../../src/base/problem.ts";

/** The problems of a file, one per line, each an error unless it says that it is a warning. */
function report(text: string): string[] {
  return readRuleFile("r.yaml", text).problems.map((problem) => {
    const severity = problem.severity === "error" ? "" : `${problem.severity} `;
    return severity + problemText(problem).replace(/^r\.yaml:/, "");
  });
}

/** A file with one rule; `line` is line 4 and is in the descriptor, at column 3. */
function rule(line: string): string {
  return `domain: d\ndescriptors:\n- key: k\n  ${line}\n`;
}

/** A file with one rule whose limit has these fields; they begin at line 4, column 16. */
function limit(fields: string): string {
  return rule(`rate_limit: {${fields}}`);
}

function test(
  name: string,
  cases: readonly (readonly [name: string, text: string, problems: readonly string[]])[],
): void {
  for (const [title, text, problems] of cases) {
    Deno.test(`${name}: ${title}`, () => assertEquals(report(text), problems));
  }
}

const EMPTY = "1:1: config file cannot have empty domain; the file is empty: begin with 'domain: a'";
const NO_DESCRIPTORS = "descriptors: there are no descriptors, so nothing in this domain is limited; " +
  "write 'descriptors: []' if that is meant";
const UNITS = "expected second, minute, hour, day, week, month, year";
const FAILURE = "4:21: descriptors[0].on_cache_failure: expected one of error, allow, deny, local";
const COUNT = "expected a whole number from 0 to 4294967295";
const MULTIPLIER = "expected a whole number from 1 to 4294967295";
const MISSING_COUNT = "expected a whole number from 0 to 4294967295 " +
  "(0 blocks every request), or 'unlimited: true'; got nothing";
test("yaml, the file", [
  ["empty", "", [EMPTY]],
  ["comment only", "# later\n", [EMPTY]],
  ["document mark only", "---\n", [EMPTY]],
  ["null", "~\n", [EMPTY]],
  ["list", "- domain: d\n", ["1:1: expected a mapping with domain and descriptors, got a list"]],
  ["text", "hello\n", ["1:1: expected a mapping with domain and descriptors, got 'hello'"]],
  ["tab as indentation", "domain: d\ndescriptors:\n\t- key: k\n", [
    "3:1: a tab is used as indentation; use spaces",
  ]],
  ["quote without end", "domain: d\ndescriptors: [\n  {key: 'k}\n]\n", [
    "5:1: not valid YAML: Missing closing 'quote",
  ]],
  ["list without end", "domain: [\ndescriptors: ]\n", [
    "2:1: not valid YAML: Flow sequence in block collection must be sufficiently indented and end with a ]",
  ]],
  ["list items that do not line up", "domain: d\ndescriptors:\n - key: a\n  - key: b\n", [
    "4:3: not valid YAML: All sequence items must start at the same column",
  ]],
  ["a field left of its rule", "domain: d\ndescriptors:\n  - key: k\n   rate_limit: {}\n", [
    "4:1: not valid YAML: Sequence item without - indicator; check the indentation of this line",
  ]],
  ["a field right of its rule", "domain: d\ndescriptors:\n  - key: k\n      rate_limit: {}\n", [
    "3:10: not valid YAML: Nested mappings are not allowed in compact mappings; " +
    "check the indentation of the next line",
  ]],
  ["second document", "domain: d\ndescriptors: []\n---\ndomain: e\n", [
    "3:1: a second document begins here; put it into a separate file",
  ]],
  ["descriptors absent", "domain: d\n", [`warning 1:1: ${NO_DESCRIPTORS}`]],
  ["descriptors null", "domain: d\ndescriptors:\n", [`warning 2:13: ${NO_DESCRIPTORS}`]],
  ["descriptors a mapping", "domain: d\ndescriptors: {key: k}\n", [
    "2:14: descriptors: expected a list, each item beginning with '-', got a mapping",
  ]],
  ["domain a list", "domain: [d]\ndescriptors: []\n", ["1:9: domain: expected a text, got a list"]],
]);

test("yaml, keys", [
  ["twice", "domain: d\ndescriptors: []\ndomain: e\n", [
    "3:1: domain: key 'domain' is given twice, first at r.yaml:1:1; keep one of them",
  ]],
  ["twice in metadata", rule("metadata: {a: 1, a: 1}\n  rate_limit: {unlimited: true}"), [
    "4:20: descriptors[0].metadata.a: key 'a' is given twice, first at r.yaml:4:14; keep one of them",
  ]],
  ["merge key twice", "domain: d\ndescriptors:\n- &a {key: k}\n- {<<: *a, <<: *a, value: v}\n", [
    "4:12: descriptors[1].<<: key '<<' is given twice, first at r.yaml:4:4; " +
    "merge a list instead, as in '<<: [*a, *b]'",
  ]],
  ["number", "domain: d\ndescriptors: []\n0.25: x\n", [
    "3:1: key is not of type string: 0.25; write a name, or put it in quotes",
  ]],
  ["nothing", "domain: d\ndescriptors: []\n? \n: x\n", [
    "3:3: key is not of type string: nothing; write a name, or put it in quotes",
  ]],
  ["list", "domain: d\ndescriptors: []\n[a]: x\n", [
    "3:1: key is not of type string: a list; write a name, or put it in quotes",
  ]],
  ["unknown, other letter case", "domain: d\ndescriptors: []\nDomain: d\n", [
    "3:1: unknown key 'Domain'; did you mean 'domain'?",
  ]],
  ["unknown, one letter short", rule("vale: q"), [
    "4:3: descriptors[0]: unknown key 'vale'; did you mean 'value'?",
  ]],
  ["unknown, camel case", rule("shadowMode: yes"), [
    "4:3: descriptors[0]: unknown key 'shadowMode'; did you mean 'shadow_mode'?",
  ]],
  ["unknown, the beginning of a key", limit("unit: day, requests_per_unit: 1, unlim: no"), [
    "4:49: descriptors[0].rate_limit: unknown key 'unlim'; did you mean 'unlimited'?",
  ]],
  ["unknown, nothing near", limit("unit: day, requests_per_unit: 1, replaces: [{rule: a, name: b}]"), [
    "4:61: descriptors[0].rate_limit.replaces[0]: unknown key 'rule'; expected one of name",
  ]],
  ["unknown, nothing near in a descriptor", rule("strategy: sliding"), [
    "4:3: descriptors[0]: unknown key 'strategy'; expected one of key, value, rate_limit, rate_limits, descriptors, " +
    "shadow_mode, quota_mode, on_cache_failure, detailed_metric, value_to_metric, share_threshold, fallback, " +
    "identifies, metadata, events, events_redact",
  ]],
  [
    "what becomes of a limit when the cache fails, at another level",
    limit(
      "unit: day, requests_per_unit: 1, on_cache_failure: allow",
    ),
    [
      "warning 4:49: descriptors[0].rate_limit.on_cache_failure: has no effect here; it belongs in a descriptor",
    ],
  ],
  ["at another level", limit("unit: day, requests_per_unit: 1, shadow_mode: true"), [
    "warning 4:49: descriptors[0].rate_limit.shadow_mode: has no effect here; it belongs in a descriptor",
  ]],
  ["at the level above", rule("algorithm: sliding_window"), [
    "warning 4:3: descriptors[0].algorithm: has no effect here; it belongs in 'rate_limit'",
  ]],
  ["at a level above two", rule("name: a"), [
    "warning 4:3: descriptors[0].name: has no effect here; " +
    "it belongs in 'rate_limit' or in an item of 'replaces'",
  ]],
]);

test("yaml, descriptors", [
  ["text in the list", "domain: d\ndescriptors: [a]\n", [
    "2:15: descriptors[0]: expected a mapping such as 'key: a', got 'a'",
  ]],
  ["list in the list", "domain: d\ndescriptors: [[{key: k}]]\n", [
    "2:15: descriptors[0]: expected a mapping such as 'key: a', got a list",
  ]],
  ["nothing in the list", "domain: d\ndescriptors:\n-\n", [
    "3:2: descriptors[0]: expected a mapping such as 'key: a', got nothing",
  ]],
  ["key a list", "domain: d\ndescriptors:\n- key: [k]\n", [
    "3:8: descriptors[0].key: expected a text, got a list",
  ]],
  ["value a mapping", rule("value: {a: b}"), [
    "4:11: descriptors[0].value: unknown key 'a'; expected one of regex, in",
  ]],
  ["nested descriptors null", rule("descriptors: ~"), []],
  ["nested descriptors a text", rule("descriptors: none"), [
    "4:16: descriptors[0].descriptors: expected a list, each item beginning with '-', got 'none'",
  ]],
  ["rate_limit null", rule("rate_limit:"), []],
  ["rate_limit a list", rule("rate_limit: [1]"), [
    "4:15: descriptors[0].rate_limit: expected a mapping, got a list; use rate_limits for several windows",
  ]],
  ["flag a text", rule("shadow_mode: sometimes"), [
    "4:16: descriptors[0].shadow_mode: expected true or false, got 'sometimes'",
  ]],
  ["flag in quotes", rule('quota_mode: "true"'), [
    '4:15: descriptors[0].quota_mode: expected true or false, got the quoted text "true"',
  ]],
  ["flag a number", rule("detailed_metric: 1"), [
    "4:20: descriptors[0].detailed_metric: expected true or false, got '1'",
  ]],
  ["flag in mixed letter case", rule("value_to_metric: tRUE"), [
    "4:20: descriptors[0].value_to_metric: expected true or false, got 'tRUE'",
  ]],
  ["no way to go on when the cache fails", rule("on_cache_failure: open"), [`${FAILURE}, got 'open'`]],
  ["a way to go on in upper case", rule("on_cache_failure: Allow"), [`${FAILURE}, got 'Allow'`]],
  ["a way to go on that is a flag", rule("on_cache_failure: true"), [`${FAILURE}, got 'true'`]],
  ["a way to go on that is a list", rule("on_cache_failure: [allow]"), [`${FAILURE}, got a list`]],
  ["flag a list", rule("share_threshold: []"), [
    "4:20: descriptors[0].share_threshold: expected true or false, got a list",
  ]],
]);

test("yaml, metadata", [
  ["text", rule("metadata: a"), ["4:13: descriptors[0].metadata: expected a mapping, got 'a'"]],
  ["list", rule("metadata: [a]"), ["4:13: descriptors[0].metadata: expected a mapping, got a list"]],
  ["key a number", rule("metadata: {a: {7: x}}\n  rate_limit: {unlimited: true}"), [
    "4:18: descriptors[0].metadata.a: key is not of type string: 7; write a name, or put it in quotes",
  ]],
  ["no number", rule("metadata: {a: .nan}"), [
    "4:17: descriptors[0].metadata.a: expected a value of JSON, got the number .nan; put it in quotes",
  ]],
  ["infinite", rule("metadata: {a: [-.inf]}"), [
    "4:18: descriptors[0].metadata.a[0]: expected a value of JSON, got the number -.inf; put it in quotes",
  ]],
  ["too large", rule("metadata: {a: 1e999}"), [
    "4:17: descriptors[0].metadata.a: expected a value of JSON, got the number 1e999; put it in quotes",
  ]],
  ["tag", rule("metadata: {a: !!binary aGk=}"), [
    "4:26: descriptors[0].metadata.a: unknown tag 'tag:yaml.org,2002:binary'; remove it",
  ]],
]);

test("yaml, limits", [
  ["no field", limit(""), [
    `4:15: descriptors[0].rate_limit.unit: invalid rate limit unit ''; ${UNITS}`,
    `4:15: descriptors[0].rate_limit.requests_per_unit: ${MISSING_COUNT}`,
  ]],
  ["unit missing", limit("requests_per_unit: 1"), [
    `4:15: descriptors[0].rate_limit.unit: invalid rate limit unit ''; ${UNITS}`,
  ]],
  ["unit unknown", limit("requests_per_unit: 1, unit: unknown"), [
    `4:44: descriptors[0].rate_limit.unit: invalid rate limit unit 'unknown'; ${UNITS}`,
  ]],
  ["unit plural", limit("requests_per_unit: 1, unit: days"), [
    `4:44: descriptors[0].rate_limit.unit: invalid rate limit unit 'days'; ${UNITS}`,
  ]],
  ["unit a list", limit("requests_per_unit: 1, unit: [day]"), [
    "4:44: descriptors[0].rate_limit.unit: expected a text, got a list",
  ]],
  ["unlimited with unit", limit("unlimited: true, unit: Day"), [
    "4:39: descriptors[0].rate_limit.unit: should not specify rate limit unit when unlimited; " +
    "remove unit, or unlimited",
  ]],
  ["unlimited with a unit that is none", limit("unlimited: yes, unit: x"), [
    "warning 4:38: descriptors[0].rate_limit.unit: rate limit unit 'x' has no effect with unlimited; remove it",
  ]],
  ["unlimited with requests_per_unit", limit("unlimited: true, requests_per_unit: 1"), []],
  ["unlimited with unit_multiplier", limit("unlimited: true, unit_multiplier: 2"), [
    "warning 4:50: descriptors[0].rate_limit.unit_multiplier: has no effect with unlimited; " +
    "remove it",
  ]],
  ["unlimited no flag", limit("unlimited: 1"), [
    "4:27: descriptors[0].rate_limit.unlimited: expected true or false, got '1'",
  ]],
  ["count absent", limit("unit: day"), [
    `4:15: descriptors[0].rate_limit.requests_per_unit: ${MISSING_COUNT}`,
  ]],
  ["count null", limit("unit: day, requests_per_unit: ~"), [
    `4:46: descriptors[0].rate_limit.requests_per_unit: ${MISSING_COUNT}`,
  ]],
  ["count negative", limit("unit: day, requests_per_unit: -1"), [
    `4:46: descriptors[0].rate_limit.requests_per_unit: ${COUNT}, got '-1'`,
  ]],
  ["count too large", limit("unit: day, requests_per_unit: 4294967296"), [
    `4:46: descriptors[0].rate_limit.requests_per_unit: ${COUNT}, got '4294967296'`,
  ]],
  ["count fractional", limit("unit: day, requests_per_unit: 1.5"), [
    `4:46: descriptors[0].rate_limit.requests_per_unit: ${COUNT}, got '1.5'`,
  ]],
  ["count quoted", limit('unit: day, requests_per_unit: "10"'), [
    `4:46: descriptors[0].rate_limit.requests_per_unit: ${COUNT}, got the quoted text "10"`,
  ]],
  ["count with a leading zero", limit("unit: day, requests_per_unit: 010"), [
    `4:46: descriptors[0].rate_limit.requests_per_unit: ${COUNT} without leading zeros, got '010'`,
  ]],
  ["count a text", limit("unit: day, requests_per_unit: many"), [
    `4:46: descriptors[0].rate_limit.requests_per_unit: ${COUNT}, got 'many'`,
  ]],
  ["multiplier 0", limit("unit: day, requests_per_unit: 1, unit_multiplier: 0"), [
    `4:66: descriptors[0].rate_limit.unit_multiplier: ${MULTIPLIER}, got '0'`,
  ]],
  ["multiplier too large", limit("unit: day, requests_per_unit: 1, unit_multiplier: 4294967296"), [
    `4:66: descriptors[0].rate_limit.unit_multiplier: ${MULTIPLIER}, got '4294967296'`,
  ]],
  ["replaces a mapping", limit("unlimited: true, replaces: {name: a}"), [
    "4:43: descriptors[0].rate_limit.replaces: expected a list, each item beginning with '-', " +
    "got a mapping",
  ]],
  ["replaces a text in the list", limit("unlimited: true, replaces: [a]"), [
    "4:44: descriptors[0].rate_limit.replaces[0]: expected a mapping such as 'name: a', got 'a'",
  ]],
  ["replaces with an empty name", limit("unlimited: true, replaces: [{name: ''}]"), [
    "4:51: descriptors[0].rate_limit.replaces[0]: should not have an empty replaces entry; " +
    "write the name of a rule, such as 'name: a'",
  ]],
  ["replaces without a name", limit("unlimited: true, replaces: [{}]"), [
    "4:44: descriptors[0].rate_limit.replaces[0]: should not have an empty replaces entry; " +
    "write the name of a rule, such as 'name: a'",
  ]],
]);

/** The problem of a number in the place of a text. */
function odd(at: string, path: string, written: string): string {
  return `${at}: ${path}: expected a text, got the number '${written}'; put it in quotes`;
}

test("yaml, numbers in place of texts", [
  ["domain fractional", "domain: 1.5\ndescriptors: []\n", [odd("1:9", "domain", "1.5")]],
  ...["1.5", "1e3", "1.", ".5", "-.5", "1_0.5", ".inf", "-.Inf", ".nan", "089"].map((written) =>
    [`key ${written}`, `domain: d\ndescriptors:\n- key: ${written}\n`, [
      odd("3:8", "descriptors[0].key", written),
    ]] as const
  ),
  ...["99999999999999999999", "9223372036854775808", "-9223372036854775809", "0xffffffffffffffff"].map((
    written,
  ) =>
    [`key beyond 64 bits ${written}`, `domain: d\ndescriptors:\n- key: ${written}\n`, [
      odd("3:8", "descriptors[0].key", written),
    ]] as const
  ),
  ["name of a limit", limit("unlimited: true, name: 1.5"), [
    odd("4:39", "descriptors[0].rate_limit.name", "1.5"),
  ]],
  ["name in replaces", limit("unlimited: true, replaces: [{name: 1.5}]"), [
    odd("4:51", "descriptors[0].rate_limit.replaces[0].name", "1.5"),
  ]],
  ["unit", limit("unit: 1.5, requests_per_unit: 1"), [odd("4:22", "descriptors[0].rate_limit.unit", "1.5")]],
  ["unit with unlimited", limit("unlimited: true, unit: 1.5"), [
    odd("4:39", "descriptors[0].rate_limit.unit", "1.5"),
  ]],
]);

/** The warning for a key of descriptors that is in `rate_limit: {unlimited: true, …}`. */
function misplaced(key: string): string {
  return `warning 4:33: descriptors[0].rate_limit.${key}: has no effect here; it belongs ` +
    (key === "descriptors" ? "at the top of the file or in a descriptor" : "in a descriptor");
}

test("yaml, below a key without effect", [
  ["a fraction", limit("unlimited: true, shadow_mode: 1.5"), [
    misplaced("shadow_mode"),
    "4:46: descriptors[0].rate_limit.shadow_mode: expected a 64-bit integer, got '1.5'; " +
    "remove it, or put it in quotes",
  ]],
  ["an integer beyond 64 bits", limit("unlimited: true, key: 99999999999999999999"), [
    misplaced("key"),
    "4:38: descriptors[0].rate_limit.key: expected a 64-bit integer, got '99999999999999999999'; " +
    "remove it, or put it in quotes",
  ]],
  ["a fraction as value", limit("unlimited: true, value: 1.5"), [misplaced("value")]],
  ["anything in metadata", limit("unlimited: true, metadata: {a: [1.5, {b: c}]}"), [misplaced("metadata")]],
  ["a list of texts", limit("unlimited: true, descriptors: [a, b]"), [
    misplaced("descriptors"),
    "4:47: descriptors[0].rate_limit.descriptors[0]: expected a mapping, got 'a'",
    "4:50: descriptors[0].rate_limit.descriptors[1]: expected a mapping, got 'b'",
  ]],
  ["an unknown key", limit("unlimited: true, descriptors: [{keyy: 1}]"), [
    misplaced("descriptors"),
    "4:48: descriptors[0].rate_limit.descriptors[0]: unknown key 'keyy'; did you mean 'key'?",
  ]],
  [
    "everything at some depth",
    limit("unlimited: true, descriptors: [{key: a, value: 1.5, rate_limit: {name: 2.5}}]"),
    [
      misplaced("descriptors"),
      "4:87: descriptors[0].rate_limit.descriptors[0].rate_limit.name: " +
      "expected a 64-bit integer, got '2.5'; remove it, or put it in quotes",
    ],
  ],
  ["nothing", limit("unlimited: true, descriptors: [{key: a, metadata: {b: 1.5}}]"), [
    misplaced("descriptors"),
  ]],
]);

Deno.test("yaml: all problems of a file are reported", () => {
  const text =
    "domain: d\ndescriptors:\n- key: [k]\n  shadow_mode: 2\n- b\n- key: c\n  rate_limit: {unit: x}\n";
  assertEquals(report(text), [
    "3:8: descriptors[0].key: expected a text, got a list",
    "4:16: descriptors[0].shadow_mode: expected true or false, got '2'",
    "5:3: descriptors[1]: expected a mapping such as 'key: a', got 'b'",
    `7:22: descriptors[2].rate_limit.unit: invalid rate limit unit 'x'; ${UNITS}`,
    `7:15: descriptors[2].rate_limit.requests_per_unit: ${MISSING_COUNT}`,
  ]);
});

Deno.test("yaml: beyond 1,000 problems the rest is counted", () => {
  const problems = report(`domain: d\ndescriptors:\n${"- a\n".repeat(1_500)}`);
  assertEquals([problems.length, problems.at(-1)], [
    1_001,
    "1003:3: 500 more errors are not shown; correct these first",
  ]);
});
