import { assertEquals } from "@std/assert";
import type { Decision } from "../../../src/ratelimit/decision.ts";
import type { Policy } from "../../../src/ratelimit/policy.ts";
import type { Descriptor } from "../../../src/ratelimit/request.ts";
import { ServiceFixture } from "../../harness/service_fixture.ts";

const RULES = `
domain: d
descriptors:
- key: k
  rate_limit: {unit: minute, requests_per_unit: 2}
- key: five
  rate_limit: {unit: minute, unit_multiplier: 5, requests_per_unit: 1}
- key: free
  rate_limit: {unlimited: true, name: free}
- key: white
- key: parent
  descriptors:
  - key: child
    rate_limit: {unit: hour, requests_per_unit: 1}
- key: shadow
  shadow_mode: true
  rate_limit: {unit: minute, requests_per_unit: 0}
- key: base
  rate_limit: {unit: minute, requests_per_unit: 1, name: base}
- key: over
  rate_limit: {unit: minute, requests_per_unit: 9, replaces: [{name: base}, {name: free}, {name: nobody}]}
- key: zero
  rate_limit: {unit: second, requests_per_unit: 0}
- key: q1
  quota_mode: true
  rate_limit: {unit: minute, requests_per_unit: 0}
- key: q2
  quota_mode: true
  rate_limit: {unit: minute, requests_per_unit: 1}
- key: a
  value: "x*"
  rate_limit: {unit: minute, requests_per_unit: 3}
- key: a
  value: xy
- key: a_b
  value: c
  rate_limit: {unit: minute, requests_per_unit: 3}
`;

/** `key=value` pairs as a descriptor. */
function descriptor(text: string, more: Partial<Descriptor> = {}): Descriptor {
  const entries = text.split(",").map((pair) => {
    const [key = "", value = ""] = pair.split("=");
    return { key, value };
  });
  return { entries, ...more };
}

/** A decision in short: the overall code, then for each descriptor code, limit, remaining and reset. */
function short(decision: Decision): string[] {
  const statuses = decision.statuses.map(({ code, currentLimit: limit, limitRemaining, secondsUntilReset }) =>
    limit === undefined
      ? `${code} ${limitRemaining}`
      : `${code} ${limit.requestsPerUnit}/${limit.unit} ${limitRemaining} ${secondsUntilReset}s`
  );
  return [decision.overallCode, ...statuses];
}

/** What is asked, call after call, and the last answer. The clock stands 20 s after a full minute. */
const CASES: readonly [title: string, calls: Descriptor[][], last: string[], policy?: Partial<Policy>][] = [
  ["within the limit", [[descriptor("k=v")]], ["OK", "OK 2/MINUTE 1 40s"]],
  ["exactly at the limit", [[descriptor("k=v", { hitsAddend: 2 })]], ["OK", "OK 2/MINUTE 0 40s"]],
  ["over the limit", [[descriptor("k=v", { hitsAddend: 3 })]], ["OVER_LIMIT", "OVER_LIMIT 2/MINUTE 0 40s"]],
  [
    "values are counted apart",
    [[descriptor("k=v", { hitsAddend: 3 })], [descriptor("k=w")]],
    ["OK", "OK 2/MINUTE 1 40s"],
  ],
  ["zero hits check", [[descriptor("k=v", { hitsAddend: 2 })], [descriptor("k=v", { hitsAddend: 0 })]], [
    "OK",
    "OK 2/MINUTE 0 40s",
  ]],
  ["hits given back", [
    [descriptor("k=v", { hitsAddend: 2 })],
    [descriptor("k=v", { hitsAddend: 1, isNegativeHits: true })],
  ], ["OK", "OK 2/MINUTE 1 40s"]],
  ["a window of several units", [[descriptor("five=v")]], ["OK", "OK 1/MINUTE 0 100s"]],
  ["unlimited", [[descriptor("free=v")]], ["OK", "OK 4294967295"]],
  ["no rule", [[descriptor("other=v")]], ["OK", "OK 0"]],
  ["whitelisted", [[descriptor("white=v")]], ["OK", "OK 0"]],
  ["placeholder", [[descriptor("parent=v")]], ["OK", "OK 0"]],
  ["nested", [[descriptor("parent=v,child=w")]], ["OK", "OK 1/HOUR 0 2800s"]],
  ["deeper than the rules", [[descriptor("k=v,more=w")]], ["OK", "OK 0"]],
  ["no entries", [[{ entries: [] }]], ["OK", "OK 0"]],
  ["shadow mode", [[descriptor("shadow=v")]], ["OK", "OK 0/MINUTE 0 40s"]],
  ["limit zero", [[descriptor("zero=v")]], ["OVER_LIMIT", "OVER_LIMIT 0/SECOND 0 1s"]],
  ["limit zero, zero hits", [[descriptor("zero=v", { hitsAddend: 0 })]], ["OK", "OK 0/SECOND 0 1s"]],
  ["replaced", [[descriptor("base=v", { hitsAddend: 5 }), descriptor("over=v")]], [
    "OK",
    "OK 0",
    "OK 9/MINUTE 8 40s",
  ]],
  ["not replaced alone", [[descriptor("base=v", { hitsAddend: 5 })]], [
    "OVER_LIMIT",
    "OVER_LIMIT 1/MINUTE 0 40s",
  ]],
  ["unlimited is never replaced", [[descriptor("free=v"), descriptor("over=v")]], [
    "OK",
    "OK 4294967295",
    "OK 9/MINUTE 8 40s",
  ]],
  ["override", [[descriptor("k=v", { limit: { requestsPerUnit: 7, unit: "WEEK" } })]], [
    "OK",
    "OK 7/WEEK 6 92800s",
  ]],
  ["override where no rule is", [[descriptor("z=v", { limit: { requestsPerUnit: 0, unit: "DAY" } })]], [
    "OVER_LIMIT",
    "OVER_LIMIT 0/DAY 0 6400s",
  ]],
  ["one of two over", [[descriptor("k=v"), descriptor("zero=v")]], [
    "OVER_LIMIT",
    "OK 2/MINUTE 1 40s",
    "OVER_LIMIT 0/SECOND 0 1s",
  ]],
  ["two identical descriptors", [[descriptor("k=v"), descriptor("k=v"), descriptor("k=v")]], [
    "OVER_LIMIT",
    "OK 2/MINUTE 1 40s",
    "OK 2/MINUTE 0 40s",
    "OVER_LIMIT 2/MINUTE 0 40s",
  ]],
  ["one quota of two over", [[descriptor("q1=v"), descriptor("q2=v")]], [
    "OK",
    "OVER_LIMIT 0/MINUTE 0 40s",
    "OK 1/MINUTE 0 40s",
  ]],
  ["all quotas over", [[descriptor("q1=v"), descriptor("free=v")]], [
    "OVER_LIMIT",
    "OVER_LIMIT 0/MINUTE 0 40s",
    "OK 4294967295",
  ]],
  ["global quota mode", [[descriptor("zero=v"), descriptor("k=v")]], [
    "OK",
    "OVER_LIMIT 0/SECOND 0 1s",
    "OK 2/MINUTE 1 40s",
  ], { quotaMode: true }],
  ["global quota mode, an unmatched descriptor passes", [[descriptor("zero=v"), descriptor("other=v")]], [
    "OK",
    "OVER_LIMIT 0/SECOND 0 1s",
    "OK 0",
  ], { quotaMode: true }],
  ["global shadow mode", [[descriptor("zero=v")]], ["OK", "OVER_LIMIT 0/SECOND 0 1s"], { shadowMode: true }],
  ["an exact rule without limit whitelists", [[descriptor("a=xy")]], ["OK", "OK 0"]],
  ["a wildcard", [[descriptor("a=xz")]], ["OK", "OK 3/MINUTE 2 40s"]],
  ["key and value are matched apart", [[descriptor("a=b_c")]], ["OK", "OK 0"]],
  ["key with an underscore", [[descriptor("a_b=c")]], ["OK", "OK 3/MINUTE 2 40s"]],
];

for (const [title, calls, last, policy] of CASES) {
  Deno.test(`decision: ${title}`, async () => {
    await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, policy: policy ?? {} });
    let answer: string[] = [];
    for (const descriptors of calls) {
      answer = short(await fixture.service.shouldRateLimit({ domain: "d", descriptors, hitsAddend: 0 }));
    }
    assertEquals(answer, last);
  });
}

Deno.test("decision: hits of the request count where a descriptor names none, and 0 means 1", async () => {
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES } });
  const descriptors = [descriptor("over=1"), descriptor("over=2", { hitsAddend: 4 })];
  const three = await fixture.service.shouldRateLimit({ domain: "d", descriptors, hitsAddend: 3 });
  const none = await fixture.service.shouldRateLimit({ domain: "d", descriptors, hitsAddend: 0 });
  assertEquals(three.statuses.map(({ limitRemaining }) => limitRemaining), [6, 5]);
  assertEquals(none.statuses.map(({ limitRemaining }) => limitRemaining), [5, 1]);
});

Deno.test("decision: a name of a rule is shown, an override has none", async () => {
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES } });
  const descriptors = [
    descriptor("base=v"),
    descriptor("base=v", { limit: { requestsPerUnit: 1, unit: "DAY" } }),
  ];
  const { statuses } = await fixture.service.shouldRateLimit({ domain: "d", descriptors, hitsAddend: 0 });
  assertEquals(statuses.map(({ currentLimit }) => currentLimit?.name), ["base", ""]);
});

Deno.test("decision: headers tell of the last one that is over, otherwise of the least remaining", async () => {
  const responseHeaders = { limit: "L", remaining: "M", reset: "R" };
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, policy: { responseHeaders } });
  const headers = async (...texts: string[]) => {
    const descriptors = texts.map((text) => descriptor(text));
    const answer = await fixture.service.shouldRateLimit({ domain: "d", descriptors, hitsAddend: 0 });
    return answer.responseHeadersToAdd.map(({ key, value }) => `${key}: ${value}`);
  };
  assertEquals(await headers("k=1", "over=1"), ["L: 2", "M: 1", "R: 40"]);
  assertEquals(await headers("over=1", "free=1"), ["L: 9", "M: 7", "R: 40"]);
  assertEquals(await headers("zero=1", "over=1", "zero=2"), ["L: 0", "M: 0", "R: 1"]);
  assertEquals(await headers("over=1", "shadow=1"), ["L: 0", "M: 0", "R: 40"]);
  assertEquals(await headers("five=1"), ["L: 1", "M: 0", "R: 100"]);
  assertEquals(await headers("free=1", "other=1"), []);
});
