import { ApiProblem, wordsOf } from "./api.ts";
import { button, type Child, element, fill, setHidden } from "./element.ts";
import { exactText, type Fields, flagOf } from "./fields.ts";
import { emptyNote, jsonBlock, panel } from "./pieces.ts";
import { Polling } from "./polling.ts";
import { actionButton, type RecordAction } from "./record_action.ts";
import { dayOf } from "./text.ts";
import type { OpenedView, PageParts } from "./view.ts";

/** An action on the record of a view. */
interface RecordViewAction extends RecordAction {
  /** True if it does not apply to the record. */
  readonly isHidden?: (record: Fields) => boolean;
}

/** A view of one record. */
interface RecordViewOptions {
  /** The list that the record is in: its name in the address, and in words. */
  readonly list: string;
  readonly id: string;
  readonly show: (record: Fields, now: number) => readonly Child[];
  /** The `path` is that of the record in the API; the record is reloaded after each of them. */
  readonly actions?: (path: string) => readonly RecordViewAction[];
  readonly below?: HTMLElement;
}

const REFRESH_MS = 2_000;

/** Shows a record and refreshes it; rebuilds what is shown only when the record has changed. */
export class RecordView implements OpenedView {
  readonly nodes: readonly Child[];
  readonly #parts: PageParts;
  readonly #options: RecordViewOptions;
  readonly #place = element("div");
  readonly #actions: readonly (readonly [action: RecordViewAction, button: HTMLElement])[];
  readonly #polling: Polling<Fields>;
  #shown = "";

  constructor(parts: PageParts, options: RecordViewOptions) {
    const { list, id, actions, below } = options;
    this.#parts = parts;
    const path = `/${list}/${encodeURIComponent(id)}`;
    this.#options = options;
    this.#actions = (actions?.(path) ?? []).map((action) => {
      const made = actionButton(parts, { ...action, then: () => this.#polling.read() });
      made.hidden = action.isHidden !== undefined || parts.session.isReadOnly;
      return [action, made];
    });
    const buttons = this.#actions.map(([, made]) => made);
    const bar = element("div", { class: "bar" }, button(`All ${list}`, () => parts.go(list)), ...buttons);
    this.nodes = [bar, this.#place, below];
    this.#polling = new Polling({
      clock: parts.clock,
      everyMs: REFRESH_MS,
      read: () => parts.api.administer(path),
      show: (record) => this.#showChanged(record),
      fail: (error) => this.#fail(error),
      isBusy: () => this.#isSelected(),
    });
    this.#polling.read();
  }

  close(): void {
    this.#polling.close();
  }

  #showChanged(record: Fields): void {
    const text = `${dayOf(this.#parts.clock.now())} ${exactText(record)}`;
    if (text !== this.#shown) this.#show(record);
    this.#shown = text;
  }

  #fail(error: unknown): boolean {
    this.#shown = "";
    fill(this.#place, [element("p", { class: "problem", role: "alert" }, wordsOf(error))]);
    return isNotFound(error);
  }

  #show(record: Fields): void {
    const { show } = this.#options;
    const focused = document.activeElement;
    const label = focused !== null && this.#place.contains(focused)
      ? focused.getAttribute("aria-label")
      : null;
    for (const [{ isHidden }, made] of this.#actions) {
      setHidden(made, isHidden?.(record) === true || this.#parts.session.isReadOnly);
    }
    fill(this.#place, show(record, this.#parts.clock.now()));
    if (label === null) return;
    const again = this.#place.querySelectorAll<HTMLElement>("[aria-label]");
    [...again].find((one) => one.getAttribute("aria-label") === label)?.focus({ preventScroll: true });
  }

  /** Rebuilding the record would clear a selection in it. */
  #isSelected(): boolean {
    const selection = globalThis.getSelection();
    return selection?.isCollapsed === false && selection.containsNode(this.#place, true);
  }
}

/** The payload of an event. */
export function payloadPanel(event: Fields): HTMLElement {
  const isErased = flagOf(event, "isErased");
  return panel("Payload", isErased ? emptyNote("Payload erased.") : jsonBlock("Payload", event["data"]));
}

/** Returns whether the service answered 404. */
export function isNotFound(error: unknown): boolean {
  return error instanceof ApiProblem && error.status === 404;
}
