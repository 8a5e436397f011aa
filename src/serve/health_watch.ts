import { HEALTH_STATES } from "../base/health.ts";
import { gauge, type MetricGroup, metricReaders } from "../base/metrics.ts";
import type { CacheFailureMode } from "../ratelimit/rule_source.ts";
import { SERVICE_METRICS } from "../stats/declarations.ts";
import { PROCESS_PREFIX } from "../telemetry/process_metrics.ts";
import { meanwhile } from "./cache_health.ts";
import { certificateFiles, CertificateWatch } from "./certificates.ts";
import type { ServiceParts } from "./parts.ts";

/** The metrics of the health. */
export const HEALTH_METRICS = {
  prefix: PROCESS_PREFIX,
  metrics: {
    health: gauge(
      "0 or 1",
      "1 for the state of the health check: `degraded` still serves, with causes in `/healthcheck`; `failing` is 503.",
      { label: "state", values: HEALTH_STATES },
    ),
  },
} satisfies MetricGroup;

/** Period of comparing decisions. */
const LOOK_MS = 5_000;
/** The counters of decisions without the cache, of all threads. */
const FAILURES = (["error", "allow", "deny", "local"] as const satisfies readonly CacheFailureMode[])
  .map((mode) => `${SERVICE_METRICS.prefix}cache_failure.${mode}`);
/** The share of decisions without the cache that degrades the service. */
const MAX_FAILED_SHARE = 0.01;

/** Reports the state of the health as a metric, and watches the certificates; returns a function that ends that. */
export function watchHealth(parts: ServiceParts): () => Promise<void> {
  const { health, stats, settings } = parts;
  stats.addMetrics(HEALTH_METRICS, {
    counters: {},
    gauges: metricReaders(
      HEALTH_METRICS.metrics,
      "gauge",
      (name) => name === `health.${health.state}` ? 1 : 0,
    ),
  });
  const certificates = new CertificateWatch(parts, certificateFiles(settings));
  return () => certificates.close();
}

/**
 * Degrades the component `decisions` while the cache fails: it may have a connection and still refuse to count, for
 * example without memory or permissions. Returns a function that ends that.
 */
export function watchDecisions(
  { clock, health, stats, settings }: Pick<ServiceParts, "clock" | "health" | "stats" | "settings">,
  decided: () => number,
): () => void {
  let cancel = () => {};
  const counts = () => {
    const failures = FAILURES.map((name) => stats.reader("counter", name)?.() ?? 0);
    return { failed: failures.reduce((sum, count) => sum + count), decided: decided() };
  };
  let before = counts();
  const look = () => {
    const now = counts();
    const failed = now.failed - before.failed;
    const all = failed + now.decided - before.decided;
    before = now;
    const isDegraded = failed > 0 && failed > all * MAX_FAILED_SHARE;
    const decisions = failed === 1 ? "1 decision" : `${failed} decisions`;
    const text = `the cache failed for ${decisions} in the last ${LOOK_MS / 1_000} s; ${meanwhile(settings)}`;
    health.degrade("decisions", isDegraded ? [text] : []);
    cancel = clock.after(LOOK_MS, look);
  };
  cancel = clock.after(LOOK_MS, look);
  return () => cancel();
}
