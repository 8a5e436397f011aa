import { type Child, element } from "./element.ts";
import type { Tone } from "./pieces.ts";

/** An event in a timeline. */
interface TimelineItem {
  readonly tone: Tone;
  readonly heading: readonly Child[];
  /** Below the heading, such as its time. */
  readonly line: readonly Child[];
  readonly problem?: string | undefined;
  readonly parts?: readonly Child[];
}

/** Events in their order, each with a dot in its tone. */
export function timeline(items: readonly TimelineItem[]): HTMLElement {
  const nodes = items.map(({ tone, heading, line, problem = "", parts = [] }) =>
    element(
      "li",
      { "data-state": tone },
      element("h3", {}, ...heading),
      element("p", {}, ...line),
      problem === "" ? undefined : element("p", { class: "problem" }, problem),
      ...parts,
    )
  );
  return element("ol", { class: "timeline" }, ...nodes);
}

/** A part that is closed at first; `label` names it among all of a view, so that it stays open when that is rebuilt. */
export function foldedPart(label: string, title: string, ...children: readonly Child[]): HTMLElement {
  return element("details", { "data-label": label }, element("summary", {}, title), ...children);
}
