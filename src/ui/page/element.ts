/** What an element may hold: nodes, and texts that stay texts. */
export type Child = Node | string | undefined;

/** The elements that the page is made of; none of them loads or runs anything. */
export type Tag =
  | "a"
  | "button"
  | "caption"
  | "code"
  | "dd"
  | "details"
  | "dialog"
  | "div"
  | "dl"
  | "dt"
  | "fieldset"
  | "form"
  | "h1"
  | "h2"
  | "h3"
  | "input"
  | "label"
  | "legend"
  | "li"
  | "ol"
  | "option"
  | "p"
  | "pre"
  | "section"
  | "select"
  | "span"
  | "strong"
  | "summary"
  | "table"
  | "tbody"
  | "td"
  | "textarea"
  | "th"
  | "thead"
  | "time"
  | "tr"
  | "ul";

/** Attributes that cannot run, load or style anything, whatever their values are. */
const SAFE = [
  "class",
  "id",
  "title",
  "role",
  "for",
  "type",
  "name",
  "value",
  "rows",
  "min",
  "max",
  "scope",
  "tabindex",
  "hidden",
  "open",
  "disabled",
  "required",
  "checked",
  "selected",
  "readonly",
  "autocomplete",
  "autocapitalize",
  "spellcheck",
  "placeholder",
  "datetime",
  "data-action",
  "data-label",
  "data-state",
  "aria-label",
  "aria-labelledby",
  "aria-describedby",
  "aria-current",
  "aria-hidden",
  "aria-live",
  "aria-invalid",
  "aria-sort",
  "aria-pressed",
] as const;

/** The attributes of an element. `true` sets one without a value; `undefined` and `false` leave it out. */
export type Attributes = { readonly [name in (typeof SAFE)[number]]?: string | boolean | undefined };

const NAMES: ReadonlySet<string> = new Set(SAFE);

/** Makes an element. Texts become text nodes, so that nothing in them is markup. */
export function element<T extends Tag>(
  tag: T,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[T] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (!NAMES.has(name)) {
      throw new Error(`Cannot set "${name}" of an element: it is not among the safe ones`);
    }
    if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  fill(made, children);
  return made;
}

/** Puts these children in place of what was there. */
export function fill(parent: Element, children: readonly Child[]): void {
  parent.replaceChildren(...children.filter((child) => child !== undefined));
}

/** Sets a text if it is another one, so that nothing is drawn, or read out, again without need. */
export function setText(node: Element, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets an attribute that is safe by its name if it is another one. */
export function setAttribute(node: Element, name: keyof Attributes, value: string): void {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

/** Puts the focus on the heading of the view: who goes on by keyboard goes on from there, not from the top of the page. */
export function focusHeading(): void {
  document.querySelector("main")?.querySelector("h1")?.focus({ preventScroll: true });
}

/** Hides something, or shows it again. What is hidden cannot keep the focus. */
export function setHidden(node: HTMLElement, isHidden: boolean): void {
  const hadFocus = node.contains(document.activeElement);
  node.hidden = isHidden;
  if (isHidden && hadFocus) focusHeading();
}

/** How a button looks and what it is for. */
export interface ButtonOptions {
  /** A class: `primary`, `danger`, `small`. */
  readonly look?: string;
  /** Names it among the buttons of its row. */
  readonly action?: string;
  /** What a screen reader says where the label alone does not tell which one it is. */
  readonly spoken?: string;
}

/** A button that does something on this page. */
export function button(label: string, run: () => void, options: ButtonOptions = {}): HTMLButtonElement {
  const { look, action, spoken } = options;
  const made = element(
    "button",
    { type: "button", class: look, "data-action": action, "aria-label": spoken },
    label,
  );
  made.addEventListener("click", run);
  return made;
}
