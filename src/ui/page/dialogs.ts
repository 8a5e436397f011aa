import { wordsOf } from "./api.ts";
import { button, type Child, element, focusHeading } from "./element.ts";
import { Form, type FormField, type FormValues } from "./form.ts";

/** What a question is about. */
export interface Question {
  readonly title: string;
  readonly text: string;
  /** The label of the button that goes on. */
  readonly go: string;
  readonly isDangerous?: boolean;
}

/** What a form in a dialog is for. */
export interface FormQuestion {
  readonly title: string;
  readonly text?: string;
  readonly fields: readonly FormField[];
  readonly submit: string;
  /**
   * The dialog closes when it settles, and the secret that it answers, if it does, is shown then; a problem that it
   * throws is shown in the form.
   */
  readonly run: (values: FormValues) => Promise<ShownSecret | undefined>;
}

/** A secret that is shown this once. */
export interface ShownSecret {
  readonly title: string;
  readonly text: string;
  readonly secret: string;
}

/** A dialog on the page. */
interface OpenDialog {
  readonly node: HTMLDialogElement;
  /** Calls the `onClose` of the dialog, then removes it; nothing to do when it is closed already. */
  close(): void;
}

let dialogs = 0;

/** The dialogs of the page. They hold the focus while they are open, and give it back. */
export class Dialogs {
  readonly #place: HTMLElement;
  readonly #warn: (text: string) => void;
  readonly #open = new Set<OpenDialog>();

  /** `warn` tells of what went wrong when nobody looks at the form any more. */
  constructor(place: HTMLElement, warn: (text: string) => void) {
    this.#place = place;
    this.#warn = warn;
  }

  /** Asks before something is done; whether it shall be. */
  ask({ title, text, go, isDangerous = false }: Question): Promise<boolean> {
    return new Promise((resolve) => {
      let isMeant = false;
      const yes = button(go, () => {
        isMeant = true;
        dialog.close();
      }, { look: isDangerous ? "danger" : "primary" });
      const no = button("Cancel", () => dialog.close());
      const children = [element("p", {}, text), element("div", { class: "buttons" }, yes, no)];
      const dialog = this.#show(title, children, () => resolve(isMeant));
      no.focus();
    });
  }

  /** A form of its own. */
  form({ title, text, fields, submit, run }: FormQuestion): void {
    const cancel = button("Cancel", () => dialog.close());
    const form = new Form({
      fields,
      submit,
      buttons: [cancel],
      run: async (values) => {
        const secret = await run(values).catch((error: unknown) => {
          if (dialog.node.open) throw error;
          this.#warn(`${title}: ${wordsOf(error)}`);
          return undefined;
        });
        // Closed first, so that the focus goes back from one to the other to where it came from.
        dialog.close();
        if (secret !== undefined) void this.secret(secret);
      },
    });
    const dialog = this.#show(title, [text === undefined ? undefined : element("p", {}, text), form.node]);
  }

  /** Shows a secret until its dialog closes, and not a moment longer. Settles then. */
  secret({ title, text, secret }: ShownSecret): Promise<void> {
    return new Promise((resolve) => {
      const shown = element("code", { class: "secret", tabindex: "0", "aria-label": "The secret" }, secret);
      const told = element("p", { class: "hint", role: "status" });
      const copy = button("Copy", () => void copied(shown, told), { look: "primary" });
      const close = button("I have kept it", () => dialog.close());
      const buttons = element("div", { class: "buttons" }, copy, close);
      const warning = element(
        "p",
        { class: "hint" },
        "It is shown this once: the service cannot show it again.",
      );
      const children = [element("p", {}, text), shown, warning, told, buttons];
      const dialog = this.#show(title, children, () => {
        shown.replaceChildren();
        document.removeEventListener("keydown", hold, true);
        resolve();
      });
      // Escape is pressed in passing, and there is no second time; pressed twice, it is not asked about by `cancel`.
      const hold = (event: KeyboardEvent) => {
        if (event.key === "Escape") event.preventDefault();
      };
      document.addEventListener("keydown", hold, true);
      dialog.node.addEventListener("cancel", (event) => event.preventDefault());
      copy.focus();
    });
  }

  /** Closes whatever is open, and leaves nothing of it. */
  closeAll(): void {
    for (const dialog of [...this.#open]) dialog.close();
  }

  #show(title: string, children: readonly Child[], onClose = () => {}): OpenDialog {
    const id = `dialog-${++dialogs}`;
    const node = element("dialog", { "aria-labelledby": id }, element("h2", { id }, title), ...children);
    const opener = document.activeElement;
    const close = () => {
      if (!this.#open.delete(dialog)) return;
      // The browser's own `close` event comes later, when the dialog can no longer be seen.
      onClose();
      node.close();
      node.remove();
      giveFocusBack(opener);
    };
    const dialog = { node, close };
    node.addEventListener("close", close);
    this.#open.add(dialog);
    this.#place.append(node);
    node.showModal();
    return dialog;
  }
}

/** The dialog has given the focus back itself, unless what it came from was made anew, or is gone. */
function giveFocusBack(opener: Element | null): void {
  const isNowhere = () => document.activeElement === null || document.activeElement === document.body;
  if (!isNowhere()) return;
  const label = opener?.getAttribute("aria-label") ?? "";
  const again = [...document.querySelectorAll<HTMLElement>("main [aria-label]")];
  if (label !== "") again.find((one) => one.getAttribute("aria-label") === label)?.focus();
  if (isNowhere()) focusHeading();
}

async function copied(shown: HTMLElement, told: HTMLElement): Promise<void> {
  try {
    // Absent where the page did not come by TLS or from the loopback address.
    if (navigator.clipboard === undefined) throw new Error("Cannot copy: there is no clipboard");
    await navigator.clipboard.writeText(shown.textContent);
    told.textContent = "Copied.";
  } catch {
    globalThis.getSelection()?.selectAllChildren(shown);
    told.textContent = "The browser does not let this page copy: it is selected, press Ctrl and C.";
  }
}
