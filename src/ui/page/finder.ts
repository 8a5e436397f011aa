import { ApiProblem } from "./api.ts";
import type { Dialogs } from "./dialogs.ts";
import { element, fill, setText } from "./element.ts";
import { type Fields, recordsOf, textOf } from "./fields.ts";
import type { PageParts, View } from "./view.ts";

/** Something that was found. */
interface Found {
  readonly kind: string;
  readonly text: string;
  readonly open: () => void;
}

/** The lists whose records are found by their identifier, with the noun of a record. */
const LISTS = [
  ["deliveries", "Delivery"],
  ["executions", "Execution"],
  ["endpoints", "Endpoint"],
  ["events", "Event"],
  ["replays", "Replay"],
  ["triggers", "Trigger"],
  ["event-keys", "Event key"],
] as const;
/** Those that show all of a record themselves. */
const WHOLE_LISTS: readonly string[] = ["triggers", "event-keys"];
const IDENTIFIER = /^[0-9a-f][0-9a-f-]{5,35}$/i;
/** Most workflows that are found by their names. */
const MAX_WORKFLOWS = "200";
const TYPING_MS = 150;
/** Most results of a kind. */
const MAX_FOUND = 8;

/** Finds views, rules, settings and records by a part of their name, or by their identifier. */
export class Finder {
  readonly #parts: PageParts;
  readonly #views: readonly View[];
  readonly #input = element("input", {
    type: "text",
    role: "combobox",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "A view, a rule, a setting, a workflow or an identifier",
    "aria-label": "Find",
    "aria-expanded": "true",
    "aria-controls": "found",
  });
  readonly #list = element("div", { role: "listbox", id: "found", "aria-label": "Found" });
  readonly #status = element("p", { class: "note", role: "status" });
  #dialog: ReturnType<Dialogs["show"]> | undefined;
  #found: readonly Found[] = [];
  /** The text that they were found by. */
  #text = "";
  #chosen = 0;
  /** Records that are found by their names and are not in the snapshot. */
  readonly #loaded = new Map<"settings" | "workflows", readonly Fields[]>();
  #round = 0;
  #cancel = () => {};

  constructor(parts: PageParts, views: readonly View[]) {
    this.#parts = parts;
    this.#views = views;
    this.#input.addEventListener("input", () => this.#search());
    this.#input.addEventListener("keydown", (event) => this.#onKey(event));
  }

  /** Opens the finder, unless another dialog is open. */
  open(): void {
    if (document.querySelector("dialog[open]") !== null) return;
    this.#input.value = "";
    this.#found = [];
    this.#dialog = this.#parts.dialogs.show("Find", [this.#input, this.#list, this.#status], () => {
      this.#round++;
      this.#cancel();
    });
    this.#input.focus();
    this.#search();
    void this.#loadSettings();
    void this.#loadWorkflows();
  }

  /** The settings of a service do not change while it runs. */
  async #loadSettings(): Promise<void> {
    if (this.#loaded.has("settings")) return;
    // Without a token that is required there are none to find.
    const answer = await this.#parts.api.settings().catch(() => undefined);
    if (answer !== undefined) this.#load("settings", recordsOf(answer, "settings"));
  }

  async #loadWorkflows(): Promise<void> {
    const { api, session } = this.#parts;
    if (session.tokenFor("administration") === undefined) return;
    const query = { limit: MAX_WORKFLOWS };
    const answer = await api.administer("/workflows", { query }).catch(() => undefined);
    if (answer !== undefined) this.#load("workflows", recordsOf(answer, "items"));
  }

  #load(kind: "settings" | "workflows", records: readonly Fields[]): void {
    this.#loaded.set(kind, records);
    if (this.#input.isConnected) this.#search();
  }

  #search(): void {
    const text = this.#input.value.trim().toLowerCase();
    const round = ++this.#round;
    const known = this.#known(text);
    this.#cancel();
    this.#show(known, text);
    if (!IDENTIFIER.test(text) || this.#parts.session.tokenFor("administration") === undefined) return;
    this.#cancel = this.#parts.clock.after(TYPING_MS, async () => {
      setText(this.#status, "Looking for records…");
      const records = await this.#records(text);
      if (round === this.#round) this.#show([...records, ...known], text);
    });
  }

  #known(text: string): Found[] {
    const { go, live } = this.#parts;
    const isMatch = (...texts: string[]) => texts.some((one) => one.toLowerCase().includes(text));
    const views = this.#views.filter(({ name, title }) => isMatch(name, title)).map(({ name, title }) => {
      return { kind: "View", text: title, open: () => go(name) };
    });
    if (text === "") return views;
    const rules = live().snapshot?.rules.filter(({ name }) => isMatch(name)).map(({ name }) => {
      return { kind: "Rule", text: name, open: () => go("rules", "", { filter: name }) };
    });
    const names = this.#loaded.get("settings")?.map((one) => textOf(one, "name")).filter((name) =>
      isMatch(name)
    );
    const settings = names?.map((name) => {
      return { kind: "Setting", text: name, open: () => go("settings", "", { filter: name, show: "all" }) };
    });
    const ids = this.#loaded.get("workflows")?.map((one) => textOf(one, "id")).filter((id) => isMatch(id));
    const workflows = ids?.map((id) => ({ kind: "Workflow", text: id, open: () => go("workflows", id) }));
    return [views, rules ?? [], workflows ?? [], settings ?? []].flatMap((some) => some.slice(0, MAX_FOUND));
  }

  async #records(id: string): Promise<Found[]> {
    const { api, go } = this.#parts;
    const found = await Promise.all(LISTS.map(async ([list, kind]) => {
      const records = await api.administer(`/${list}/${encodeURIComponent(id)}`)
        .then((record) => [record], (error: unknown) => {
          // Several identifiers may begin with this one.
          return error instanceof ApiProblem ? error.candidates.map((id): Fields => ({ id })) : [];
        });
      return records.map((record) => {
        const open = () => go(list, WHOLE_LISTS.includes(list) ? "" : textOf(record, "id"));
        return { kind, text: textOf(record, "url") || textOf(record, "name") || textOf(record, "id"), open };
      });
    }));
    return found.flat();
  }

  #show(found: readonly Found[], text: string): void {
    // More may arrive for the same text: the reader's choice stays.
    const chosen = text === this.#text ? this.#found[this.#chosen] : undefined;
    this.#found = found;
    this.#text = text;
    const options = found.map(({ kind, text }, index) => {
      const option = element(
        "div",
        { role: "option", id: `found-${index}` },
        element("code", {}, text),
        element("span", { class: "note" }, kind),
      );
      option.addEventListener("click", () => this.#open(index));
      return option;
    });
    fill(this.#list, options);
    setText(this.#status, found.length === 0 ? `Nothing found for "${text}".` : "");
    this.#choose(
      Math.max(0, found.findIndex((one) => one.kind === chosen?.kind && one.text === chosen.text)),
    );
  }

  #choose(index: number): void {
    this.#chosen = index;
    for (const [at, option] of [...this.#list.children].entries()) {
      option.setAttribute("aria-selected", String(at === index));
      if (at === index) option.scrollIntoView({ block: "nearest" });
    }
    if (this.#found.length === 0) this.#input.removeAttribute("aria-activedescendant");
    else this.#input.setAttribute("aria-activedescendant", `found-${index}`);
  }

  #onKey(event: KeyboardEvent): void {
    const count = this.#found.length;
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? count - 1 : 0;
    if (step === 0 && event.key !== "Enter") return;
    event.preventDefault();
    if (event.key === "Enter") this.#open(this.#chosen);
    else if (count > 0) this.#choose((this.#chosen + step) % count);
  }

  #open(index: number): void {
    const found = this.#found[index];
    if (found === undefined) return;
    this.#dialog?.close();
    found.open();
  }
}
