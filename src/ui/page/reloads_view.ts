import type { ConfigurationLoad } from "../snapshot.ts";
import { type Child, element } from "./element.ts";
import { badge, code, moment, moreNote } from "./pieces.ts";
import { LiveTable } from "./table.ts";
import { countText, NOTHING } from "./text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** The last loads of the rules. */
export const reloadsView: View = {
  name: "reloads",
  title: "Reloads",
  about: "The last ten loads of the rules. After a rejected load, the previous rules stay in use.",
  open: openReloads,
};

function openReloads(parts: PageParts): OpenedView {
  const table = new LiveTable<ConfigurationLoad & { readonly key: string }>({
    caption: "Loads of the rules",
    key: ({ key }) => key,
    empty: "No rules were loaded yet.",
    columns: [
      { label: "When", cell: ({ at }) => [moment(at, parts.clock.now())] },
      { label: "Result", cell: ({ ok }) => [ok ? badge("loaded", "good") : badge("rejected", "bad")] },
      { label: "Changed", look: "name", cell: changesOf },
      { label: "Limits", look: "number", cell: ({ ok, limits }) => ok ? countText(limits) : NOTHING },
      { label: "Problems", look: "wrap", cell: problemsOf },
    ],
  });
  const update = () => {
    const loads = parts.live().snapshot?.configuration.loads;
    if (loads === undefined) return;
    // Two loads may have the same time.
    table.update(loads.map((load, index) => ({ ...load, key: `${load.at} ${loads.length - index}` })));
  };
  update();
  return { nodes: [table.node], update };
}

function changesOf({ changed, version }: ConfigurationLoad): Child[] {
  if (version !== "") return ["version ", code(version)];
  if (changed.length === 0) return ["nothing"];
  return [code(changed.join(" "))];
}

function problemsOf({ problems, problemCount }: ConfigurationLoad): Child[] {
  if (problemCount === 0) return [NOTHING];
  return [
    ...problems.map((text) => element("p", { class: "problem" }, text)),
    moreNote(problemCount - problems.length),
  ];
}
