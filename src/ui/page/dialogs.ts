import { wordsOf } from "./api.ts";
import { button, type Child, element, focusLabelled } from "./element.ts";
import { Form, type FormField, type FormValues } from "./form.ts";

/** A yes-or-no question. */
export interface Question {
  readonly title: string;
  readonly text: string;
  readonly go: string;
  readonly isDangerous?: boolean;
}

/** A form in a dialog. */
interface FormQuestion {
  readonly title: string;
  readonly text?: string;
  readonly fields: readonly FormField[];
  readonly submit: string;
  /** The dialog closes when it resolves, and shows the secret, if any; an error is shown in the form. */
  readonly run: (values: FormValues) => Promise<ShownSecret | undefined>;
}

/** A secret that is shown once. */
export interface ShownSecret {
  readonly title: string;
  readonly text: string;
  readonly secret: string;
}

interface OpenDialog {
  readonly node: HTMLDialogElement;
  /** That of the page when the dialog was opened. */
  readonly address: string;
  /** Calls `onClose` and removes the dialog; does nothing when it is closed. */
  close(): void;
}

let dialogs = 0;

/** The dialogs of the page. They hold the focus while they are open and return it afterwards. */
export class Dialogs {
  readonly #place: HTMLElement;
  readonly #warn: (text: string) => void;
  readonly #open = new Set<OpenDialog>();

  /** `warn` reports an error of a form that is already closed. */
  constructor(place: HTMLElement, warn: (text: string) => void) {
    this.#place = place;
    this.#warn = warn;
  }

  ask({ title, text, go, isDangerous = false }: Question): Promise<boolean> {
    return new Promise((resolve) => {
      let isConfirmed = false;
      const yes = button(go, () => {
        isConfirmed = true;
        dialog.close();
      }, { look: isDangerous ? "danger" : "primary" });
      const no = button("Cancel", () => dialog.close());
      const children = [element("p", {}, text), element("div", { class: "buttons" }, yes, no)];
      const dialog = this.show(title, children, () => resolve(isConfirmed));
      no.focus();
    });
  }

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
        // Closed first, so that the focus returns to the element that opened the form.
        dialog.close();
        if (secret !== undefined) this.secret(secret);
      },
    });
    const dialog = this.show(title, [text === undefined ? undefined : element("p", {}, text), form.node]);
  }

  /** Shows a secret, and removes it from the page when the dialog is closed. */
  secret({ title, text, secret }: ShownSecret): void {
    const shown = element("code", { class: "secret", tabindex: "0", "aria-label": "The secret" }, secret);
    const status = element("p", { class: "hint", role: "status" });
    const copy = button("Copy", () => void copySecret(shown, status), { look: "primary" });
    const close = button("I have saved it", () => dialog.close());
    const buttons = element("div", { class: "buttons" }, copy, close);
    const warning = element("p", { class: "hint" }, "Shown only once: the service cannot show it again.");
    const children = [element("p", {}, text), shown, warning, status, buttons];
    const dialog = this.show(title, children, () => {
      shown.replaceChildren();
      document.removeEventListener("keydown", hold, true);
    });
    // The secret must not be lost by accident; a second Escape closes the dialog without a `cancel` event.
    const hold = (event: KeyboardEvent) => {
      if (event.key === "Escape") event.preventDefault();
    };
    document.addEventListener("keydown", hold, true);
    dialog.node.addEventListener("cancel", (event) => event.preventDefault());
    copy.focus();
  }

  closeAll(): void {
    for (const dialog of [...this.#open]) dialog.close();
  }

  /** Closes those of other addresses: the page hears of a new address only after the keys pressed since. */
  closeLeft(): void {
    for (const dialog of [...this.#open]) if (dialog.address !== location.hash) dialog.close();
  }

  /** Opens a dialog; `onClose` is called however it is closed. */
  show(title: string, children: readonly Child[], onClose = () => {}): OpenDialog {
    const id = `dialog-${++dialogs}`;
    const node = element("dialog", { "aria-labelledby": id }, element("h2", { id }, title), ...children);
    const opener = document.activeElement;
    const close = () => {
      if (!this.#open.delete(dialog)) return;
      // The `close` event of the browser comes later.
      onClose();
      node.close();
      node.remove();
      returnFocus(opener);
    };
    const dialog = { node, address: location.hash, close };
    node.addEventListener("close", close);
    this.#open.add(dialog);
    this.#place.append(node);
    node.showModal();
    return dialog;
  }
}

/** The browser has returned the focus, unless the opener was rebuilt or removed. */
function returnFocus(opener: Element | null): void {
  if (document.activeElement !== null && document.activeElement !== document.body) return;
  focusLabelled(opener?.getAttribute("aria-label") ?? "");
}

async function copySecret(shown: HTMLElement, status: HTMLElement): Promise<void> {
  try {
    // Undefined unless the page was served over TLS or from a loopback address.
    if (navigator.clipboard === undefined) throw new Error("Cannot copy: no clipboard");
    await navigator.clipboard.writeText(shown.textContent);
    status.textContent = "Copied.";
  } catch {
    globalThis.getSelection()?.selectAllChildren(shown);
    status.textContent = "The browser does not allow copying: the secret is selected, press Ctrl+C.";
  }
}
