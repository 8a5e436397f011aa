import { button, element, fill, focusLabelled } from "./element.ts";

/** An item of a menu. */
interface MenuItem {
  readonly label: string;
  /** Classes, such as `danger`. */
  readonly look?: string | undefined;
  readonly run: () => void;
}

const STEPS: Readonly<Record<string, (index: number, count: number) => number>> = {
  ArrowDown: (index, count) => (index + 1) % count,
  ArrowUp: (index, count) => (index + count - 1) % count,
  Home: () => 0,
  End: (_, count) => count - 1,
};

/** The menu that is open: it outlives the row of its button, which may be rebuilt. */
let menu: HTMLElement | undefined;

/** A button that opens a menu; `name` is what the actions are for. */
export function menuButton(name: string, items: () => readonly MenuItem[]): HTMLButtonElement {
  const label = `Actions of ${name}`;
  const made = button("⋯", () => open(made, label, items()), {
    look: "small",
    action: "menu",
    spoken: label,
  });
  made.setAttribute("aria-haspopup", "menu");
  return made;
}

function open(opener: HTMLElement, label: string, items: readonly MenuItem[]): void {
  menu?.remove();
  const opened = menu = element("div", { role: "menu", "aria-label": label });
  const buttons = items.map(({ label: name, look, run }) => {
    const item = button(name, () => {
      opened.hidePopover();
      if (!opener.isConnected) focusLabelled(label);
      run();
    }, look === undefined ? {} : { look });
    item.setAttribute("role", "menuitem");
    item.tabIndex = -1;
    return item;
  });
  fill(opened, buttons);
  opened.popover = "auto";
  opened.addEventListener("toggle", ({ newState }) => {
    if (newState === "closed") opened.remove();
  });
  opened.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (event.key === "Tab") opened.hidePopover();
    if (step === undefined) return;
    event.preventDefault();
    buttons[step(buttons.findIndex((one) => one === document.activeElement), buttons.length)]?.focus();
  });
  document.body.append(opened);
  // The browser returns the focus to the button when the menu closes.
  opener.focus();
  opened.showPopover();
  place(opened, opener.getBoundingClientRect());
  buttons[0]?.focus();
}

/** Below its button, or above it at the end of the window. */
function place(opened: HTMLElement, { top, bottom, right }: DOMRect): void {
  const { width, height } = opened.getBoundingClientRect();
  const fits = bottom + height <= innerHeight;
  opened.style.top = `${fits ? bottom : Math.max(0, top - height)}px`;
  opened.style.left = `${Math.max(0, right - width)}px`;
}
