import { exactText } from "./fields.ts";
import { breakable, button, type Child, element, setText } from "./element.ts";
import { agoText, countText, exactTimeText, NOTHING } from "./text.ts";
import type { PageParts } from "./view.ts";

/** The color of a badge. */
export type Tone = "good" | "bad" | "warn" | "quiet";

const TONES: Readonly<Record<string, Tone>> = {
  acknowledged: "good",
  succeeded: "good",
  enabled: "good",
  valid: "good",
  signing: "good",
  pending: "warn",
  failed: "bad",
  invalid: "bad",
  outdated: "warn",
  retrying: "warn",
  running: "warn",
  interrupted: "warn",
};

/** A colored word. */
export function badge(text: string, tone: Tone = TONES[text] ?? "quiet"): HTMLElement {
  return element("span", { class: `badge ${tone}` }, text);
}

/** A time relative to now, with the exact one as its tooltip. */
export function moment(at: number | undefined, now: number): Child {
  if (at === undefined || Number.isNaN(new Date(at).getTime())) return NOTHING;
  return element(
    "time",
    { datetime: new Date(at).toISOString(), title: exactTimeText(at) },
    agoText(at, now),
  );
}

/** Called every second: relative times grow. */
export function updateMoments(now: number): void {
  for (const node of document.querySelectorAll("time")) {
    setText(node, agoText(Date.parse(node.dateTime), now));
  }
}

/** A name and its value. */
export type Fact = readonly [string, Child | readonly Child[]];

/** A list of names and values. */
export function facts(entries: readonly Fact[]): HTMLElement {
  const rows = entries.map(([name, value]) => {
    const shown = Array.isArray(value) ? value : [value as Child];
    return element("div", {}, element("dt", {}, name), element("dd", {}, ...shown));
  });
  return element("dl", { class: "facts" }, ...rows);
}

/** A section of a view, with a heading. */
export function panel(title: string, ...children: readonly Child[]): HTMLElement {
  return element("section", { class: "panel" }, element("h2", {}, title), ...children);
}

/** Preformatted text. It scrolls, so it is reachable by keyboard. */
export function textBlock(label: string, text: string): HTMLElement {
  return element("pre", { tabindex: "0", role: "region", "aria-label": label }, text);
}

/** A value as JSON, with all digits of its numbers. */
export function jsonBlock(label: string, value: unknown): HTMLElement {
  return textBlock(label, exactText(value));
}

/** An identifier, a key or an address. */
export function code(text: string): HTMLElement {
  return element("code", {}, ...breakable(text));
}

/** The name of a file, with its whole path as the tooltip. */
export function fileOf(path: string): HTMLElement {
  return element("span", { title: path }, path.slice(path.lastIndexOf("/") + 1));
}

/** A link to a view, to a record of it, or to its list with filters. */
export function linkTo(
  { go }: Pick<PageParts, "go">,
  text: string,
  ...to: Parameters<PageParts["go"]>
): HTMLElement {
  // Identifiers look like code, words do not.
  return button(text, () => go(...to), { look: text.includes(" ") ? "link words" : "link", action: text });
}

/** A field that filters what a view shows, with its label; its text is in the address. */
export function filterField(
  { filters }: Pick<PageParts, "filters">,
  view: string,
  placeholder: string,
  changed: () => void,
): readonly [HTMLElement, HTMLInputElement] {
  const id = `${view}-filter`;
  const input = element("input", {
    id,
    type: "search",
    autocomplete: "off",
    spellcheck: "false",
    placeholder,
    value: filters.get(view, "filter"),
  });
  input.addEventListener("input", () => {
    filters.set(view, { filter: input.value });
    changed();
  });
  return [element("label", { for: id }, "Filter"), input];
}

/** Secondary text. */
export function note(text: string): HTMLElement {
  return element("span", { class: "note" }, text);
}

/** The number of items beyond those that are shown; nothing when all are. */
export function moreNote(more: number): HTMLElement | undefined {
  return more > 0 ? note(`and ${countText(more)} more`) : undefined;
}

/** Shown in place of something that does not exist. */
export function emptyNote(text: string): HTMLElement {
  return element("p", { class: "empty" }, text);
}

/** In place of a list without a record: the way to the first one, and the command for it, if any. */
export function firstStep(missing: string, text: string, command?: string): readonly Child[] {
  const block = command === undefined ? undefined : textBlock("The command", command);
  return [element("strong", {}, missing), element("p", {}, text), block];
}

/** Two columns, of which the narrow one has the details; they are first where there is one column only. */
export function unevenColumns(wide: readonly Child[], details: readonly Child[]): HTMLElement {
  const columns = [element("div", {}, ...wide), element("div", { class: "details" }, ...details)];
  return element("div", { class: "columns uneven" }, ...columns);
}
