import { ApiProblem, wordsOf } from "./api.ts";
import { type Attributes, element, fill, setHidden, setText } from "./element.ts";

/** A field of a form. */
export interface FormField {
  /** As the service names it in a problem. */
  readonly name: string;
  readonly label: string;
  readonly kind?: "text" | "lines" | "check" | "choice" | "whole" | "moment" | "secret" | undefined;
  readonly hint?: string | undefined;
  readonly value?: string | undefined;
  readonly choices?: readonly (readonly [string, string])[] | undefined;
  readonly required?: boolean;
  /** Hides the field unless it returns true for the values of the others. */
  readonly isShown?: (values: FormValues) => boolean;
}

/** The values by field name; `true` or empty for a check. */
export type FormValues = Readonly<Record<string, string>>;

/** Options of a form. */
interface FormOptions {
  readonly fields: readonly FormField[];
  readonly submit: string;
  /** An `ApiProblem` is shown next to its field. */
  readonly run: (values: FormValues) => Promise<void> | void;
  readonly buttons?: readonly HTMLElement[];
  readonly look?: string;
}

type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

interface ShownField {
  readonly field: FormField;
  readonly control: Control;
  readonly problem: HTMLElement;
  readonly row: HTMLElement;
}

const INPUT_TYPES = { text: "text", whole: "number", moment: "datetime-local", secret: "password" } as const;

let forms = 0;

/** A form that shows problems next to their fields. */
export class Form {
  readonly node: HTMLFormElement;
  readonly #fields: readonly ShownField[];
  readonly #problem = element("p", { class: "problem", role: "alert" });
  readonly #submit: HTMLButtonElement;
  readonly #run: FormOptions["run"];
  #isRunning = false;

  constructor(options: FormOptions) {
    const number = ++forms;
    this.#run = options.run;
    this.#submit = element("button", { type: "submit", class: "primary" }, options.submit);
    this.#fields = options.fields.map((field) =>
      shownField(field, `form-${number}-${field.name.replaceAll(/\W/g, "-")}`)
    );
    const rows = this.#fields.map(({ row }) => row);
    const buttons = element("div", { class: "buttons" }, this.#submit, ...options.buttons ?? []);
    this.node = element("form", { class: options.look ?? "form" }, ...rows, this.#problem, buttons);
    this.node.noValidate = true;
    this.node.addEventListener("input", () => this.#showFields());
    this.#showFields();
    this.node.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
  }

  /** Runs it as its button does. */
  submit(): void {
    void this.#send();
  }

  get values(): FormValues {
    const values: Record<string, string> = {};
    for (const { field, control } of this.#fields) values[field.name] = valueOf(field, control);
    return values;
  }

  #showFields(): void {
    const { values } = this;
    for (const { field, row } of this.#fields) setHidden(row, field.isShown?.(values) === false);
  }

  set(name: string, value: string): void {
    const control = this.#fields.find(({ field }) => field.name === name)?.control;
    if (control !== undefined) control.value = value;
  }

  show(error: unknown): void {
    this.#clear();
    const name = error instanceof ApiProblem ? error.field : "";
    const shown = this.#fields.find(({ field }) => isIn(name, field.name));
    setText(shown?.problem ?? this.#problem, wordsOf(error));
    shown?.control.setAttribute("aria-invalid", "true");
    shown?.control.focus();
  }

  async #send(): Promise<void> {
    if (this.#isRunning) return;
    this.#clear();
    const missing = this.#fields.find(({ field, control }) =>
      field.required === true && control.value.trim() === ""
    );
    if (missing !== undefined) {
      const { name, label } = missing.field;
      return this.show(new ApiProblem(`${label} is required`, { field: name }));
    }
    // The browser does not tell the text of an invalid number or time.
    const invalid = this.#fields.find(({ control }) => control.validity.badInput);
    if (invalid !== undefined) {
      const { name, label, kind } = invalid.field;
      const expected = kind === "moment" ? "a date and a time" : "an integer";
      return this.show(new ApiProblem(`Invalid ${label}: expected ${expected}`, { field: name }));
    }
    this.#setRunning(true);
    try {
      await this.#run(this.values);
      this.#setRunning(false);
    } catch (error) {
      this.#setRunning(false);
      this.show(error);
    }
  }

  /** A disabled button would lose the focus. */
  #setRunning(isRunning: boolean): void {
    this.#isRunning = isRunning;
    this.#submit.setAttribute("aria-disabled", String(isRunning));
  }

  #clear(): void {
    fill(this.#problem, []);
    for (const { control, problem } of this.#fields) {
      fill(problem, []);
      control.removeAttribute("aria-invalid");
    }
  }
}

/** Returns whether a path such as `events[2]` is in a field. */
function isIn(named: string, field: string): boolean {
  return named === field || named.startsWith(`${field}.`) || named.startsWith(`${field}[`);
}

function shownField(field: FormField, id: string): ShownField {
  const { label, hint, kind } = field;
  const about = `${id}-hint ${id}-problem`;
  const control = controlOf(field, { id, "aria-describedby": about });
  const problem = element("p", { class: "problem", id: `${id}-problem`, role: "alert" });
  const hintNode = element("p", { class: "hint", id: `${id}-hint` }, hint ?? "");
  const name = element("label", { for: id }, label);
  const row = kind === "check"
    ? element("div", { class: "field check" }, control, name, hintNode, problem)
    : element("div", { class: "field" }, name, control, hintNode, problem);
  return { field, control, problem, row };
}

function controlOf({ kind = "text", value, choices = [] }: FormField, shared: Attributes): Control {
  if (kind === "choice") {
    const options = choices.map(([one, label]) =>
      element("option", { value: one, selected: one === value }, label)
    );
    return element("select", shared, ...options);
  }
  if (kind === "check") return element("input", { ...shared, type: "checkbox", checked: value === "true" });
  const plain: Attributes = { ...shared, autocomplete: "off", autocapitalize: "off", spellcheck: "false" };
  if (kind !== "lines") {
    return element("input", {
      ...plain,
      type: INPUT_TYPES[kind],
      min: kind === "whole" ? "1" : undefined,
      value,
    });
  }
  const area = element("textarea", { ...plain, rows: "3" });
  area.value = value ?? "";
  return area;
}

function valueOf({ kind }: FormField, control: Control): string {
  if (kind === "check") return control instanceof HTMLInputElement && control.checked ? "true" : "";
  return control.value;
}
