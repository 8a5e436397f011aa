import { assertEquals, assertNotEquals } from "#assert";
import { planHits } from "../../../../src/ratelimit/decision/plan.ts";
import { parseDescriptorText } from "../../../../src/ratelimit/request.ts";
import { loadRules, PLAIN_POLICY, rulesOf } from "../../../harness/service_fixture.ts";
import { problemText } from "../../../../src/base/problem.ts";

const CONTEXT = { nowSeconds: 1_234, random: () => 0, policy: PLAIN_POLICY };
const limit = (requests: number) => `rate_limit: {unit: minute, requests_per_unit: ${requests}}`;
const RULES = `
- {key: v, value: exact1, ${limit(1)}}
- {key: v, value: {in: [a, b.c, "1.50"]}, ${limit(2)}}
- {key: v, value: "w*", ${limit(3)}}
- {key: v, value: {regex: "^[vw][0-9]+$"}, ${limit(4)}}
- {key: v, value: {regex: "[0-9]$"}, share_threshold: true, ${limit(5)}}
- {key: v, value: {in: [s, t]}, share_threshold: true, ${limit(6)}}
- {key: v, ${limit(7)}}
- key: tenant
  ${limit(8)}
  descriptors:
  - {key: path, value: /free}
  - {key: path, value: "/up*", ${limit(9)}}
  - key: path
    fallback: parent
    descriptors:
    - {key: method, value: PUT, ${limit(10)}}
    - {key: method, fallback: parent}
`;

function planned(rules: string, text: string): string {
  const entries = parseDescriptorText(text);
  if (typeof entries === "string") throw new Error(entries);
  const loaded = rulesOf({ "r.yaml": `domain: d\ndescriptors:${rules}` });
  const { descriptors: [one] } = planHits(
    loaded,
    { domain: "d", hitsAddend: 0, descriptors: [{ entries }] },
    CONTEXT,
  );
  return one?.limit === undefined ? "none" : `${one.limit.requestsPerUnit} ${one.hit?.key} ${one.metricKey}`;
}

/** The limit of a descriptor, its counter and the name of its statistics. */
const CASES: readonly (readonly [text: string, planned: string])[] = [
  ["v=exact1", "1 d_v_exact1_1200 d.v_exact1"],
  ["v=a", "2 d_v_a_1200 d.v_in(a,b.c,1.50)"],
  ["v=b.c", "2 d_v_b.c_1200 d.v_in(a,b.c,1.50)"],
  ["v=1.50", "2 d_v_1.50_1200 d.v_in(a,b.c,1.50)"],
  ["v=w1", "3 d_v_w1_1200 d.v_w*"],
  ["v=v12", "4 d_v_v12_1200 d.v_regex(^[vw][0-9]+$)"],
  [
    "v=xv12",
    `5 d_v_regex([0-9]$)~sha256_4d6111ec1a2e903460e0a631867fbae1b70978178d045ee77911496beccff468_1200 d.v_regex([0-9]$)`,
  ],
  [
    "v=s",
    `6 d_v_in(s,t)~sha256_84ddf17090047a165a82ed2627ac59c4892f3ac87111facdbd781aca7b669ab0_1200 d.v_in(s,t)`,
  ],
  [
    "v=t",
    `6 d_v_in(s,t)~sha256_84ddf17090047a165a82ed2627ac59c4892f3ac87111facdbd781aca7b669ab0_1200 d.v_in(s,t)`,
  ],
  ["v=", "7 d_v__1200 d.v"],
  ["v=other", "7 d_v_other_1200 d.v"],
  // 1,024 bytes are the longest value that an expression is tried for.
  [
    `v=${"x".repeat(1_023)}1`,
    `5 d_v_regex([0-9]$)~sha256_4d6111ec1a2e903460e0a631867fbae1b70978178d045ee77911496beccff468_1200 d.v_regex([0-9]$)`,
  ],
  [`v=${"x".repeat(1_024)}1`, `7 d_v_${"x".repeat(1_024)}1_1200 d.v`],
  [`v=${"ä".repeat(512)}1`, `7 d_v_${"ä".repeat(512)}1_1200 d.v`],
  ["tenant=t", "8 d_tenant_t_1200 d.tenant"],
  ["tenant=t,path=/free", "none"],
  ["tenant=t,path=/up1", "9 d_tenant_t_path_/up1_1200 d.tenant.path_/up*"],
  ["tenant=t,path=/", "8 d_tenant_t_1200 d.tenant"],
  ["tenant=t,path=", "8 d_tenant_t_1200 d.tenant"],
  ["tenant=t,path=/,method=PUT", "10 d_tenant_t_path_/_method_PUT_1200 d.tenant.path.method_PUT"],
  ["tenant=t,path=/,method=GET", "8 d_tenant_t_1200 d.tenant"],
  ["tenant=t,path=/up1,method=GET", "none"],
  ["tenant=t,other=x", "none"],
];

for (const [text, expected] of CASES) {
  Deno.test(`several values: the counter of ${text.slice(0, 40)}`, () => {
    assertEquals(planned(RULES, text), expected);
  });
}

Deno.test("several values: no value and no other rule has the counter of a shared expression or list", () => {
  const rule = (level: string) => `${level}, share_threshold: true, ${limit(1)}`;
  const keyOf = (rules: string, text: string) => planned(rules, text).split(" ")[1] ?? "";
  const shared = keyOf(`\n- {key: v, ${rule('value: {regex: "^a"}')}}\n`, "v=a1");
  const [, text = ""] = /^d_v_(.*)_1200$/.exec(shared) ?? [];
  // A client sends what the counter is named by.
  const value = keyOf(`\n- {key: v, ${limit(1)}}\n`, `v=${text}`);
  // The same texts with other limits between keys and values.
  const list = keyOf(`\n- {key: v, ${rule("value: {in: [^a, a]}")}}\n`, "v=a");
  const joined = keyOf(`\n- {key: a_b, ${rule("value: {regex: c}")}}\n`, "a_b=c");
  const nested = keyOf(
    `\n- {key: a, value: b_x, descriptors: [{key: y, ${rule("value: {regex: c}")}}]}\n`,
    "a=b_x,y=c",
  );
  const other = keyOf(
    `\n- {key: a, value: b, descriptors: [{key: x_y, ${rule("value: {regex: c}")}}]}\n`,
    "a=b,x_y=c",
  );
  assertEquals(new Set([shared, value, list, joined, nested, other]).size, 6);
  assertNotEquals(text, "");
});

function manyExpressions(count: number): string {
  return Array.from({ length: count }, (_, index) => `{key: k, value: {regex: "^a${index}$"}}`).join("; ");
}

/** Rules of one level, and their problems. */
const PROBLEMS: readonly (readonly [rules: string, ...problems: string[]])[] = [
  [
    "{key: k, value: {regex: '('}}",
    "r.yaml:3:27: descriptors[0].value.regex: expected a regular expression of RE2, got '(': missing closing ) at character 1; correct it",
  ],
  [
    "{key: k, value: {regex: a(?!b)}}",
    "r.yaml:3:27: descriptors[0].value.regex: expected a regular expression of RE2, got 'a(?!b)': invalid or unsupported Perl syntax at character 2; correct it",
  ],
  [
    "{key: k, value: {regex: '*a'}}",
    "r.yaml:3:27: descriptors[0].value.regex: expected a regular expression of RE2, got '*a': '*' repeats the character before it; use a wildcard, such as 'value: \"v*\"', or write '.*' for any characters",
  ],
  [
    "{key: k, value: {regex: /api/*}}",
    "r.yaml:3:27: descriptors[0].value.regex: expected a regular expression of RE2, got '/api/*': '*' repeats the character before it; use a wildcard, such as 'value: \"v*\"', or write '.*' for any characters",
  ],
  [
    "{key: k, value: {regex: ''}}",
    "r.yaml:3:27: descriptors[0].value.regex: expected a regular expression such as '^v[0-9]+$', got nothing",
  ],
  ["{key: k, value: {regex: [a]}}", "r.yaml:3:27: descriptors[0].value.regex: expected a text, got a list"],
  [
    "{key: k, value: {regex: ~}}",
    "r.yaml:3:27: descriptors[0].value.regex: expected a regular expression such as '^v[0-9]+$', got nothing",
  ],
  [
    "{key: k, value: {regex: 'a{1000}b'}}",
    "r.yaml:3:27: descriptors[0].value.regex: expected a regular expression of RE2, got 'a{1000}b': it has more than 1000 steps, with each repetition by a count as often as it counts; correct it",
  ],
  [
    "{key: k, value: {}}",
    "r.yaml:3:19: descriptors[0].value: expected 'regex: EXPRESSION' or 'in: [VALUE, VALUE]', got neither",
  ],
  [
    "{key: k, value: {regex: a, in: [b]}}",
    "r.yaml:3:19: descriptors[0].value: expected 'regex: EXPRESSION' or 'in: [VALUE, VALUE]', got both; use one rule for each",
  ],
  [
    "{key: k, value: {regexp: a}}",
    "r.yaml:3:20: descriptors[0].value: unknown key 'regexp'; did you mean 'regex'?",
  ],
  [
    "{key: k, value: {regex: a, flags: i}}",
    "r.yaml:3:30: descriptors[0].value: unknown key 'flags'; expected one of regex, in",
  ],
  [
    "{key: k, value: {in: []}}",
    "r.yaml:3:24: descriptors[0].value.in: expected at least one value; write '[VALUE, VALUE]', or remove the rule",
  ],
  [
    "{key: k, value: {in: ~}}",
    "r.yaml:3:24: descriptors[0].value.in: expected at least one value; write '[VALUE, VALUE]', or remove the rule",
  ],
  [
    "{key: k, value: {in: a}}",
    "r.yaml:3:24: descriptors[0].value.in: expected a list, each item beginning with '-', got 'a'",
  ],
  [
    "{key: k, value: {in: [a, b, a]}}",
    "r.yaml:3:31: descriptors[0].value.in[2]: duplicate value 'a'; remove one of them",
  ],
  [
    "{key: k, value: {in: ['', ~, [a], {b: c}]}}",
    'r.yaml:3:25: descriptors[0].value.in[0]: expected a text, got the quoted text ""',
    "r.yaml:3:29: descriptors[0].value.in[1]: expected a text, got nothing",
    "r.yaml:3:32: descriptors[0].value.in[2]: expected a text, got a list",
    "r.yaml:3:37: descriptors[0].value.in[3]: expected a text, got a mapping",
  ],
  [
    "{key: k, value: {in: [a, 'b*']}}",
    "r.yaml:3:28: descriptors[0].value.in[1]: '*' has no meaning in a list, but found 'b*'; use one rule with this wildcard",
  ],
  [
    "{key: k, value: {in: [a, b]}}; {key: k, value: b}",
    "r.yaml:4:3: descriptors[1]: duplicate value 'b' of the key 'k'; it is already in the rule at r.yaml:3:3; remove one",
  ],
  [
    "{key: k, value: b}; {key: k, value: {in: [a, b]}}",
    "r.yaml:4:3: descriptors[1].value.in[1]: duplicate value 'b' of the key 'k'; it is already in the rule at r.yaml:3:3; remove one",
  ],
  [
    "{key: k, value: {in: [a, b]}}; {key: k, value: {in: [b, c]}}",
    "r.yaml:4:3: descriptors[1].value.in[0]: duplicate value 'b' of the key 'k'; it is already in the rule at r.yaml:3:3; remove one",
  ],
  [
    "{key: k, value: {regex: a}}; {key: k, value: {regex: a}}",
    "r.yaml:4:3: descriptors[1].value.regex: duplicate expression of the key 'k'; it is already in the rule at r.yaml:3:3; remove one",
  ],
  ["{key: k, value: {regex: a}}; {key: j, value: {regex: a}}; {key: k, value: a}; {key: k, value: regex(a)}"],
  [
    manyExpressions(18),
    "r.yaml:19:3: descriptors[16].value.regex: expected at most 16 expressions for the key 'k' in one list; combine some of them, as in '^(a|b)$', or use a list or a wildcard",
  ],
  [
    '{key: k, value: {regex: "[ab]{400}0"}}; {key: k, value: {regex: "[ab]{400}1"}}; {key: k, value: {regex: "[ab]{400}2"}}',
    "r.yaml:5:3: descriptors[2].value.regex: the expressions for the key 'k' in this list have more than 1000 steps, with each repetition by a count as often as it counts; use smaller counts, or a list or a wildcard",
  ],
  [
    "{key: k, fallback: parent}",
    "r.yaml:3:3: descriptors[0].fallback: requires a parent, but this rule is at the first level; remove it",
  ],
  [
    "{key: k, rate_limit: {unit: day, requests_per_unit: 1}, descriptors: [{key: j, value: a, fallback: parent}]}",
    "r.yaml:3:73: descriptors[0].descriptors[0].fallback: is for values without a rule, but this rule has a value; remove one of them",
  ],
  [
    "{key: k, rate_limit: {unit: day, requests_per_unit: 1}, descriptors: [{key: j, value: {in: [a]}, fallback: parent}]}",
    "r.yaml:3:73: descriptors[0].descriptors[0].fallback: is for values without a rule, but this rule has a value; remove one of them",
  ],
  [
    "{key: k, rate_limit: {unit: day, requests_per_unit: 1}, descriptors: [{key: j, fallback: parent, rate_limit: {unit: day, requests_per_unit: 1}}]}",
    "r.yaml:3:73: descriptors[0].descriptors[0].fallback: takes the limit of the parent, but this rule has a rate_limit; remove one of them",
  ],
  [
    "{key: k, descriptors: [{key: j, fallback: parent}]}",
    "r.yaml:3:26: descriptors[0].descriptors[0].fallback: requires a rate_limit of the parent at r.yaml:3:3; add one there, or remove fallback",
  ],
  [
    "{key: k, rate_limit: {unit: day, requests_per_unit: 1}, descriptors: [{key: j, fallback: root}]}",
    "r.yaml:3:92: descriptors[0].descriptors[0].fallback: expected one of parent, got 'root'",
  ],
  [
    "{key: k, rate_limit: {unit: day, requests_per_unit: 1}, descriptors: [{key: j, fallback: parent, shadow_mode: true, events: [over_limit]}]}",
    "r.yaml:3:100: descriptors[0].descriptors[0].shadow_mode: has no effect without a rate_limit at this level, and nested descriptors do not inherit it; move it next to a rate_limit, or remove it",
    "r.yaml:3:73: descriptors[0].descriptors[0].events: requires a rate_limit; add one, or remove events",
  ],
  [
    "{key: k, rate_limit: {fallback: parent, unit: day, requests_per_unit: 1}}",
    "r.yaml:3:25: descriptors[0].rate_limit.fallback: has no effect here; it belongs in a descriptor",
  ],
];

for (const [rules, ...expected] of PROBLEMS) {
  Deno.test(`several values: ${rules.slice(0, 60)} has its problems`, () => {
    const text = rules.split("; ").map((rule) => `- ${rule}\n`).join("");
    const { problems } = loadRules({ "r.yaml": `domain: d\ndescriptors:\n${text}` });
    assertEquals(problems.map(problemText), expected);
  });
}
