import { errorCount, responseTimes } from "./metric_rows.ts";
import { button, type Child, element, fill, setAttribute, setText } from "./element.ts";
import { badge, code, emptyNote, facts, moment, note, panel } from "./pieces.ts";
import { SecondsChart } from "./seconds_chart.ts";
import type { Counts, Remark, Snapshot } from "./snapshot.ts";
import { countText, dayOf, latencyText, NOTHING, rateText, shareText, spanText } from "./text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** Health, decisions per second and the current configuration. */
export const overviewView: View = {
  name: "overview",
  title: "Overview",
  about: "The current state of the service.",
  open: openOverview,
};

const MAX_KEYS = 5;
const SHOWN = new WeakMap<HTMLElement, string>();
/** Returns value, detail and state. */
type MetricText = (snapshot: Snapshot, history: readonly Counts[]) => readonly [string, string, string?];
const METRICS: readonly (readonly [label: string, of: MetricText])[] = [
  ["Health", ({ health, failing, degraded }) => {
    if (health === "ok") return ["Healthy", "no failures", "good"];
    if (health !== "degraded") return ["Failing", `${failing.length} failing`, "bad"];
    return ["Degraded", degraded.length === 1 ? "1 cause" : `${degraded.length} causes`, "warn"];
  }],
  ["Decisions per second", ({ decisions }) => [rateText(decisions.perSecond), "in the last second"]],
  ["Over the limit", ({ decisions: { overLimitShare: share } }) => {
    return [shareText(share), "of the last second", share !== null && share > 0 ? "warn" : ""];
  }],
  ["Response time p99", (snapshot, history) => {
    const { p50, p99 } = responseTimes(snapshot, history);
    return [latencyText(p99), `p50 ${latencyText(p50)}, over gRPC`];
  }],
  ["Errors", (snapshot, history) => {
    const { recent, total } = errorCount(snapshot, history);
    return [
      countText(recent),
      `in two minutes, ${countText(total)} since start`,
      recent > 0 ? "warn" : "",
    ];
  }],
  ["Decisions since start", ({ decisions: { total, overLimit } }) => {
    return [countText(total), `${countText(overLimit)} over the limit`];
  }],
];

function openOverview(parts: PageParts): OpenedView {
  const metrics = METRICS.map(([label, of]) => metric(label, of));
  const chart = new SecondsChart({
    legend: [["within", "within the limit"], ["over", "over the limit"]],
    topText: (top) => `${rateText(top)} per second`,
    describe: (top, { whole, part }) =>
      `Decisions of the last two minutes: at most ${countText(top)} per second, now ${
        rateText(whole)
      } per second, ${shareText(whole === 0 ? 0 : part / whole)} over the limit`,
    empty: "No decisions in the last two minutes",
    least: 1,
  });
  const health = element("div");
  const configuration = element("div");
  const keys = element("div");
  const process = element("div");
  const update = () => {
    const { snapshot, history } = parts.live();
    if (snapshot === undefined) return;
    for (const { show } of metrics) show(snapshot, history);
    chart.update(history.flatMap(({ at, decisions: { perSecond: whole, overLimitShare } }) => {
      return whole === null ? [] : [{ at, whole, part: whole * (overLimitShare ?? 0) }];
    }));
    const now = parts.clock.now();
    refill(health, healthOf(snapshot), [snapshot.failing, snapshot.degraded]);
    refill(configuration, configurationOf(snapshot, now), [snapshot.configuration, dayOf(now)]);
    refill(keys, keysOf(snapshot, parts), snapshot.topOverLimited.slice(0, MAX_KEYS));
    refill(process, processOf(snapshot, now), [
      snapshot.startedAt,
      spanText(snapshot.at - snapshot.startedAt),
    ]);
  };
  update();
  const nodes = [
    element("div", { class: "metrics" }, ...metrics.map(({ node }) => node)),
    panel("Decisions of the last two minutes", ...chart.nodes),
    element(
      "div",
      { class: "columns" },
      panel("Components", health),
      panel("Configuration", configuration),
      panel("Most often over their limit", keys),
      panel("Process", process),
    ),
  ];
  return { nodes, update };
}

function metric(label: string, of: MetricText) {
  const value = element("p", { class: "value" }, NOTHING);
  const detail = element("p", { class: "note" });
  const node = element("section", { class: "metric" }, element("h2", {}, label), value, detail);
  const show: (...live: Parameters<MetricText>) => void = (...live) => {
    const [text, detailText, state = ""] = of(...live);
    setText(value, text);
    setText(detail, detailText);
    setAttribute(node, "data-state", state);
  };
  return { node, show };
}

/** Replaces nodes only when the values that they show have changed. */
function refill(place: HTMLElement, children: readonly Child[], values: unknown): void {
  const text = JSON.stringify(values);
  if (SHOWN.get(place) === text) return;
  SHOWN.set(place, text);
  fill(place, children);
}

function healthOf({ failing, degraded }: Snapshot): Child[] {
  if (failing.length + degraded.length === 0) return [emptyNote("All components healthy.")];
  const remark = (look: "bad" | "warn", word: string) => ({ component, text }: Remark) =>
    element("li", {}, badge(word, look), element("strong", {}, component), element("span", {}, text));
  return [element(
    "ul",
    { class: "remarks" },
    ...failing.map(remark("bad", "failing")),
    ...degraded.map(remark("warn", "degraded")),
  )];
}

function configurationOf({ configuration }: Snapshot, now: number): Child[] {
  const { loadedAt, version, loaded, failed, error } = configuration;
  const problem = error === null ? undefined : element(
    "div",
    { class: "trouble" },
    element("strong", {}, "The last load failed"),
    element("p", {}, error),
  );
  return [
    problem,
    facts([
      ["Loaded", loadedAt === null ? "not yet" : moment(loadedAt, now)],
      ["Loads", `${countText(loaded)} succeeded, ${countText(failed)} failed`],
      ...(version === "" ? [] : [["Version", code(version)] as const]),
    ]),
  ];
}

function keysOf({ topOverLimited }: Snapshot, { go }: PageParts): Child[] {
  if (topOverLimited.length === 0) return [emptyNote("No keys over their limit recently.")];
  const rows = topOverLimited.slice(0, MAX_KEYS).map(({ key, count }) =>
    element("li", {}, code(key), element("span", { class: "count" }, countText(count)))
  );
  const more = button("Show all", () => go("over-limit"), { look: "small", action: "more" });
  return [element("ol", { class: "ranking" }, ...rows), more];
}

function processOf({ version, startedAt, at, webhooks, administration }: Snapshot, now: number): Child[] {
  return [facts([
    ["Weir", version],
    ["Started", [moment(startedAt, now), note(` ${spanText(at - startedAt)} ago`)]],
    ["Webhook service", webhooks ? "on" : "off: WEBHOOK_STORE is not set"],
    ["Administration", administration ? "by ADMIN_TOKEN" : "off: ADMIN_TOKEN is not set"],
  ])];
}
