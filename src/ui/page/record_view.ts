import { ApiProblem, wordsOf } from "./api.ts";
import { button, type Child, element, fill, isPressed } from "./element.ts";
import { exactText, type Fields } from "./fields.ts";
import { Polling } from "./polling.ts";
import { actionButton, type RecordAction, type Row } from "./record_action.ts";
import { dayOf } from "./text.ts";
import type { OpenedView, PageParts } from "./view.ts";

/** A view of one record. */
interface RecordViewOptions {
  /** The list that the record is in: its name in the address, and in words. */
  readonly list: string;
  readonly id: string;
  readonly show: (record: Fields, now: number) => readonly Child[];
  /** Reads further fields of the record. */
  readonly more?: (record: Fields) => Promise<Fields>;
  /** The actions that apply to the record, which is reloaded after each of them. */
  readonly actions?: (row: Row) => readonly RecordAction[];
  /** Shown next to the record, with its own contents. */
  readonly aside?: HTMLElement;
  readonly close?: () => void;
}

const REFRESH_MS = 2_000;

/** Shows a record and refreshes it; rebuilds what is shown only when the record has changed. */
export class RecordView implements OpenedView {
  readonly nodes: readonly Child[];
  readonly #parts: PageParts;
  readonly #options: RecordViewOptions;
  readonly #path: string;
  readonly #place = element("div", { class: "details" });
  readonly #result = element("div", { role: "status" });
  readonly #buttons = element("div", { class: "acts" });
  /** The current actions by their labels: a button stays while its record changes. */
  #actions: ReadonlyMap<string, RecordAction> = new Map();
  readonly #polling: Polling<Fields>;
  #shown = "";

  constructor(parts: PageParts, options: RecordViewOptions) {
    const { list, id, aside } = options;
    this.#parts = parts;
    const path = this.#path = `/${list}/${encodeURIComponent(id)}`;
    this.#options = options;
    const bar = element("div", { class: "bar" }, button(`All ${list}`, () => parts.go(list)), this.#buttons);
    const contents = aside === undefined
      ? this.#place
      : element("div", { class: "columns uneven" }, aside, this.#place);
    this.nodes = [bar, this.#result, contents];
    this.#polling = new Polling({
      clock: parts.clock,
      everyMs: REFRESH_MS,
      read: async () => {
        const record = await parts.api.administer(path);
        return { ...record, ...await options.more?.(record) };
      },
      show: (record) => this.#showChanged(record),
      fail: (error) => this.#fail(error),
      isBusy: () => this.#isSelected(),
    });
    this.#polling.read();
  }

  close(): void {
    this.#polling.close();
    this.#options.close?.();
  }

  #showChanged(record: Fields): void {
    if (isPressed(this.#place) || isPressed(this.#buttons)) return;
    const text = `${dayOf(this.#parts.clock.now())} ${exactText(record)}`;
    if (text !== this.#shown) this.#show(record);
    this.#shown = text;
  }

  #fail(error: unknown): boolean {
    const isGone = error instanceof ApiProblem && error.status === 404;
    // It was deleted.
    if (isGone && this.#shown !== "") this.#parts.go(this.#options.list);
    this.#shown = "";
    fill(this.#place, [element("p", { class: "problem", role: "alert" }, wordsOf(error))]);
    return isGone;
  }

  #show(record: Fields): void {
    const { show } = this.#options;
    const focused = document.activeElement;
    const label = focused !== null && this.#place.contains(focused)
      ? focused.getAttribute("aria-label")
      : null;
    this.#showActions(record);
    const open = [...this.#place.querySelectorAll<HTMLElement>("details[open]")].map(labelOf);
    fill(this.#place, show(record, this.#parts.clock.now()));
    for (const part of this.#place.querySelectorAll("details")) part.open ||= open.includes(labelOf(part));
    if (label === null) return;
    const again = this.#place.querySelectorAll<HTMLElement>("[aria-label]");
    [...again].find((one) => one.getAttribute("aria-label") === label)?.focus({ preventScroll: true });
  }

  #showActions(record: Fields): void {
    const { actions = () => [] } = this.#options;
    const parts = this.#parts;
    const row: Row = {
      parts,
      record,
      path: this.#path,
      now: parts.clock.now(),
      refresh: () => this.#polling.read(),
      show: (...children) => fill(this.#result, children),
      labelOf: () => undefined,
    };
    const before = [...this.#actions.keys()].join();
    const current = parts.session.isReadOnly ? [] : actions(row);
    this.#actions = new Map(current.map((action) => [action.label, action]));
    if ([...this.#actions.keys()].join() === before) return;
    const hadFocus = this.#buttons.contains(document.activeElement);
    fill(this.#buttons, current.map((action) => this.#button(action)));
    if (hadFocus) this.#buttons.querySelector("button")?.focus({ preventScroll: true });
  }

  #button({ label, look = "", question }: RecordAction): HTMLElement {
    return actionButton(this.#parts, {
      label,
      look: look.replace("small", ""),
      ...question === undefined ? {} : { question },
      run: () => this.#actions.get(label)?.run(),
      then: () => this.#polling.read(),
    });
  }

  /** Rebuilding the record would clear a selection in it. */
  #isSelected(): boolean {
    const selection = globalThis.getSelection();
    return selection?.isCollapsed === false && selection.containsNode(this.#place, true);
  }
}

function labelOf(part: HTMLElement): string {
  return part.dataset["label"] ?? "";
}
