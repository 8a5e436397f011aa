import { assertEquals } from "@std/assert";
import { planHits } from "../../../src/ratelimit/plan.ts";
import { PLAIN_POLICY, rulesOf } from "../../harness/service_fixture.ts";

/** Entries of a request, its rules below domain `d`, and the metric key. */
const CASES: readonly [title: string, rules: string, entries: [string, string][], metricKey: string][] = [
  ["key-only rule", "[{key: a, L}]", [["a", "1"]], "d.a"],
  ["value in the rule", "[{key: a, value: x, L}]", [["a", "x"]], "d.a_x"],
  [
    "value in the parent",
    "[{key: a, value: x, descriptors: [{key: b, L}]}]",
    [["a", "x"], ["b", "2"]],
    "d.a_x.b",
  ],
  [
    "value in the child",
    "[{key: a, descriptors: [{key: b, value: y, L}]}]",
    [["a", "1"], ["b", "y"]],
    "d.a.b_y",
  ],
  ["detailed", "[{key: a, detailed_metric: true, L}]", [["a", "1"]], "d.a_1"],
  [
    "detailed leaf under a plain parent",
    "[{key: a, descriptors: [{key: b, detailed_metric: true, L}]}]",
    [["a", "1"], ["b", "2"]],
    "d.a_1.b_2",
  ],
  [
    "detailed parent says nothing of its child",
    "[{key: a, detailed_metric: true, L, descriptors: [{key: c, L}]}]",
    [["a", "1"], ["c", "2"]],
    "d.a.c",
  ],
  ["wildcard", '[{key: p, value: "/api/*", L}]', [["p", "/api/v1"]], "d.p_/api/*"],
  [
    "wildcard with value",
    '[{key: p, value: "/api/*", value_to_metric: true, L}]',
    [["p", "/api/v1"]],
    "d.p_/api/v1",
  ],
  [
    "shared wildcard",
    '[{key: p, value: "/api/*", share_threshold: true, L}]',
    [["p", "/api/v1"]],
    "d.p_/api/*",
  ],
  [
    "shared wildcard with value",
    '[{key: p, value: "/api/*", share_threshold: true, value_to_metric: true, L}]',
    [["p", "/api/v1"]],
    "d.p_/api/",
  ],
  [
    "shared wildcard, detailed",
    '[{key: p, value: "/api/*", share_threshold: true, detailed_metric: true, L}]',
    [["p", "/api/v1"]],
    "d.p_/api/",
  ],
  [
    "shared parent with value",
    '[{key: r, value: "api/*", share_threshold: true, value_to_metric: true, descriptors: [{key: method, L}]}]',
    [["r", "api/v1"], ["method", "GET"]],
    "d.r_api/.method",
  ],
  [
    "shared parent, detailed leaf",
    '[{key: service, value: "svc/*", share_threshold: true, descriptors: [{key: endpoint, detailed_metric: true, L}]}]',
    [["service", "svc/1"], ["endpoint", "get"]],
    "d.service_svc/.endpoint_get",
  ],
  [
    "shared parent, detailed leaf with an empty value",
    '[{key: service, value: "svc/*", share_threshold: true, descriptors: [{key: endpoint, detailed_metric: true, L}]}]',
    [["service", "svc/1"], ["endpoint", ""]],
    "d.service_svc/.endpoint",
  ],
  [
    "values of parents",
    "[{key: route, value_to_metric: true, descriptors: " +
    "[{key: http_method, value_to_metric: true, descriptors: [{key: subject_id, L}]}]}]",
    [["route", "api"], ["http_method", "GET"], ["subject_id", "123"]],
    "d.route_api.http_method_GET.subject_id",
  ],
  [
    "empty value of a parent",
    "[{key: route, value_to_metric: true, descriptors: " +
    "[{key: http_method, value_to_metric: true, descriptors: [{key: subject_id, L}]}]}]",
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
  [
    "shared and other wildcard",
    '[{key: path, value: "path/*", share_threshold: true, descriptors: ' +
    '[{key: file, value: "file/*", descriptors: [{key: type, L}]}]}]',
    [["path", "path/1"], ["file", "file/2"], ["type", "x"]],
    "d.path_path/*.file_file/*.type",
  ],
  ["detailed wildcard", '[{key: w, value: "w*", detailed_metric: true, L}]', [["w", "w9"]], "d.w_w9"],
  ["detailed with an empty value", "[{key: a, detailed_metric: true, L}]", [["a", ""]], "d.a_"],
  ["detailed and value: detailed wins", "[{key: a, detailed_metric: true, value_to_metric: true, L}]", [[
    "a",
    "",
  ]], "d.a_"],
  ["address", "[{key: ip, detailed_metric: true, L}]", [["ip", "10.1.2.3"]], "d.ip_10.1.2.3"],
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

Deno.test("metric key: a limit of the request shows every value that is not empty", () => {
  const loaded = rulesOf({ "r.yaml": "domain: d\n" });
  const entries = [{ key: "zzz", value: "" }, { key: "q", value: "1" }];
  const limit = { requestsPerUnit: 3, unit: "MINUTE" as const };
  const request = { domain: "d", hitsAddend: 0, descriptors: [{ entries, limit }] };
  const plan = planHits(loaded, request, { nowSeconds: 1_234, random: () => 0, policy: PLAIN_POLICY });
  assertEquals(plan.descriptors.map(({ metricKey }) => metricKey), ["d.zzz.q_1"]);
});
