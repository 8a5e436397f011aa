import { assertEquals } from "#assert";
import { planHits } from "../../../../src/ratelimit/decision/plan.ts";
import { PLAIN_POLICY, rulesOf } from "../../../harness/service_fixture.ts";

const SHARED = 'value: "/api/*", share_threshold: true';
const SERVICE = '[{key: service, value: "svc/*", share_threshold: true, ' +
  "descriptors: [{key: endpoint, detailed_metric: true, L}]}]";
const VALUES = "[{key: route, value_to_metric: true, descriptors: " +
  "[{key: http_method, value_to_metric: true, descriptors: [{key: subject_id, L}]}]}]";

/** Cases beyond the vectors: entries of a request, its rules below domain `d`, and the metric key. */
const CASES: readonly [title: string, rules: string, entries: [string, string][], metricKey: string][] = [
  ["wildcard, shared", `[{key: p, ${SHARED}, L}]`, [["p", "/api/v1"]], "d.p_/api/*"],
  [
    "wildcard, shared with value",
    `[{key: p, ${SHARED}, value_to_metric: true, L}]`,
    [["p", "/api/v1"]],
    "d.p_/api/",
  ],
  [
    "wildcard, shared and detailed",
    `[{key: p, ${SHARED}, detailed_metric: true, L}]`,
    [["p", "/api/v1"]],
    "d.p_/api/",
  ],
  [
    "shared parent with value",
    `[{key: p, ${SHARED}, value_to_metric: true, descriptors: [{key: method, L}]}]`,
    [["p", "/api/v1"], ["method", "GET"]],
    "d.p_/api/.method",
  ],
  [
    "shared parent, detailed leaf",
    SERVICE,
    [["service", "svc/1"], ["endpoint", "get"]],
    "d.service_svc/.endpoint_get",
  ],
  [
    "shared parent, detailed leaf with an empty value",
    SERVICE,
    [["service", "svc/1"], ["endpoint", ""]],
    "d.service_svc/.endpoint",
  ],
  [
    "empty value of a parent",
    VALUES,
    [["route", ""], ["http_method", "GET"], ["subject_id", "123"]],
    "d.route.http_method_GET.subject_id",
  ],
  [
    "wildcard between",
    '[{key: user, value_to_metric: true, descriptors: [{key: action, value: "read*", value_to_metric: true, ' +
    "descriptors: [{key: resource, L}]}]}]",
    [["user", "alice"], ["action", "readfile"], ["resource", "doc"]],
    "d.user_alice.action_readfile.resource",
  ],
  ["expression", '[{key: v, value: {regex: "^v[0-9.]+$"}, L}]', [["v", "v1"]], "d.v_regex(^v[0-9.]+$)"],
  [
    "expression with value",
    "[{key: v, value: {regex: v}, value_to_metric: true, L}]",
    [["v", "v1"]],
    "d.v_v1",
  ],
  [
    "expression, detailed",
    "[{key: v, value: {regex: v}, detailed_metric: true, L}]",
    [["v", "v1"]],
    "d.v_v1",
  ],
  [
    "expression, shared with value",
    "[{key: v, value: {regex: v.*1}, share_threshold: true, value_to_metric: true, L}]",
    [["v", "v1"]],
    "d.v_regex(v.*1)",
  ],
  ["list", "[{key: v, value: {in: [a, b]}, L}]", [["v", "b"]], "d.v_in(a,b)"],
  ["list with value", "[{key: v, value: {in: [a, b]}, value_to_metric: true, L}]", [["v", "b"]], "d.v_b"],
  [
    "list, shared and detailed",
    "[{key: v, value: {in: [a, b]}, share_threshold: true, detailed_metric: true, L}]",
    [["v", "b"]],
    "d.v_in(a,b)",
  ],
  [
    "long list",
    `[{key: v, value: {in: [${"a".repeat(300)}, b]}, L}]`,
    [["v", "b"]],
    `d.v_in(${"a".repeat(61)}~sha256_c6ff4fc32fd5027ad2c60e4bd85c3015228c670ee584109b9785dc6a3e310689`,
  ],
  [
    "the parent's limit",
    "[{key: t, value_to_metric: true, L, descriptors: [{key: v, value_to_metric: true, fallback: parent}]}]",
    [["t", "1"], ["v", "b"]],
    "d.t_1",
  ],
  ["detailed wildcard", '[{key: w, value: "w*", detailed_metric: true, L}]', [["w", "w9"]], "d.w_w9"],
  ["detailed and value: detailed wins", "[{key: a, detailed_metric: true, value_to_metric: true, L}]", [[
    "a",
    "",
  ]], "d.a_"],
];

for (const [title, rules, entries, expected] of CASES) {
  Deno.test(`metric key: ${title}`, () => {
    const text = rules.replaceAll(/\bL\b/g, "rate_limit: {unit: minute, requests_per_unit: 5}");
    const loaded = rulesOf({ "r.yaml": `domain: d\ndescriptors: ${text}\n` });
    const descriptors = [{ entries: entries.map(([key, value]) => ({ key, value })) }];
    const context = { nowSeconds: 1_234, random: () => 0, policy: PLAIN_POLICY };
    const plan = planHits(loaded, { domain: "d", hitsAddend: 0, descriptors }, context);
    assertEquals(plan.descriptors.map(({ metricKey }) => metricKey), [expected]);
  });
}

/** Keys whose values are shown, and the metric key of a limit of a request. */
const REQUEST_LIMITS: readonly [keys: readonly string[] | undefined, metricKey: string][] = [
  [undefined, "d.zzz.q_1.user_ann"],
  [[], "d.zzz.q.user"],
  [["q", "zzz", "other"], "d.zzz.q_1.user"],
];

for (const [keys, expected] of REQUEST_LIMITS) {
  Deno.test(`metric key: a limit of the request with the values of ${keys ?? "all keys"}`, () => {
    const loaded = rulesOf({
      "r.yaml": "domain: d\ndescriptors: [{key: q, detailed_metric: true, RULE}]\n"
        .replace("RULE", "rate_limit: {unit: minute, requests_per_unit: 5}"),
    });
    const entries = [{ key: "zzz", value: "" }, { key: "q", value: "1" }, { key: "user", value: "ann" }];
    const limit = { requestsPerUnit: 3, unit: "MINUTE" as const };
    const descriptors = [{ entries, limit }, { entries: entries.slice(1, 2) }];
    const policy = { ...PLAIN_POLICY, requestLimitValues: keys === undefined ? undefined : new Set(keys) };
    const context = { nowSeconds: 1_234, random: () => 0, policy };
    const plan = planHits(loaded, { domain: "d", hitsAddend: 0, descriptors }, context);
    assertEquals(plan.descriptors.map(({ metricKey }) => metricKey), [expected, "d.q_1"]);
  });
}
