import { wordsOf } from "./api.ts";
import type { Question } from "./dialogs.ts";
import { button, type Child } from "./element.ts";
import { type Fields, flagOf } from "./fields.ts";
import { menuButton } from "./menu.ts";
import type { PageParts } from "./view.ts";

/** A record in a list, with what its cells and actions need. */
export interface Row {
  readonly parts: PageParts;
  readonly record: Fields;
  /** The path of the record in the API. */
  readonly path: string;
  readonly now: number;
  readonly refresh: () => void;
  /** Shows the result of an action above the list. */
  readonly show: (...children: readonly Child[]) => void;
  /** The label of a loaded choice of a filter. */
  readonly labelOf: (value: string) => string | undefined;
}

/** An action of a button on a record. */
export interface RecordAction {
  readonly label: string;
  /** The label for screen readers, where the record is not named otherwise. */
  readonly spoken?: string;
  /** Identifies the button in its row when the row is rebuilt; the label by default. */
  readonly action?: string;
  /** Classes of the button; `small` by default. */
  readonly look?: string;
  readonly question?: Question;
  /** Returns the message to show when it is done, if any. */
  readonly run: () => Promise<string | undefined> | undefined;
  /** Called after `run` succeeded. */
  readonly then?: () => void;
}

/** A button that asks its question, runs its action one at a time and reports the result. */
export function actionButton(parts: PageParts, action: RecordAction): HTMLButtonElement {
  const { label, look = "small", action: name = label, spoken } = action;
  const made = button(label, () => {
    if (made.getAttribute("aria-disabled") === "true") return;
    // A disabled button would lose the focus.
    made.setAttribute("aria-disabled", "true");
    void perform(parts, action).finally(() => made.removeAttribute("aria-disabled"));
  }, { look, action: name, ...spoken === undefined ? {} : { spoken } });
  return made;
}

/** A button that opens the menu of the actions on a record. */
export function actionMenu(parts: PageParts, name: string, actions: readonly RecordAction[]): HTMLElement {
  return menuButton(
    name,
    () => actions.map((action) => ({ ...action, run: () => void perform(parts, action) })),
  );
}

/** The message that is shown when a record was enabled or disabled, and what follows before. */
interface SwitchOptions {
  readonly enabled: string;
  readonly disabled: string;
  /** Called with the enabled record. */
  readonly onEnabled?: (record: Fields) => Promise<void>;
}

/** Enables or disables a record. */
export function switchAction(
  { parts, record, path, refresh }: Row,
  { enabled, disabled, onEnabled }: SwitchOptions,
): RecordAction {
  const isEnabled = flagOf(record, "enabled");
  const label = isEnabled ? "Disable" : "Enable";
  return {
    label,
    run: async () => {
      const changed = await parts.api.administer(path, { method: "PATCH", body: { enabled: !isEnabled } });
      if (!isEnabled) await onEnabled?.(changed);
      return isEnabled ? disabled : enabled;
    },
    then: refresh,
  };
}

/** Deletes a record after a question. */
export function deleteAction(
  { parts, path, refresh }: Row,
  { noun, text }: { readonly noun: string; readonly text: string },
): RecordAction {
  return {
    label: "Delete",
    look: "danger",
    question: { title: `Delete this ${noun}?`, text, go: `Delete the ${noun}`, isDangerous: true },
    run: async () => {
      await parts.api.administer(path, { method: "DELETE" });
      return `Deleted the ${noun}.`;
    },
    then: refresh,
  };
}

async function perform({ dialogs, messages }: PageParts, action: RecordAction): Promise<void> {
  const { run, question, then } = action;
  try {
    if (question !== undefined && !await dialogs.ask(question)) return;
    const message = await run();
    if (message !== undefined) messages.say(message);
    then?.();
  } catch (error) {
    messages.warn(wordsOf(error));
  }
}
