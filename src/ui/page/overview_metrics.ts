import { CACHE, CONNECTIONS, errorCount, EVICTIONS, responseTimes, shownMetrics } from "./metric_rows.ts";
import type { Counts, Snapshot } from "./snapshot.ts";
import { countText, latencyText, momentText, NOTHING, rateText, shareText, spanText } from "./text.ts";

/** A number of the overview, with the view that tells more. */
export interface OverviewMetric {
  readonly label: string;
  readonly view: string;
  /** Returns value, detail and state. */
  readonly text: (snapshot: Snapshot, history: readonly Counts[]) => readonly [string, string, string?];
}

/** A delivery that is due for longer is late. */
const LATE_MS = 60_000;
const LOW_SUCCESS_RATE = 0.95;

/** The numbers of decisions. */
export const DECISION_METRICS: readonly OverviewMetric[] = [
  {
    label: "Decisions per second",
    view: "diagnostics",
    text: ({ decisions, hour }) => {
      return [rateText(decisions.perSecond), `${countText(sumOf(hour.get("decisions")))} in the last hour`];
    },
  },
  {
    label: "Over the limit",
    view: "over-limit",
    text: ({ hour }) => {
      const refused = sumOf(hour.get("overLimit"));
      const share = shareOf(refused, sumOf(hour.get("decisions")));
      return [shareText(share), `${countText(refused)} in the last hour`];
    },
  },
  {
    label: "Response time p99",
    view: "diagnostics",
    text: (snapshot, history) => {
      const { p50, p99 } = responseTimes(snapshot, history);
      const detail = p99 === null ? "no recent calls over gRPC" : `p50 ${latencyText(p50)}, over gRPC`;
      return [latencyText(p99), detail];
    },
  },
  {
    label: "Errors",
    view: "diagnostics",
    text: (snapshot, history) => {
      const { recent, total } = errorCount(snapshot, history);
      const detail = `in two minutes, ${countText(total)} since start`;
      return [countText(recent), detail, recent > 0 ? "warn" : ""];
    },
  },
  {
    label: "Cache",
    view: "diagnostics",
    text: (snapshot, history) => {
      const [connections] = shownMetrics([CONNECTIONS], snapshot, history);
      const [counters] = shownMetrics([...EVICTIONS, ...CACHE], snapshot, history);
      if (connections === undefined) return [snapshot.cache, `${countText(counters?.total ?? 0)} counters`];
      const { total } = connections;
      const detail = total === 0 ? "no connection" : `${countText(total)} connections`;
      return [snapshot.cache, detail, total === 0 ? "bad" : ""];
    },
  },
  {
    label: "Rules",
    view: "rules",
    text: ({ rulesTotal, configuration: { loadedAt, version, error }, at }) => {
      const loaded = loadedAt === null ? "not loaded yet" : `loaded ${momentText(loadedAt, at)}`;
      const detail = version === "" ? loaded : `${loaded}, version ${version}`;
      return [countText(rulesTotal), detail, error === null ? "" : "warn"];
    },
  },
];

/** The numbers of webhooks. */
export const DELIVERY_METRICS: readonly OverviewMetric[] = [
  {
    label: "Oldest due delivery",
    view: "deliveries",
    text: (snapshot) => {
      const due = webhookMetric(snapshot, "due_now");
      const ageMs = webhookMetric(snapshot, "oldest_due_age_seconds") * 1_000;
      if (due === 0) return [NOTHING, "no delivery is due"];
      return [spanText(ageMs), `${countText(due)} due`, ageMs >= LATE_MS ? "warn" : ""];
    },
  },
  {
    label: "Success rate",
    view: "deliveries",
    text: ({ hour }) => {
      const succeeded = sumOf(hour.get("delivered"));
      const attempts = succeeded + sumOf(hour.get("failedAttempts"));
      const share = shareOf(succeeded, attempts);
      const isLow = share !== null && share < LOW_SUCCESS_RATE;
      return [shareText(share), `${countText(attempts)} attempts in the last hour`, isLow ? "warn" : ""];
    },
  },
  {
    label: "Failing endpoints",
    view: "endpoints",
    text: (snapshot) => {
      const [healthy, failing, disabled] = ["healthy", "failing", "disabled_by_weir"]
        .map((state) => webhookMetric(snapshot, `endpoints.${state}`));
      const count = (failing ?? 0) + (disabled ?? 0);
      const detail = `${countText(healthy ?? 0)} healthy, ${countText(disabled ?? 0)} disabled by Weir`;
      return [countText(count), detail, count > 0 ? "bad" : ""];
    },
  },
  {
    label: "Backlog",
    view: "deliveries",
    text: (snapshot) => {
      const [attempting, retrying] = ["attempting", "retrying"]
        .map((state) => webhookMetric(snapshot, `deliveries.${state}`));
      const isPaused = webhookMetric(snapshot, "deliveries_paused") > 0;
      const detail = isPaused ? "paused by an administrator" : `${countText(retrying ?? 0)} retrying`;
      return [countText((attempting ?? 0) + (retrying ?? 0)), detail, isPaused ? "warn" : ""];
    },
  },
];

/** The counts of the store that the numbers do not show: label, view, and the value of its filter, if any. */
const STORE_ROWS = [
  ["Acknowledged deliveries", "deliveries", { state: "acknowledged" }, "deliveries.acknowledged"],
  ["Failed deliveries", "deliveries", { state: "failed" }, "deliveries.failed"],
  ["Running executions", "executions", { state: "running" }, "executions.running"],
  ["Queued executions", "executions", { state: "queued" }, "executions.queued"],
  ["Failed executions", "executions", { state: "failed" }, "executions.failed"],
] as const;

/** The rows of the store, with the lists that they count. */
export function storeRows(snapshot: Snapshot) {
  return STORE_ROWS.map(([label, view, filters, name]) => {
    return { label, view, filters, text: countText(webhookMetric(snapshot, name)) };
  });
}

function webhookMetric({ metrics }: Snapshot, name: string): number {
  return metrics.get(`ratelimit.webhooks.${name}`) ?? 0;
}

function sumOf(counts: readonly number[] = []): number {
  return counts.reduce((all, one) => all + one, 0);
}

function shareOf(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole;
}
