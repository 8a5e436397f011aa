import { BarChart } from "./bar_chart.ts";
import { element, fill } from "./element.ts";
import {
  CACHE,
  CONNECTIONS,
  ERRORS,
  EVICTIONS,
  type MetricRow,
  OPEN_BREAKERS,
  type Percentiles,
  percentilesOf,
  RESPONSE_TIME,
  type ShownMetric,
  shownMetrics,
} from "./metric_rows.ts";
import { badge, facts, panel } from "./pieces.ts";
import { type Counts, KEPT_SECONDS, type Snapshot } from "./snapshot.ts";
import { LiveTable } from "./table.ts";
import { countText, latencyText, NOTHING } from "./text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** Latency, errors, the cache and evictions. */
export const diagnosticsView: View = {
  name: "diagnostics",
  title: "Diagnostics",
  about: "Latency, errors, cache and evictions of this instance. Changes are those of the last two minutes.",
  open: openDiagnostics,
};

const TIMERS = [
  ["Decision over gRPC", RESPONSE_TIME],
  ["Round trip to the cache", "ratelimit.cache.round_trip"],
  ["Attempt of a delivery", "ratelimit.webhooks.attempt_time"],
  ["Commit of the webhook store", "ratelimit.webhooks.commit_time"],
] as const;

interface ShownTimer {
  readonly label: string;
  readonly recent: Percentiles;
  readonly all: Percentiles;
}

function openDiagnostics(parts: PageParts): OpenedView {
  const chart = new BarChart({
    bars: KEPT_SECONDS,
    stepMs: 1_000,
    axis: ["2 min ago", "1 min ago", "now"],
    legend: [["tail", "p99"], ["median", "p50"]],
    valueText: latencyText,
    barText: ({ whole, part }) => `p99 ${latencyText(whole)}, p50 ${latencyText(part)}`,
    describe: (top, { whole, part }) =>
      `Response time of decisions over gRPC in the last two minutes: p99 at most ${latencyText(top)}, now ${
        latencyText(whole)
      }; p50 now ${latencyText(part)}`,
    empty: "No decisions over gRPC in the last two minutes",
    least: 0.1,
  });
  const latency = latencyTable();
  const errors = metricTable("Errors", "No errors since the start.", ["Since start", "Last two minutes"]);
  const cache = metricTable("Cache", "The counters are in this process.");
  const evictions = metricTable("Evictions", "");
  const state = element("div");
  const update = () => {
    const { snapshot, history } = parts.live();
    if (snapshot === undefined) return;
    chart.update(responsePoints(snapshot, history));
    latency.update(shownTimers(snapshot, history));
    const shown = (rows: readonly MetricRow[]) => shownMetrics(rows, snapshot, history);
    errors.update(shown(ERRORS).filter(({ total }) => total > 0));
    cache.update(shown(CACHE));
    evictions.update(shown(EVICTIONS));
    fill(state, [
      facts([
        ["Kind", snapshot.cache],
        ...cacheState(snapshot, shown([OPEN_BREAKERS])[0], shown([CONNECTIONS])[0]),
      ]),
    ]);
  };
  update();
  const nodes = [
    panel("Response time of decisions over gRPC", ...chart.nodes),
    panel("Latency", latency.node),
    panel("Errors", errors.node),
    element(
      "div",
      { class: "columns" },
      panel("Cache", state, cache.node),
      panel("Memory and evictions", evictions.node),
    ),
  ];
  return { nodes, update };
}

function responsePoints({ boundsMs }: Snapshot, history: readonly Counts[]) {
  return history.flatMap(({ at, timers }, index) => {
    const before = history[index - 1]?.timers.get(RESPONSE_TIME);
    if (before === undefined) return [];
    const { p50, p99 } = percentilesOf(boundsMs, timers.get(RESPONSE_TIME), before);
    return [{ at, whole: p99 ?? 0, part: p50 ?? 0 }];
  });
}

function shownTimers({ boundsMs, timers }: Snapshot, history: readonly Counts[]): ShownTimer[] {
  return TIMERS.flatMap(([label, name]) => {
    const buckets = timers.get(name);
    if (buckets === undefined) return [];
    const recent = percentilesOf(boundsMs, buckets, history[0]?.timers.get(name) ?? buckets);
    return [{ label, recent, all: percentilesOf(boundsMs, buckets) }];
  });
}

function latencyTable(): LiveTable<ShownTimer> {
  return new LiveTable<ShownTimer>({
    caption: "Latency",
    key: ({ label }) => label,
    empty: "Nothing is timed yet.",
    columns: [
      { label: "What", look: "name", cell: ({ label }) => label },
      { label: "p50", look: "number", cell: ({ recent }) => latencyText(recent.p50) },
      { label: "p99", look: "number", cell: ({ recent }) => latencyText(recent.p99) },
      { label: "Calls", look: "number", cell: ({ recent }) => countText(recent.count) },
      { label: "p50 since start", look: "number", cell: ({ all }) => latencyText(all.p50) },
      { label: "p99 since start", look: "number", cell: ({ all }) => latencyText(all.p99) },
      { label: "Calls since start", look: "number", cell: ({ all }) => countText(all.count) },
    ],
  });
}

function metricTable(
  caption: string,
  empty: string,
  [total, recent]: readonly [string, string] = ["Number", "Change"],
): LiveTable<ShownMetric> {
  return new LiveTable<ShownMetric>({
    caption,
    key: ({ label }) => label,
    empty,
    isNarrow: true,
    columns: [
      { label: "What", look: "name", cell: ({ label }) => label },
      { label: total, look: "number", cell: (row) => countText(row.total) },
      {
        label: recent,
        look: "number",
        cell: (row) => row.isGauge === true ? NOTHING : row.recent === 0 ? "0" : `+${countText(row.recent)}`,
      },
    ],
  });
}

function cacheState(
  { failing, degraded }: Snapshot,
  breakers: ShownMetric | undefined,
  connections: ShownMetric | undefined,
) {
  const isOfCache = ({ component }: { readonly component: string }) => component.endsWith("cache");
  const problems = [...failing, ...degraded].filter(isOfCache).map(({ text }) => text);
  const isDown = connections?.total === 0;
  const isDegraded = degraded.some(isOfCache);
  const trouble = isDown ? "no connection" : failing.some(isOfCache) ? "failing" : undefined;
  const rest = isDegraded ? badge("degraded", "warn") : badge("healthy", "good");
  const health = trouble === undefined ? rest : badge(trouble, "bad");
  const rows = [["Health", [health, problems.join("; ")]] as const];
  if (breakers === undefined) return rows;
  const { total } = breakers;
  const state = total === 0 ? badge("closed", "good") : badge(`${countText(total)} open`, "bad");
  return [...rows, ["Breaker", [state]] as const];
}
