import { type Child, element, fill, focusHeading, setAttribute, setText } from "./element.ts";
import { momentText } from "./text.ts";
import { tokenForm } from "./token_form.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** Snapshots arrive every second; older ones are marked as stale. */
const STALE_MS = 3_000;

type Places = Readonly<Record<"main" | "nav", HTMLElement>>;

/** Shows the view that the fragment of the address names, or the reason why it is closed. */
export class Shell {
  readonly #parts: PageParts;
  readonly #views: readonly View[];
  readonly #places: Places;
  #view: View;
  #id = "";
  #gate = "";
  #opened: OpenedView | undefined;
  readonly #stale = element("p", { class: "stale", role: "status" });

  constructor(parts: PageParts, views: readonly [View, ...View[]], places: Places) {
    this.#parts = parts;
    this.#views = views;
    this.#places = places;
    this.#view = views[0];
  }

  /** Opens the view in the address. */
  follow(hash: string, { isFirst = false } = {}): void {
    this.#parts.dialogs.closeLeft();
    const [path = "", query = ""] = hash.replace(/^#/, "").split("?");
    const [name = "", id = ""] = path.split("/");
    const view = this.#views.find((one) => one.name === name) ?? this.#views[0];
    if (view === undefined) return;
    this.#view = view;
    this.#id = decoded(id);
    if (this.#id === "") this.#parts.filters.follow(view.name, query);
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

  /** Called for each new snapshot and each change of the session. */
  update(): void {
    this.tick();
    if (this.#gateNow() !== this.#gate) this.#draw();
    else this.#opened?.update?.();
  }

  /** Called every second: marks statistics as stale. */
  tick(): void {
    const { snapshot, receivedAt } = this.#parts.live();
    const now = this.#parts.clock.now();
    const isStale = snapshot !== undefined && now - receivedAt > STALE_MS &&
      this.#view.isAdministration !== true;
    setText(this.#stale, isStale ? `Not live: as of ${momentText(receivedAt, now)}.` : "");
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

  #nodes(): readonly Child[] {
    const { session } = this.#parts;
    switch (this.#gate.split(":")[0]) {
      case "off":
        return [closed("The administration is off: ADMIN_TOKEN is not set.")];
      case "without":
        return [closed("The webhook service is off: WEBHOOK_STORE is not set.")];
      case "administration":
        return [tokenForm(session, "administration")];
      case "live":
        return [tokenForm(session, "live")];
      default:
        this.#opened = this.#view.open(this.#parts, this.#id);
        return this.#opened.nodes;
    }
  }

  /** Why the view is closed; empty when it is open. */
  #gateNow(): string {
    const { session } = this.#parts;
    const { snapshot, requiresToken } = this.#parts.live();
    if (this.#view.isAdministration !== true) {
      return requiresToken ? `live:${session.problem("live") ?? ""}` : "";
    }
    if (snapshot !== undefined && !snapshot.administration) return "off";
    if (snapshot !== undefined && !snapshot.webhooks) return "without";
    if (session.tokenFor("administration") !== undefined) return session.isReadOnly ? "open:read" : "";
    return `administration:${session.problem("administration") ?? ""}`;
  }
}

function closed(text: string): HTMLElement {
  return element("section", { class: "panel" }, element("p", {}, text));
}

function decoded(text: string): string {
  try {
    const id = decodeURIComponent(text);
    // Browsers resolve these in a path.
    return id === "." || id === ".." ? "" : id;
  } catch {
    return "";
  }
}
