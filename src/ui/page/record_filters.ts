import type { Field, Fields as Described } from "../../webhooks/resources/field.ts";
import { wordsOf } from "./api.ts";
import { button, element, setHidden } from "./element.ts";
import { recordsOf, textOf } from "./fields.ts";
import { shortId } from "./text.ts";
import type { PageParts } from "./view.ts";

/** Values with their labels. */
type Choices = readonly (readonly [string, string])[];

/** A query parameter that the reader can set: one of the choices, or any text. */
interface RecordFilter {
  readonly label: string;
  readonly parameter: string;
  readonly placeholder?: string | undefined;
  readonly choices?: Choices | undefined;
  readonly load?: LoadChoices | undefined;
}

/** Loads choices when the list opens. */
export type LoadChoices = (parts: PageParts) => Promise<Choices>;

/** The URLs of endpoints by their identifiers. */
export async function endpointChoices({ api }: PageParts): Promise<Choices> {
  const page = await api.administer("/endpoints", { query: { limit: "200" } });
  return recordsOf(page, "items").map((one) => [textOf(one, "id"), textOf(one, "url")]);
}

/** Options of the filters of a list. */
interface RecordFiltersOptions {
  /** The name of the list. */
  readonly list: string;
  readonly filters: Described;
  /** Parameters with choices that are loaded. */
  readonly loads: Readonly<Record<string, LoadChoices>>;
  /** True if records can be filtered by their time. */
  readonly hasTimes: boolean;
  /** Called when the reader changes a filter. */
  readonly onChange: () => void;
  /** Called when labels of choices are known. */
  readonly onLabels: () => void;
}

type Control = HTMLInputElement | HTMLSelectElement;

const MINUTE_MS = 60_000;
const BETWEEN = "between";
const TIMES: RecordFilter = {
  label: "Created",
  parameter: "time",
  choices: [
    ["", "at any time"],
    ["15", "in the last 15 minutes"],
    ["60", "in the last hour"],
    ["1440", "in the last 24 hours"],
    ["10080", "in the last 7 days"],
    [BETWEEN, "between…"],
  ],
};

/** The controls above a list. They keep their values, so that the list is the same when the reader comes back to it. */
export class RecordFilters {
  readonly nodes: readonly HTMLElement[];
  readonly #parts: PageParts;
  readonly #options: RecordFiltersOptions;
  readonly #controls = new Map<string, Control>();
  readonly #labels = new Map<string, string>();
  readonly #times: readonly HTMLElement[];
  readonly #fold = button("Filters", () => this.#unfold(), { look: "fold" });
  readonly #clear = button("Clear filters", () => this.#clearAll(), { look: "small" });

  constructor(parts: PageParts, options: RecordFiltersOptions) {
    this.#parts = parts;
    this.#options = options;
    const { filters, loads, hasTimes } = options;
    const nodes = Object.entries(filters).flatMap(([parameter, field]) =>
      this.#filter(filterOf(parameter, field, loads[parameter]))
    );
    const time = hasTimes ? this.#filter(TIMES) : [];
    this.#times = hasTimes ? [...this.#moment("From", "since"), ...this.#moment("to", "until")] : [];
    const all = [...nodes, ...time, ...this.#times];
    this.nodes = all.length === 0 ? [] : [this.#fold, ...all, this.#clear];
    this.#fold.setAttribute("aria-expanded", "false");
    this.#show();
  }

  /** Returns whether the list is narrowed. */
  get isSet(): boolean {
    return [...this.#controls.values()].some(({ value }) => value !== "");
  }

  /** The parameters of the API. */
  query(now: number): Record<string, string> {
    const query: Record<string, string> = {};
    const time = this.#controls.get("time")?.value ?? "";
    for (const [parameter, { value }] of this.#controls) {
      if (parameter === "time") continue;
      if (parameter !== "since" && parameter !== "until") query[parameter] = value.trim();
      else if (time === BETWEEN && value !== "") query[parameter] = new Date(value).toISOString();
    }
    const minutes = Number(time);
    if (minutes > 0) query["since"] = new Date(now - minutes * MINUTE_MS).toISOString();
    return query;
  }

  /** The label of a loaded choice. */
  labelOf(value: string): string | undefined {
    return this.#labels.get(value);
  }

  #filter({ label, parameter, placeholder, choices, load }: RecordFilter): HTMLElement[] {
    const id = this.#id(parameter);
    const control = choices === undefined
      ? element("input", { id, type: "search", autocomplete: "off", placeholder })
      : element("select", { id }, ...choices.map(([value, text]) => element("option", { value }, text)));
    if (control instanceof HTMLSelectElement && load !== undefined) {
      const kept = this.#parts.filters.get(this.#options.list, parameter);
      if (kept !== "") control.append(element("option", { value: kept }, shortId(kept)));
      void this.#addChoices(control, load);
    }
    return this.#labelled(label, parameter, control);
  }

  #moment(label: string, parameter: string): HTMLElement[] {
    return this.#labelled(
      label,
      parameter,
      element("input", { id: this.#id(parameter), type: "datetime-local" }),
    );
  }

  #labelled(label: string, parameter: string, control: Control): HTMLElement[] {
    const { filters } = this.#parts;
    const { list, onChange } = this.#options;
    control.value = filters.get(list, parameter);
    control.addEventListener("change", () => {
      filters.set(list, { [parameter]: control.value });
      this.#show();
      onChange();
    });
    this.#controls.set(parameter, control);
    return [element("span", { class: "filter" }, element("label", { for: control.id }, label), control)];
  }

  #show(): void {
    const isBetween = this.#controls.get("time")?.value === BETWEEN;
    for (const node of this.#times) node.hidden = !isBetween;
    setHidden(this.#clear, !this.isSet);
  }

  #unfold(): void {
    const isOpen = this.#fold.getAttribute("aria-expanded") === "true";
    this.#fold.setAttribute("aria-expanded", String(!isOpen));
  }

  #clearAll(): void {
    const none = [...this.#controls].map(([parameter, control]) => [parameter, control.value = ""]);
    this.#parts.filters.set(this.#options.list, Object.fromEntries(none));
    this.#show();
    this.#options.onChange();
  }

  #id(parameter: string): string {
    return `${this.#options.list}-${parameter}`;
  }

  async #addChoices(control: HTMLSelectElement, load: LoadChoices): Promise<void> {
    try {
      for (const [value, label] of await load(this.#parts)) {
        this.#labels.set(value, label);
        const known = [...control.options].find((option) => option.value === value);
        if (known !== undefined) known.textContent = label;
        else control.append(element("option", { value }, label));
      }
      this.#options.onLabels();
    } catch (error) {
      this.#parts.messages.warn(wordsOf(error));
    }
  }
}

function filterOf(parameter: string, field: Field, load: LoadChoices | undefined): RecordFilter {
  const { label = parameter, choices, hint, type } = field;
  const all = ["", `all ${label.toLowerCase()}${label.endsWith("s") ? "es" : "s"}`] as const;
  const known = choices?.map((choice) => [choice, choice] as const) ?? [];
  return {
    label,
    parameter,
    placeholder: hint ?? (type === "kind" ? "exact kind" : undefined),
    choices: choices === undefined && load === undefined ? undefined : [all, ...known],
    load,
  };
}
