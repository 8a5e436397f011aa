import { assertEquals } from "#assert";
import type { Decision } from "../../../../src/ratelimit/decision.ts";
import type { Policy } from "../../../../src/ratelimit/decision/policy.ts";
import type { Descriptor } from "../../../../src/ratelimit/request.ts";
import { ServiceFixture } from "../../../harness/service_fixture.ts";

const RULES = `
domain: d
descriptors:
- {key: k, rate_limit: {unit: minute, requests_per_unit: 2, name: k}}
- {key: five, rate_limit: {unit: minute, unit_multiplier: 5, requests_per_unit: 1}}
- {key: free, rate_limit: {unlimited: true, name: free}}
- {key: over, rate_limit: {unit: minute, requests_per_unit: 9, replaces: [{name: free}]}}
- {key: zero, rate_limit: {unit: second, requests_per_unit: 0}}
- {key: a, value: "x*", rate_limit: {unit: minute, requests_per_unit: 3}}
- {key: a_b, value: c, rate_limit: {unit: minute, requests_per_unit: 3}}
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

/**
 * Cases beyond the conformance vectors: what is asked, call after call, and the last answer. The clock stands 20 s
 * after a full minute.
 */
const CASES: readonly [title: string, calls: Descriptor[][], last: string[], policy?: Partial<Policy>][] = [
  ["hits given back", [
    [descriptor("k=v", { hitsAddend: 2 })],
    [descriptor("k=v", { hitsAddend: 1, isNegativeHits: true })],
  ], ["OK", "OK 2/MINUTE 1 40s"]],
  ["a window of several units", [[descriptor("five=v")]], ["OK", "OK 1/MINUTE 0 100s"]],
  ["deeper than the rules", [[descriptor("k=v,more=w")]], ["OK", "OK 0"]],
  ["no entries", [[{ entries: [] }]], ["OK", "OK 0"]],
  ["limit zero, zero hits", [[descriptor("zero=v", { hitsAddend: 0 })]], ["OK", "OK 0/SECOND 0 1s"]],
  ["unlimited is never replaced", [[descriptor("free=v"), descriptor("over=v")]], [
    "OK",
    "OK 4294967295",
    "OK 9/MINUTE 8 40s",
  ]],
  ["global quota mode, an unmatched descriptor passes", [[descriptor("zero=v"), descriptor("other=v")]], [
    "OK",
    "OVER_LIMIT 0/SECOND 0 1s",
    "OK 0",
  ], { quotaMode: true }],
  ["global quota mode, an unlimited descriptor is none", [[descriptor("zero=v"), descriptor("free=v")]], [
    "OVER_LIMIT",
    "OVER_LIMIT 0/SECOND 0 1s",
    "OK 4294967295",
  ], { quotaMode: true }],
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

Deno.test("decision: a name of a rule is shown, an override has none", async () => {
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES } });
  const descriptors = [descriptor("k=v"), descriptor("k=v", { limit: { requestsPerUnit: 1, unit: "DAY" } })];
  const { statuses } = await fixture.service.shouldRateLimit({ domain: "d", descriptors, hitsAddend: 0 });
  assertEquals(statuses.map(({ currentLimit }) => currentLimit?.name), ["k", ""]);
});

const MOST = 4_294_967_295;

Deno.test("decision: a limit of a request has the counter and the window of a rule with its multiplier", async () => {
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES } });
  const own = (unitMultiplier?: number, unit: "MINUTE" | "YEAR" = "MINUTE") =>
    descriptor(`five=${unitMultiplier === MOST ? unit : "v"}`, {
      limit: { requestsPerUnit: 3, unit, unitMultiplier },
    });
  const descriptors = [own(5), descriptor("five=v"), own(5), own(), own(MOST), own(MOST, "YEAR")];
  const answer = await fixture.service.shouldRateLimit({ domain: "d", descriptors, hitsAddend: 0 });
  assertEquals(short(answer).slice(1), [
    "OK 3/MINUTE 2 100s",
    "OVER_LIMIT 1/MINUTE 0 100s",
    "OK 3/MINUTE 0 100s",
    "OK 3/MINUTE 2 40s",
    "OK 3/MINUTE 2 255998037700s",
    "OK 3/YEAR 2 313660000000s",
  ]);
});

Deno.test("decision: headers tell of the first of several quotas that are over, not of the last", async () => {
  const policy = { quotaMode: true, responseHeaders: { limit: "L", remaining: "M", reset: "R" } };
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, policy });
  const descriptors = [descriptor("zero=v"), descriptor("k=v", { hitsAddend: 3 }), descriptor("five=v")];
  const answer = await fixture.service.shouldRateLimit({ domain: "d", descriptors, hitsAddend: 0 });
  const headers = answer.responseHeadersToAdd.map(({ key, value }) => `${key}: ${value}`);
  assertEquals(headers, ["L: 0", "M: 0", "R: 1"]);
});
