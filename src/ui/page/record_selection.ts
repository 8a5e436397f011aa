import { wordsOf } from "./api.ts";
import { button, element, setHidden, setText } from "./element.ts";
import { type Fields, textOf } from "./fields.ts";
import { countText } from "./text.ts";
import type { PageParts } from "./view.ts";

/** An action on several records of a list. */
export interface BulkAction {
  /** The records that it applies to, such as `failed`. */
  readonly adjective: string;
  readonly appliesTo: (record: Fields) => boolean;
  readonly label: string;
  readonly text: string;
  /** Does it with one record, by its path in the API. */
  readonly run: (api: PageParts["api"], path: string) => Promise<unknown>;
}

/** Most records that are selected: each is a call. */
const MAX_SELECTED = 100;

/** The records of a list that the reader has selected, on any of its pages, and what is done with them. */
export class RecordSelection {
  readonly node: HTMLElement;
  readonly #parts: PageParts;
  readonly #list: string;
  readonly #action: BulkAction;
  readonly #done: () => void;
  readonly #ids = new Set<string>();
  readonly #boxes = new Map<string, HTMLInputElement>();
  readonly #status = element("span", { class: "note", role: "status" });
  readonly #run: HTMLButtonElement;
  readonly #clear: HTMLButtonElement;
  readonly #all: HTMLButtonElement;
  #isRunning = false;

  /** `done` is called when records may have changed. */
  constructor(parts: PageParts, list: string, action: BulkAction, done: () => void) {
    this.#parts = parts;
    this.#list = list;
    this.#action = action;
    this.#done = done;
    this.#all = button(`Select all ${action.adjective} on this page`, () => this.#selectAll(), {
      look: "small",
    });
    this.#clear = button("Clear", () => this.clear(), { look: "small", spoken: "Clear the selection" });
    this.#run = button(action.label, () => void this.#ask(), { look: "small primary" });
    this.node = element("div", { class: "bar" }, this.#all, this.#run, this.#clear, this.#status);
    this.#show();
  }

  /** The checkbox of a record; none where the action does not apply. */
  box(record: Fields, name: string): HTMLInputElement | undefined {
    const id = textOf(record, "id");
    this.#boxes.delete(id);
    if (!this.#action.appliesTo(record)) return undefined;
    const box = element("input", {
      type: "checkbox",
      "data-action": "select",
      "aria-label": `Select ${name}`,
    });
    box.checked = this.#ids.has(id);
    box.addEventListener("change", () => {
      if (box.checked) this.#select(id, box);
      else this.#ids.delete(id);
      this.#show();
    });
    this.#boxes.set(id, box);
    return box;
  }

  clear(): void {
    this.#ids.clear();
    for (const box of this.#boxes.values()) box.checked = false;
    this.#show();
  }

  /** Called when the list has been redrawn. */
  update(): void {
    for (const [id, box] of this.#boxes) if (!box.isConnected) this.#boxes.delete(id);
    this.#show();
  }

  #selectAll(): void {
    for (const [id, box] of this.#boxes) if (box.isConnected && !this.#select(id, box)) break;
    this.#show();
  }

  #select(id: string, box: HTMLInputElement): boolean {
    const fits = this.#ids.has(id) || this.#ids.size < MAX_SELECTED;
    if (fits) this.#ids.add(id);
    else this.#parts.messages.warn(`At most ${MAX_SELECTED} records can be selected`);
    box.checked = fits;
    return fits;
  }

  #show(): void {
    const count = this.#ids.size;
    setHidden(this.#all, this.#boxes.size === 0 || this.#isRunning);
    setHidden(this.#clear, count === 0 || this.#isRunning);
    setHidden(this.#run, count === 0 || this.#isRunning);
    this.node.hidden = this.#boxes.size === 0 && count === 0;
    if (this.#isRunning) return;
    setText(this.#run, `${this.#action.label} ${countText(count)}`);
    setText(this.#status, count === 0 ? "" : `${countText(count)} selected`);
  }

  async #ask(): Promise<void> {
    const { label, text } = this.#action;
    const count = countText(this.#ids.size);
    const go = `${label} ${count}`;
    if (!await this.#parts.dialogs.ask({ title: `${go}?`, text: `Selected: ${count}. ${text}`, go })) return;
    this.#isRunning = true;
    this.#show();
    await this.#runAll([...this.#ids]);
    this.#isRunning = false;
    this.clear();
    this.#done();
  }

  /** One after the other, so that a list of calls cannot flood the service. */
  async #runAll(ids: readonly string[]): Promise<void> {
    const { api, messages } = this.#parts;
    const errors: unknown[] = [];
    for (const [index, id] of ids.entries()) {
      setText(this.#status, `${countText(index + 1)} of ${countText(ids.length)}…`);
      await this.#action.run(api, `/${this.#list}/${encodeURIComponent(id)}`).catch((error: unknown) =>
        errors.push(error)
      );
    }
    const done = `${countText(ids.length - errors.length)} of ${countText(ids.length)}`;
    if (errors.length === 0) messages.say(`${this.#action.label}: ${done}.`);
    else messages.warn(`${this.#action.label}: ${done}; the first error: ${wordsOf(errors[0])}`);
  }
}
