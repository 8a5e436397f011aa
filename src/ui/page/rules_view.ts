import { element, setText } from "./element.ts";
import { ruleLink } from "./explain_request.ts";
import { badge, fileOf, filterField } from "./pieces.ts";
import { shareBar } from "./bar_chart.ts";
import type { RuleStatistics } from "../snapshot.ts";
import { LiveTable } from "./table.ts";
import { countText, NOTHING, shareText } from "./text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** The current rules and their counters. */
export const rulesView: View = {
  name: "rules",
  title: "Rules",
  about: "The current limits, with the counters of this instance since it started.",
  open: openRules,
};

function openRules(parts: PageParts): OpenedView {
  const table = new LiveTable<RuleStatistics>({
    caption: "Rules and their counters",
    key: ({ name }) => name,
    empty: "No matching rules.",
    columns: [
      {
        label: "Rule",
        look: "name",
        cell: (rule) => [ruleLink(parts, rule.name, rule)],
        order: byText(({ name }) => name),
      },
      { label: "File", cell: ({ at }) => [fileOf(at)], order: byText(({ at }) => at) },
      { label: "Limit", cell: ({ limit }) => limit.toLowerCase() },
      { label: "Mode", cell: modes },
      number("Hits", ({ hits }) => hits),
      number("Within", ({ withinLimit }) => withinLimit),
      number("Near", ({ nearLimit }) => nearLimit),
      number("Over", ({ overLimit }) => overLimit),
      { label: "Share over", look: "bar", cell: share, order: (a, b) => shareOf(a) - shareOf(b) },
    ],
  });
  const status = element("p", { class: "note", role: "status" });
  const [label, filter] = filterField(parts, "rules", "part of a name or file", () => update());
  const update = () => {
    const { snapshot } = parts.live();
    if (snapshot === undefined) return;
    const part = filter.value.trim().toLowerCase();
    const rules = snapshot.rules.filter(({ name, at }) => `${name}\n${at}`.toLowerCase().includes(part));
    table.update(rules.toSorted(byText(({ name }) => name)));
    const isCut = snapshot.rulesTotal > snapshot.rules.length;
    const all = isCut
      ? `the ${countText(snapshot.rules.length)} with most hits of ${countText(snapshot.rulesTotal)}`
      : countText(snapshot.rulesTotal);
    setText(status, part === "" ? `Rules: ${all}` : `${countText(rules.length)} found among ${all}`);
  };
  update();
  return { nodes: [element("div", { class: "bar" }, label, filter, status), table.node], update };
}

function modes({ shadowMode, quotaMode }: RuleStatistics): HTMLElement[] {
  return [...shadowMode ? [badge("shadow", "warn")] : [], ...quotaMode ? [badge("quota", "quiet")] : []];
}

function number(label: string, of: (rule: RuleStatistics) => number) {
  return {
    label,
    look: "number",
    cell: (rule: RuleStatistics) => countText(of(rule)),
    order: (a: RuleStatistics, b: RuleStatistics) => of(a) - of(b),
  };
}

function byText(of: (rule: RuleStatistics) => string): (a: RuleStatistics, b: RuleStatistics) => number {
  return (a, b) => of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0;
}

function shareOf({ hits, overLimit }: RuleStatistics): number {
  return hits === 0 ? 0 : overLimit / hits;
}

function share(rule: RuleStatistics) {
  if (rule.hits === 0) return NOTHING;
  return [shareBar(shareOf(rule)), element("span", {}, shareText(shareOf(rule)))];
}
