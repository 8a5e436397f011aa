import { element, fill, focusHeading, setAttribute, setText } from "./element.ts";
import { momentText } from "./text.ts";
import { tokenForm } from "./token_form.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** Figures come each second; those that are older than this are told apart. */
const FRESH_MS = 3_000;

/** Where the shell draws. */
export interface ShellPlaces {
  readonly main: HTMLElement;
  readonly nav: HTMLElement;
}

/**
 * Shows one view at a time, by what stands behind `#` in the address, behind the token where it wants one. A view is
 * opened anew only when someone goes to it, or when what keeps it closed has changed.
 */
export class Shell {
  readonly #parts: PageParts;
  readonly #views: readonly View[];
  readonly #places: ShellPlaces;
  #view: View;
  #id = "";
  #gate = "";
  #opened: OpenedView | undefined;
  readonly #stale = element("p", { class: "stale", role: "status" });

  constructor(parts: PageParts, views: readonly [View, ...View[]], places: ShellPlaces) {
    this.#parts = parts;
    this.#views = views;
    this.#places = places;
    this.#view = views[0];
  }

  /** Goes to where the address points. */
  follow(hash: string, { isFirst = false } = {}): void {
    const [name = "", id = ""] = hash.replace(/^#/, "").split("/");
    const view = this.#views.find((one) => one.name === name) ?? this.#views[0];
    if (view === undefined) return;
    this.#view = view;
    this.#id = decoded(id);
    this.#parts.dialogs.closeAll();
    this.#draw();
    for (const link of this.#places.nav.querySelectorAll("a")) {
      if (link.hash === `#${view.name}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${view.title} · Weir`;
    if (isFirst) return;
    globalThis.scrollTo(0, 0);
    focusHeading();
  }

  /** Told of each new snapshot, and of each change of the session. */
  update(): void {
    this.tick();
    if (this.#gateNow() !== this.#gate) this.#draw();
    else this.#opened?.update?.();
  }

  /** Told each second: figures that are no more those of this second are said to be older. */
  tick(): void {
    const { snapshot, heardAt } = this.#parts.live();
    const now = this.#parts.clock.now();
    const isStale = snapshot !== undefined && now - heardAt > FRESH_MS &&
      this.#view.isAdministration !== true;
    setText(this.#stale, isStale ? `Not live: this is how it was at ${momentText(heardAt, now)}.` : "");
    setAttribute(this.#places.main, "data-state", isStale ? "stale" : "");
  }

  #draw(): void {
    this.#opened?.close?.();
    this.#opened = undefined;
    this.#gate = this.#gateNow();
    const { title, about } = this.#view;
    const head = [element("h1", { tabindex: "-1" }, title), element("p", { class: "about" }, about)];
    const hadFocus = this.#places.main.contains(document.activeElement);
    fill(this.#places.main, [...head, this.#stale, ...this.#nodes()]);
    if (hadFocus) focusHeading();
    this.tick();
  }

  #nodes(): readonly (Node | string | undefined)[] {
    const { session } = this.#parts;
    switch (this.#gate.split(":")[0]) {
      case "off":
        return [closed("ADMIN_TOKEN of the service is not set, so there is no administration.")];
      case "without":
        return [closed("The webhook service is off: WEBHOOK_STORE, the name of its database, turns it on.")];
      case "administration":
        return [tokenForm(session, "administration")];
      case "live":
        return [tokenForm(session, "live")];
      default:
        this.#opened = this.#view.open(this.#parts, this.#id);
        return this.#opened.nodes;
    }
  }

  /** What keeps the view closed; empty where nothing does. */
  #gateNow(): string {
    const { session } = this.#parts;
    const { snapshot, isRefused } = this.#parts.live();
    if (this.#view.isAdministration !== true) {
      return isRefused ? `live:${session.problem("live") ?? ""}` : "";
    }
    if (snapshot !== undefined && !snapshot.administration) return "off";
    if (snapshot !== undefined && !snapshot.webhooks) return "without";
    if (session.tokenFor("administration") !== undefined) return "";
    return `administration:${session.problem("administration") ?? ""}`;
  }
}

function closed(text: string): HTMLElement {
  return element("section", { class: "panel" }, element("p", {}, text));
}

function decoded(text: string): string {
  try {
    const id = decodeURIComponent(text);
    // A path that a browser makes of these leads to something else.
    return id === "." || id === ".." ? "" : id;
  } catch {
    return "";
  }
}
