import { wordsOf } from "./api.ts";
import type { Question } from "./dialogs.ts";
import { button, type ButtonOptions } from "./element.ts";
import type { PageParts } from "./view.ts";

/** Something that a button of a record does. */
export interface Act {
  readonly label: string;
  /** Makes the calls; answers what to say when it is done, if anything. */
  readonly run: () => Promise<string | undefined>;
  /** Asked first; nothing is where it is absent. */
  readonly question?: Question;
  /** Told after it was done. */
  readonly then?: () => void;
}

/** A button that does something about a record: asks where it should, says how it went, does it once at a time. */
export function actButton(parts: PageParts, act: Act, options: ButtonOptions = {}): HTMLButtonElement {
  const made = button(act.label, () => {
    if (made.getAttribute("aria-disabled") === "true") return;
    // A button that is disabled would lose the focus.
    made.setAttribute("aria-disabled", "true");
    void carryOut(parts, act).finally(() => made.removeAttribute("aria-disabled"));
  }, { look: "small", action: act.label, ...options });
  return made;
}

async function carryOut({ dialogs, messages }: PageParts, { run, question, then }: Act): Promise<void> {
  try {
    if (question !== undefined && !await dialogs.ask(question)) return;
    const said = await run();
    if (said !== undefined) messages.say(said);
    then?.();
  } catch (error) {
    messages.warn(wordsOf(error));
  }
}
