import { addRefusals } from "../../../src/ratelimit/stats_sink.ts";
import { UNIT_NAMES } from "../../../src/ratelimit/units.ts";
import { assertEquals } from "#assert";
import { ROUND_TRIP_METRICS } from "../../../src/cache/metrics.ts";
import { WebhookStatistics } from "../../../src/serve/webhook_statistics.ts";
import { RULE_METRICS } from "../../../src/stats/declarations.ts";
import { serverCalls, StatsStore } from "../../../src/stats/store.ts";
import type { NameMapper } from "../../../src/stats/pull_mapping.ts";
import { builtInMapping, type DeclaredMetrics, nativeMapping } from "../../../src/stats/pull_rule_mapping.ts";
import { rulesOf } from "../../harness/service_fixture.ts";

const store = new StatsStore(10);
serverCalls(store)("Check");
store.addTimers(ROUND_TRIP_METRICS);
new WebhookStatistics(store);
const declared: DeclaredMetrics = (name) => store.declared(name);

const LIMIT = "rate_limit: { unit: day, requests_per_unit: 5 }";
const { domains } = rulesOf({
  "shop.yaml": `domain: shop
descriptors:
  - { key: ip, detailed_metric: true, ${LIMIT} }
  - { key: a, descriptors: [{ key: b, descriptors: [{ key: c, ${LIMIT} }] }] }
`,
});

/** Names and what they become; the labels as text, nothing where the mapping knows nothing of them. */
type Names = readonly [name: string, metric?: string, labels?: string][];

const SERVICE = "ratelimit_service";
const RULE = "ratelimit.service.rate_limit";

const WEBHOOKS = "ratelimit.webhooks";

const BUILT_IN: Names = [
  ...([
    ["shop.ip_a.b.near_limit", "near_limit", "domain=shop key1=ip_a.b"],
    ["shop.ip_a.over_limit", "over_limit", "domain=shop key1=ip_a"],
    ["shop.a.b.total_hits", "total_hits", "domain=shop key1=a key2=b"],
    ["shop.a.b.c.within_limit", "within_limit", "domain=shop key1=a key2=b"],
    ["shop.ip_a.shadow_mode", "shadow_mode", "domain=shop key1=ip_a"],
    ["shop.a.b.shadow_mode", "shadow_mode", "domain=shop key1=a key2=b"],
    ["shop.a.b.over_limit_with_local_cache", "over_limit_with_local_cache", "domain=shop key1=a key2=b"],
    ["shop.ip_a.b.returned_hits", "returned_hits", "domain=shop key1=ip_a.b"],
    ["x.y.domain_not_found", "domain_not_found", "domain=x.y"],
    ["other.total_hits", "total_hits", "domain= key1=other"],
    ["shop.other.total_hits", "total_hits", "domain=shop key1=other"],
  ] as const).map(([name, stat, labels]) => {
    return [`${RULE}.${name}`, `${SERVICE}_rate_limit_${stat}`, labels] as [string, string, string];
  }),
  [`${RULE}.shop.a.toString`],
  ["ratelimit.service.rate_limit_keys_overflowed", `${SERVICE}_rate_limit_keys_overflowed`, ""],
  ["ratelimit.service.global_shadow_mode", `${SERVICE}_global_shadow_mode`, ""],
  [
    "ratelimit.service.call.should_rate_limit.kv_error",
    `${SERVICE}_should_rate_limit_error`,
    "err_type=kv_error",
  ],
  ["ratelimit_server.Check.total_requests", `${SERVICE}_total_requests`, "grpc_method=Check"],
  ["ratelimit_server.Check.response_time", `${SERVICE}_response_time_seconds`, "grpc_method=Check"],
  ["ratelimit_server.Check.other"],
  ["ratelimit.service.config_load_success", `${SERVICE}_config_load_success`, ""],
  ["ratelimit.service.config_load_error", `${SERVICE}_config_load_error`, ""],
  ["ratelimit.cache.round_trip", `${SERVICE}_cache_round_trip_seconds`, ""],
  [`${WEBHOOKS}.triggers.over_limit`, "ratelimit_webhooks_triggers", "result=over_limit"],
  [`${WEBHOOKS}.attempts.blocked_address`, "ratelimit_webhooks_attempts", "result=blocked_address"],
  [`${WEBHOOKS}.executions_ended.failed`, "ratelimit_webhooks_executions_ended", "status=failed"],
  [`${WEBHOOKS}.executions.queued`, "ratelimit_webhooks_executions", "status=queued"],
  [`${WEBHOOKS}.deliveries.retrying`, "ratelimit_webhooks_deliveries", "state=retrying"],
  [`${WEBHOOKS}.attempt_time`, "ratelimit_webhooks_attempt_seconds", ""],
  [`${WEBHOOKS}.commit_time`, "ratelimit_webhooks_commit_seconds", ""],
  [`${WEBHOOKS}.due_now`, "ratelimit_webhooks_due_now", ""],
  [`${WEBHOOKS}.undeclared`],
];

const HITS = "ratelimit_rule_hits_total";
const NATIVE: Names = [
  [`${RULE}.shop.a.b.c.near_limit`, HITS, "domain=shop rule=a.b.c stat=near_limit"],
  [`${RULE}.shop.a.over_limit_with_local_cache`, HITS, "domain=shop rule=a stat=over_limit_with_local_cache"],
  [`${RULE}.x.y.domain_not_found`, HITS, "domain=x.y rule= stat=domain_not_found"],
  [`${RULE}.other.total_hits`, HITS, "domain= rule=other stat=total_hits"],
  ["ratelimit.service.rate_limit_keys_overflowed"],
  ["ratelimit_server.Check.total_requests"],
];

check("built-in mapping", builtInMapping({ domains, timeAsMilliseconds: false, declared }), BUILT_IN);
check("native mapping", nativeMapping(domains), NATIVE);

Deno.test("built-in mapping: no metric of a rule is named after the rule", () => {
  const map = builtInMapping({ domains, timeAsMilliseconds: false, declared });
  store.rule("shop.a.b.c");
  store.rule("shop.ip");
  store.rule("shop.returned").returnedHits = 1;
  store.rule("unknown").domainNotFound = 1;
  addRefusals(store.rule("shop.ip"), new Map(UNIT_NAMES.map((unit) => [unit, 1])));
  const names = [...store.counters()].map(([name]) => name).filter((name) => name.startsWith(`${RULE}.`));
  const stats = Object.keys(RULE_METRICS);
  const mapped = names.map((name) => map(name, "counter"));
  assertEquals(
    new Set(mapped.map((metric) => typeof metric === "object" ? metric.name : metric)),
    new Set(stats.map((stat) => `${SERVICE}_rate_limit_${stat}`)),
  );
});

Deno.test("built-in mapping: the response time alone may stay in milliseconds", () => {
  const scales = [false, true].map((timeAsMilliseconds) => {
    const map = builtInMapping({ domains, timeAsMilliseconds, declared });
    return ["ratelimit_server.Check.response_time", "ratelimit.cache.round_trip"].map((name) => {
      const mapped = map(name, "histogram");
      return mapped === "drop" ? undefined : mapped?.scale;
    });
  });
  assertEquals(scales, [[1, 1], [1_000, 1]]);
});

function check(what: string, map: NameMapper, names: Names): void {
  for (const [name, metric, labels] of names) {
    Deno.test(`${what}: ${name}`, () => {
      const mapped = map(name, "counter");
      const seen = mapped === undefined || mapped === "drop" ? [] : [mapped.name, textOf(mapped.labels)];
      assertEquals(seen, metric === undefined ? [] : [metric, labels ?? ""]);
    });
  }
}

function textOf(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels).map(([name, value]) => `${name}=${value}`).join(" ");
}
