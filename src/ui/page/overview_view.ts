import { type Bar, BarChart } from "./bar_chart.ts";
import { type Child, element, fill, isPressed, setAttribute, setHidden, setText } from "./element.ts";
import { DECISION_METRICS, DELIVERY_METRICS, type OverviewMetric, storeRows } from "./overview_metrics.ts";
import { badge, emptyNote, linkTo, note, panel } from "./pieces.ts";
import type { Remark, Snapshot } from "./snapshot.ts";
import { keyLink } from "./explain_request.ts";
import { countText, momentText, NOTHING, shareText, spanText } from "./text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** The state of the service, and its decisions and deliveries of the last hour. */
export const overviewView: View = {
  name: "overview",
  title: "Overview",
  about: "The state of this instance, and what it did in the last hour.",
  open: openOverview,
};

const MAX_KEYS = 7;
const MINUTES = 60;
const MINUTE_MS = 60_000;
const SHOWN = new WeakMap<HTMLElement, string>();
/** The views that tell more about a component; for others, the diagnostics do. */
const VIEWS: Readonly<Record<string, readonly [view: string, link: string]>> = {
  config: ["reloads", "Show reloads"],
  certificates: ["settings", "Show settings"],
  webhooks: ["endpoints", "Show endpoints"],
};
const DIAGNOSTICS = ["diagnostics", "Show diagnostics"] as const;

function openOverview(parts: PageParts): OpenedView {
  const [tiles, deliveryTiles] = [DECISION_METRICS, DELIVERY_METRICS].map((all) =>
    all.map((one) => tile(parts, one))
  ) as [Tile[], Tile[]];
  const decisions = hourChart("decisions", ["within the limit", "over the limit"]);
  const attempts = hourChart("attempts", ["succeeded", "failed"]);
  const state = element("section", { class: "panel state" });
  const [keys, stored] = [element("div"), element("div")];
  const webhooks = element(
    "div",
    { class: "group" },
    metrics(deliveryTiles),
    columns(panel("Attempts of deliveries in the last hour", ...attempts.nodes), panel("Stored", stored)),
  );
  const update = () => {
    const { snapshot, history } = parts.live();
    if (snapshot === undefined) return;
    for (const { show } of [...tiles, ...deliveryTiles]) show(snapshot, history);
    decisions.update(barsOf(snapshot, "decisions", "overLimit"));
    attempts.update(barsOf(snapshot, "delivered", "failedAttempts", { isSum: true }));
    setAttribute(state, "data-state", toneOf(snapshot));
    refill(state, stateOf(snapshot, parts));
    refill(keys, keysOf(snapshot, parts));
    const rows = storeRows(snapshot).map(({ label, view, filters, text }) => {
      return [linkTo(parts, label, view, "", filters), text] as const;
    });
    refill(stored, [ranking(rows)]);
    setHidden(webhooks, !snapshot.webhooks);
  };
  update();
  const chart = panel("Decisions in the last hour", ...decisions.nodes);
  return {
    nodes: [state, metrics(tiles), columns(chart, panel("Most often over their limit", keys)), webhooks],
    update,
  };
}

interface Tile {
  readonly node: HTMLElement;
  readonly show: (...live: Parameters<OverviewMetric["text"]>) => void;
}

function tile(parts: PageParts, { label, view, text }: OverviewMetric): Tile {
  const value = element("p", { class: "value" }, NOTHING);
  const detail = element("p", { class: "note" });
  const node = element(
    "section",
    { class: "metric" },
    element("h2", {}, linkTo(parts, label, view)),
    value,
    detail,
  );
  const show: Tile["show"] = (...live) => {
    const [valueText, detailText, state = ""] = text(...live);
    setText(value, valueText);
    setText(detail, detailText);
    setAttribute(node, "data-state", state);
  };
  return { node, show };
}

function metrics(tiles: readonly Tile[]): HTMLElement {
  return element("div", { class: "metrics" }, ...tiles.map(({ node }) => node));
}

function columns(...panels: readonly HTMLElement[]): HTMLElement {
  return element("div", { class: "columns uneven" }, ...panels);
}

function hourChart(noun: string, [rest, part]: readonly [string, string]): BarChart {
  const text = (count: number) => count === 1 ? `1 ${noun.slice(0, -1)}` : `${countText(count)} ${noun}`;
  return new BarChart({
    bars: MINUTES,
    stepMs: MINUTE_MS,
    axis: ["1 h ago", "30 min ago", "now"],
    legend: [["within", rest], ["over", part]],
    valueText: (value) => `${countText(value)} per minute`,
    barText: ({ at, whole, part: count }) => {
      return `${momentText(at, at).slice(0, 5)}: ${text(whole)}, ${countText(count)} ${part}`;
    },
    describe: (top, { whole, part: count }) =>
      `${text(top)} per minute at most; ${text(whole)} in this minute, ${
        shareText(whole === 0 ? 0 : count / whole)
      } ${part}`,
    empty: `No ${noun} in the last hour`,
    least: 2,
  });
}

/** The minutes of the last hour; `isSum` where the whole is the sum of both counts. */
function barsOf({ hour, at }: Snapshot, whole: string, part: string, { isSum = false } = {}): Bar[] {
  const [counts = [], parts = []] = [hour.get(whole), hour.get(part)];
  return counts.map((count, index) => {
    const of = parts[index] ?? 0;
    const start = at - at % MINUTE_MS - (counts.length - 1 - index) * MINUTE_MS;
    return { at: start, whole: isSum ? count + of : count, part: of };
  });
}

/** Replaces nodes only when what they show has changed. */
function refill(place: HTMLElement, children: readonly Child[]): void {
  const text = children.map((child) => child instanceof Element ? child.outerHTML : String(child)).join();
  if (SHOWN.get(place) === text || isPressed(place)) return;
  SHOWN.set(place, text);
  fill(place, children);
}

function toneOf({ health, failing, degraded, configuration: { error } }: Snapshot): string {
  if (failing.length > 0 || !["ok", "degraded"].includes(health)) return "bad";
  return degraded.length > 0 || error !== null ? "warn" : "good";
}

/** The state in words, with its causes and where to read more. */
function stateOf(snapshot: Snapshot, parts: PageParts): Child[] {
  const { failing, degraded, configuration: { error }, startedAt, at } = snapshot;
  const tone = toneOf(snapshot);
  const words = tone === "good" ? "All components healthy" : tone === "warn" ? "Degraded" : "Failing";
  const cause = (look: "bad" | "warn", word: string) => ({ component, text }: Remark) => {
    const [view, link] = VIEWS[component] ?? DIAGNOSTICS;
    const named = [badge(word, look), element("strong", {}, component), element("span", {}, text)];
    return element("li", {}, ...named, linkTo(parts, link, view));
  };
  const isKnown = degraded.some(({ component }) => component === "config");
  const rejected = error === null || isKnown
    ? []
    : [{ component: "config", text: `The last load failed: ${error}` }];
  const causes = [
    ...failing.map(cause("bad", "failing")),
    ...[...rejected, ...degraded].map(cause("warn", "degraded")),
  ];
  return [
    element("h2", {}, words),
    note(`Running for ${spanText(at - startedAt)}`),
    causes.length === 0 ? undefined : element("ul", { class: "remarks" }, ...causes),
  ];
}

function keysOf({ topOverLimited }: Snapshot, parts: PageParts): Child[] {
  if (topOverLimited.length === 0) return [emptyNote("No keys over their limit recently.")];
  const rows = topOverLimited.slice(0, MAX_KEYS).map(({ key, count }) =>
    [keyLink(parts, key), countText(count)] as const
  );
  return [ranking(rows), linkTo(parts, "Show all keys", "over-limit")];
}

function ranking(rows: readonly (readonly [name: HTMLElement, count: string])[]): HTMLElement {
  const items = rows.map(([name, count]) =>
    element("li", {}, name, element("span", { class: "count" }, count))
  );
  return element("ul", { class: "ranking" }, ...items);
}
