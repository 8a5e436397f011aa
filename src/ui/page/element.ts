/** A child of an element; strings become text nodes. */
export type Child = Node | string | undefined;

type TextTag = "code" | "h1" | "h2" | "h3" | "p" | "pre" | "span" | "strong" | "time" | "wbr";
type BlockTag = "details" | "dialog" | "div" | "section" | "summary";
type ListTag = "dd" | "dl" | "dt" | "li" | "ol" | "ul";
type FormTag = "button" | "fieldset" | "form" | "input" | "label" | "legend";
type ChoiceTag = "option" | "select" | "textarea";
type TableTag = "caption" | "table" | "tbody" | "td" | "th" | "thead" | "tr";

/** The elements of the page: none of them loads or runs anything. */
type Tag = "a" | TextTag | BlockTag | ListTag | FormTag | ChoiceTag | TableTag;

/** Attributes that cannot run, load or style anything, whatever their values. */
const SAFE = [
  ...["class", "id", "title", "role", "hidden", "tabindex", "open", "datetime", "scope"],
  ...["for", "type", "name", "value", "rows", "min", "max", "placeholder", "autocomplete", "autocapitalize"],
  ...["spellcheck", "disabled", "required", "checked", "selected", "readonly"],
  ...["data-action", "data-label", "data-state"],
  ...["aria-label", "aria-labelledby", "aria-describedby", "aria-current", "aria-hidden", "aria-live"],
  ...["aria-invalid", "aria-sort", "aria-pressed", "aria-expanded", "aria-controls", "aria-selected"],
] as const;

/** `true` sets an attribute without a value; `undefined` and `false` leave it out. */
export type Attributes = { readonly [name in (typeof SAFE)[number]]?: string | boolean | undefined };

// Not within the number of an address.
const SEPARATOR = /(?<=[/?&=_:,]|\.(?!\d))(?![/?&=_.:,])/;
const NAMES: ReadonlySet<string> = new Set(SAFE);

/** Creates an element; strings in it are never markup. */
export function element<T extends Tag>(
  tag: T,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[T] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (!NAMES.has(name)) {
      throw new Error(`Cannot set attribute "${name}": not a safe attribute`);
    }
    if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  fill(made, children);
  return made;
}

/** Replaces the children of an element. */
export function fill(parent: Element, children: readonly Child[]): void {
  parent.replaceChildren(...children.filter((child) => child !== undefined));
}

/** A text that may break behind the separators of addresses and names. */
export function breakable(text: string): readonly Child[] {
  return text.split(SEPARATOR).flatMap((part, index) => index === 0 ? [part] : [element("wbr"), part]);
}

/** Sets a text only if it differs, so that screen readers do not repeat it. */
export function setText(node: Element, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets a safe attribute only if it differs. */
export function setAttribute(node: Element, name: keyof Attributes, value: string): void {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

/** Focuses the heading of the view, so that keyboard users continue there. */
export function focusHeading(): void {
  document.querySelector("main")?.querySelector("h1")?.focus({ preventScroll: true });
}

/** Focuses the element with this label, because the one that had the focus was rebuilt; otherwise the heading. */
export function focusLabelled(label: string): void {
  const labelled = [...document.querySelectorAll<HTMLElement>("main [aria-label]")];
  const again = label === "" ? undefined : labelled.find((one) => one.getAttribute("aria-label") === label);
  if (again === undefined) focusHeading();
  else again.focus();
}

/** Hides or shows an element; a hidden one cannot keep the focus. */
export function setHidden(node: HTMLElement, isHidden: boolean): void {
  const hadFocus = node.contains(document.activeElement);
  node.hidden = isHidden;
  if (isHidden && hadFocus) focusHeading();
}

/** Returns whether the reader is pressing something in it: what is rebuilt meanwhile loses the click. */
export function isPressed(node: Element): boolean {
  return node.matches(":active");
}

/** Options of a button. */
interface ButtonOptions {
  /** Classes: `primary`, `danger`, `small`, `link`. */
  readonly look?: string;
  readonly action?: string;
  readonly spoken?: string;
}

/** A button that calls `run`. */
export function button(label: string, run: () => void, options: ButtonOptions = {}): HTMLButtonElement {
  const { look, action } = options;
  const children = look?.startsWith("link") === true ? breakable(label) : [label];
  // Some readers pause where a name may break.
  const spoken = options.spoken ?? (children.length > 1 ? label : undefined);
  const made = element(
    "button",
    { type: "button", class: look, "data-action": action, "aria-label": spoken },
    ...children,
  );
  made.addEventListener("click", run);
  return made;
}
