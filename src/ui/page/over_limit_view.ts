import { keyLink } from "./explain_request.ts";
import { shareBar } from "./bar_chart.ts";
import { element } from "./element.ts";
import { firstStep } from "./pieces.ts";
import type { OverLimitKey } from "../snapshot.ts";
import { LiveTable } from "./table.ts";
import { countText } from "./text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** The keys most often over their limit. */
export const overLimitView: View = {
  name: "over-limit",
  title: "Over limit",
  about:
    "The keys that were over their limit most often recently, on this instance. Counts of rare keys are estimates.",
  open: openOverLimit,
};

interface RankedKey extends OverLimitKey {
  /** Relative to the highest count. */
  readonly share: number;
}

function openOverLimit(parts: PageParts): OpenedView {
  const table = new LiveTable<RankedKey>({
    caption: "Keys by how often they were over their limit",
    key: ({ key }) => key,
    empty: [
      element(
        "div",
        {},
        ...firstStep(
          "No keys over their limit recently.",
          "A key is listed after a request with it was refused. Request a decision:",
          "weir client --domain shop --descriptors account=bob",
        ),
      ),
    ],
    columns: [
      { label: "Key", look: "name", cell: ({ key }) => [keyLink(parts, key)] },
      { label: "Times over", look: "number", cell: ({ count }) => countText(count) },
      { label: "Of the highest", look: "bar wide", cell: ({ share }) => [shareBar(share)] },
      { label: "Maximum error", look: "number", cell: ({ errorAtMost }) => countText(errorAtMost) },
    ],
  });
  const update = () => {
    const keys = parts.live().snapshot?.topOverLimited;
    if (keys === undefined) return;
    const most = Math.max(1, ...keys.map(({ count }) => count));
    table.update(keys.map((one) => ({ ...one, share: one.count / most })));
  };
  update();
  return { nodes: [table.node], update };
}
