import { assertEquals } from "#assert";
import { join } from "node:path";
import { parse } from "yaml";
import { type Page, readPage } from "../harness/documents.ts";
import { promtool } from "../harness/prometheus.ts";
import { needs } from "../harness/tools.ts";

const FILE = new URL("../../config/deploy/helm/files/prometheus-alerts.yaml", import.meta.url).pathname;
const PAGE = new URL("../../docs/observability.md", import.meta.url);
const SERVICE = "ratelimit_service";
const WEBHOOKS = "ratelimit_webhooks";
const CERTIFICATES = "ratelimit_certificates_expires_in_seconds";
const MINUTES = 30;

/** Series that raise each alert, a value a minute, and others that are well. */
const ALERTS: Readonly<
  Record<string, { readonly bad: readonly Series[]; readonly good: readonly Series[] }>
> = {
  WeirInstanceDown: { bad: [['up{job="weir"}', "0+0x30"]], good: [['up{job="weir"}', "1+0x30"]] },
  WeirFailing: healthAlert("failing"),
  WeirDegraded: healthAlert("degraded"),
  WeirCertificateExpires: {
    bad: [[`${CERTIFICATES}{setting="GRPC_SERVER_TLS_CERT"}`, "1209599+0x30"]],
    good: [[`${CERTIFICATES}{setting="GRPC_SERVER_TLS_CERT"}`, "1209601+0x30"]],
  },
  WeirManyOverLimit: {
    bad: [[`${SERVICE}_rate_limit_over_limit{domain="d"}`, "0+300x30"], [
      `${SERVICE}_rate_limit_total_hits{domain="d"}`,
      "0+1000x30",
    ]],
    good: [[`${SERVICE}_rate_limit_over_limit{domain="d"}`, "0+30x30"], [
      `${SERVICE}_rate_limit_total_hits{domain="d"}`,
      "0+100x30",
    ]],
  },
  WeirErrors: {
    bad: [[`${SERVICE}_should_rate_limit_error{err_type="kv_error"}`, "0+3x30"], [
      `${SERVICE}_total_requests{grpc_method="ShouldRateLimit"}`,
      "0+100x30",
    ]],
    good: [[`${SERVICE}_should_rate_limit_error{err_type="kv_error"}`, "0+3x30"], [
      `${SERVICE}_total_requests{grpc_method="ShouldRateLimit"}`,
      "0+1000x30",
    ]],
  },
  WeirCacheFailures: { bad: failures("0+60x30"), good: failures("0+0x30") },
  WeirSlowCache: { bad: roundTrips("0+90x30"), good: roundTrips("0+100x30") },
  WeirBreakerOpen: gauge("ratelimit_kv_pool_breaker_open", { bad: "1", good: "0" }),
  WeirNoCacheConnection: gauge("ratelimit_kv_pool_cx_active", { bad: "0", good: "1" }),
  WeirQuotaRefusals: quotas("surplus_buckets", { bad: 1, good: 0 }),
  WeirQuotaExchangeErrors: quotas("exchanges_failed", { bad: 60, good: 3 }),
  WeirConfigurationRejected: rising(`${SERVICE}_config_load_error`),
  WeirUnexpectedErrors: rising("ratelimit_process_unexpected_errors"),
  WeirDeliveryBacklog: gauge(`${WEBHOOKS}_oldest_due_age_seconds`, { bad: "301", good: "299" }),
  WeirDeliveriesFailed: {
    bad: [[`${WEBHOOKS}_deliveries{state="failed"}`, "3+0x20 4+0x10"]],
    // A restart, a recovery, and what is removed after its time.
    good: [[`${WEBHOOKS}_deliveries{state="failed"}`, "5+0x15 0 5+0x4 2+0x10"]],
  },
  WeirEndpointFailing: {
    bad: [[`${WEBHOOKS}_endpoints{state="failing"}`, "1+0x30"]],
    good: [
      // It works again before the alert is due.
      [`${WEBHOOKS}_endpoints{state="failing"}`, "1+0x9 0+0x20"],
      [`${WEBHOOKS}_endpoints{state="healthy"}`, "1+0x30"],
    ],
  },
  WeirEndpointDisabled: {
    bad: [[`${WEBHOOKS}_endpoints{state="disabled_by_weir"}`, "0+0x15 1+0x15"]],
    good: [
      [`${WEBHOOKS}_endpoints{state="disabled_by_weir"}`, "0+0x30"],
      [`${WEBHOOKS}_endpoints{state="disabled_by_admin"}`, "1+0x30"],
    ],
  },
  WeirStoreErrors: rising(`${WEBHOOKS}_store_errors`),
  WeirStoreNearlyFull: bound("store_used_bytes", "store_max_bytes"),
  WeirBacklogNearlyFull: bound("largest_backlog", "max_backlog"),
  WeirBoundRefusals: rising(`${WEBHOOKS}_bound_refusals{bound="backlog"}`),
  WeirClockSkew: gauge(`${WEBHOOKS}_clock_offset_seconds`, { bad: "-61", good: "-59" }),
  WeirTriggerErrors: { bad: triggers({ unavailable: 1, failed: 1 }), good: triggers({ invalid: 50 }) },
  WeirWebhookWorkerDown: {
    bad: [[`${WEBHOOKS}_is_dispatcher`, "1+0x30"], [`${WEBHOOKS}_commit_seconds_count`, "9+0x30"]],
    good: [
      [`${WEBHOOKS}_is_dispatcher{instance="works"}`, "1+0x30"],
      [`${WEBHOOKS}_commit_seconds_count{instance="works"}`, "9+60x30"],
      [`${WEBHOOKS}_is_dispatcher{instance="waits"}`, "0+0x30"],
      [`${WEBHOOKS}_commit_seconds_count{instance="waits"}`, "9+0x30"],
    ],
  },
};

/** The alert of one state of the health. */
function healthAlert(state: "failing" | "degraded") {
  const name = `ratelimit_process_health{state="${state}"}`;
  const good: Series[] = [[name, "0+0x30"], ['ratelimit_process_health{state="ok"}', "1+0x30"]];
  return { bad: [[name, "1+0x30"] as const], good };
}

type Series = readonly [series: string, values: string];

Deno.test({
  ...needs(["promtool"], "alert rules: each is raised by its bad series, and silent with its good ones"),
  async fn() {
    const tests = Object.entries(ALERTS).flatMap(([alert, { bad, good }]) => [
      alertTest(alert, bad, true),
      alertTest(alert, good, false),
    ]);
    const { code, output } = await testRules(tests);
    assertEquals(code, 0, output);
  },
});

Deno.test("alert rules: each has a test, a severity, a summary, a description and a runbook", async () => {
  const { groups } = parse(await Deno.readTextFile(FILE));
  const rules: Rule[] = groups.flatMap((group: { rules: Rule[] }) => group.rules);
  assertEquals(rules.map(({ alert }) => alert), Object.keys(ALERTS));
  const lacking = rules.filter(({ labels, annotations }) => {
    return !/^(?:critical|warning)$/.test(labels.severity) || annotations.summary === "" ||
      annotations.description === "";
  });
  assertEquals(lacking, []);
  const page = readPage("docs/observability.md", await Deno.readTextFile(PAGE));
  const runbooks = rules.map(({ alert, annotations }) => [alert, annotations.runbook_url]);
  assertEquals(runbooks, rules.map(({ alert }) => [alert, `docs/observability.md#${alert.toLowerCase()}`]));
  assertEquals(sectionHeadings(page, "Alerts"), rules.map(({ alert }) => alert));
});

function sectionHeadings({ headings }: Page, title: string): string[] {
  const start = headings.findIndex(({ text }) => text === title);
  const end = headings.findIndex(({ level }, index) => index > start && level <= 2);
  return headings.slice(start + 1, end === -1 ? undefined : end).map(({ text }) => text);
}

interface Rule {
  readonly alert: string;
  readonly labels: { readonly severity: string };
  readonly annotations: {
    readonly summary: string;
    readonly description: string;
    readonly runbook_url: string;
  };
}

/** Counts by an expression on the alerts themselves, so that labels and texts are no part of the test. */
function alertTest(alert: string, series: readonly Series[], isRaised: boolean): object {
  return {
    name: `${alert} ${isRaised ? "is raised" : "stays silent"}`,
    interval: "1m",
    input_series: series.map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [{
      expr: `count(ALERTS{alertname="${alert}",alertstate="firing"})`,
      eval_time: `${MINUTES}m`,
      exp_samples: isRaised ? [{ labels: "{}", value: 1 }] : [],
    }],
  };
}

async function testRules(tests: readonly object[]): Promise<{ code: number; output: string }> {
  const folder = await Deno.makeTempDir({ prefix: "weir_alerts_" });
  try {
    const path = join(folder, "test.yaml");
    await Deno.writeTextFile(path, JSON.stringify({ rule_files: [FILE], evaluation_interval: "1m", tests }));
    return await promtool(["test", "rules", path]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function failures(values: string): Series[] {
  const others = ["allow", "deny", "local"].map((
    mode,
  ): Series => [`${SERVICE}_cache_failure_${mode}`, "0+0x30"]);
  return [[`${SERVICE}_cache_failure_error`, values], ...others];
}

/** Of a hundred round trips a minute these are within 50 ms, the others within 100 ms. */
function roundTrips(within: string): Series[] {
  const bucket = (bound: string) => `${SERVICE}_cache_round_trip_seconds_bucket{le="${bound}"}`;
  return [[bucket("0.05"), within], [bucket("0.1"), "0+100x30"], [bucket("+Inf"), "0+100x30"]];
}

/** Calls of triggers a minute by their result, next to a hundred that were accepted. */
function triggers(results: Readonly<Record<string, number>>): Series[] {
  return Object.entries({ accepted: 100, unavailable: 0, failed: 0, ...results }).map(([result, calls]) => [
    `${WEBHOOKS}_triggers{result="${result}"}`,
    `0+${calls}x30`,
  ]);
}

/** A gauge near its bound; good is one below, and one without a bound. */
function bound(name: string, max: string) {
  const series = (instance: string, value: number, most: number): readonly Series[] => [
    [`${WEBHOOKS}_${name}{instance="${instance}"}`, `${value}+0x30`],
    [`${WEBHOOKS}_${max}{instance="${instance}"}`, `${most}+0x30`],
  ];
  return { bad: series("one", 81, 100), good: [...series("one", 80, 100), ...series("two", 81, 0)] };
}

/** A counter that rises; one that did is good. */
function rising(name: string): { bad: Series[]; good: Series[] } {
  return { bad: [[name, "0+1x30"]], good: [[name, "5+0x30"]] };
}

/** The counters of quotas, one of which rises by so much a minute. */
function quotas(
  name: string,
  { bad, good }: { bad: number; good: number },
): { bad: Series[]; good: Series[] } {
  const names = [
    "streams_refused",
    "reports_skipped",
    "surplus_buckets",
    "impossible_buckets",
    "exchanges_failed",
  ];
  const series = (value: number) =>
    names.map((each): Series => [`ratelimit_quota_${each}`, each === name ? `0+${value}x30` : "0+0x30"]);
  return { bad: series(bad), good: series(good) };
}

function gauge(
  name: string,
  { bad, good }: { bad: string; good: string },
): { bad: Series[]; good: Series[] } {
  return { bad: [[name, `${bad}+0x30`]], good: [[name, `${good}+0x30`]] };
}
