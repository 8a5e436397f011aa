import { Api } from "./api.ts";
import { ADMINISTRATION_VIEWS } from "./administration_views.ts";
import { Dialogs } from "./dialogs.ts";
import { button, element, focusHeading, setAttribute, setHidden, setText } from "./element.ts";
import { diagnosticsView } from "./diagnostics_view.ts";
import { explainView } from "./explain_view.ts";
import { Finder } from "./finder.ts";
import { addressOf, Filters } from "./filters.ts";
import { type LiveState, LiveStream } from "./live_stream.ts";
import { Messages } from "./messages.ts";
import { overLimitView } from "./over_limit_view.ts";
import { overviewView } from "./overview_view.ts";
import { updateMoments } from "./pieces.ts";
import { quotasView } from "./quotas_view.ts";
import { reloadsView } from "./reloads_view.ts";
import { rulesView } from "./rules_view.ts";
import { Session } from "./session.ts";
import { Shell } from "./shell.ts";
import { settingsView } from "./settings_view.ts";
import { type Counts, type Snapshot, withCounts } from "./snapshot.ts";
import type { PageParts, View } from "./view.ts";

const LIVE_VIEWS: readonly [View, ...View[]] = [
  overviewView,
  diagnosticsView,
  rulesView,
  overLimitView,
  quotasView,
  explainView,
  reloadsView,
  settingsView,
];
const TICK_MS = 1_000;
const clock: PageParts["clock"] = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
const WORDS = {
  connecting: "Connecting",
  live: "Live",
  hidden: "Paused: page is hidden",
  stopped: "Stopped",
  refused: "Token required",
} as const;

function openPage(): void {
  let snapshot: Snapshot | undefined;
  let receivedAt = 0;
  let history: readonly Counts[] = [];
  let state: LiveState = { kind: "connecting" };
  const session = new Session(globalThis.sessionStorage);
  const messages = new Messages(place("messages"), clock);
  const ask = globalThis.fetch.bind(globalThis);
  const parts: PageParts = {
    session,
    clock,
    api: new Api(session, ask),
    dialogs: new Dialogs(document.body, (text) => messages.warn(text)),
    messages,
    filters: new Filters(),
    live: () => ({ snapshot, receivedAt, history, requiresToken: state.kind === "refused" }),
    go: (view, id = "", filters) => {
      location.hash = addressOf(view, id, filters);
    },
  };
  const shell = new Shell(parts, [...LIVE_VIEWS, ...ADMINISTRATION_VIEWS] as typeof LIVE_VIEWS, {
    main: place("main"),
    nav: place("nav"),
  });
  const version = place("version");
  const line = new LiveLine(() => stream);
  const stream: LiveStream = new LiveStream({
    session,
    clock,
    fetch: ask,
    random: Math.random,
    onSnapshot: (next) => {
      warnOfNewVersion(messages, snapshot?.version, next.version);
      // The counters of another process begin again.
      if (snapshot?.startedAt !== next.startedAt) history = [];
      history = withCounts(history, next);
      snapshot = next;
      receivedAt = clock.now();
      setText(version, next.version);
      shell.update();
    },
    onState: (next) => {
      state = next;
      line.show(state, clock.now());
      shell.update();
    },
  });
  drawNav();
  openByKey(new Finder(parts, [...LIVE_VIEWS, ...ADMINISTRATION_VIEWS]));
  place("live").append(line.node);
  place("session").append(...sessionButtons(parts));
  session.onChange(() => {
    stream.followSession();
    shell.update();
  });
  globalThis.addEventListener("hashchange", () => shell.follow(location.hash));
  document.addEventListener("visibilitychange", () => stream.setHidden(document.hidden));
  globalThis.addEventListener("pagehide", () => forgetAll(parts, { keepsTab: true }));
  globalThis.addEventListener("pageshow", ({ persisted }) => persisted && session.restore());
  const tick = () => {
    line.show(state, clock.now());
    updateMoments(clock.now());
    shell.tick();
    clock.after(TICK_MS, tick);
  };
  tick();
  shell.follow(location.hash, { isFirst: true });
  stream.setHidden(document.hidden);
  if (!document.hidden) stream.start();
}

/** A page in the back-forward cache keeps neither tokens, typed ones included, nor secrets. */
function forgetAll({ session, dialogs, messages }: PageParts, options = {}): void {
  dialogs.closeAll();
  messages.clear();
  for (const input of document.querySelectorAll<HTMLInputElement>("input[type=password]")) input.value = "";
  session.forget(options);
}

/** The page does not reload itself, because that would lose the token. */
function warnOfNewVersion(messages: Messages, before: string | undefined, now: string): void {
  if (before === undefined || before === now) return;
  messages.warn(`The service is version ${now} now; this page is of version ${before}: reload it.`);
}

function sessionButtons(parts: PageParts): HTMLElement[] {
  const { session, messages } = parts;
  const word = element("span", { class: "note", role: "status" });
  const forget = button("Forget the token", () => {
    forgetAll(parts);
    messages.say("Token forgotten.");
  }, { look: "small", action: "forget" });
  const show = () => {
    setHidden(forget, !session.holdsToken);
    setText(word, !session.holdsToken ? "" : session.isKept ? "Token kept for this tab" : "Token in memory");
    place("session").hidden = !session.holdsToken;
  };
  show();
  session.onChange(show);
  return [word, forget];
}

function drawNav(): void {
  const nav = place("nav");
  const menu = place("menu");
  const setOpen = (isOpen: boolean) => {
    setAttribute(nav, "data-state", isOpen ? "open" : "");
    setAttribute(menu, "aria-expanded", String(isOpen));
  };
  menu.addEventListener("click", () => setOpen(menu.getAttribute("aria-expanded") !== "true"));
  globalThis.addEventListener("hashchange", () => setOpen(false));
  place("nav-live").append(...LIVE_VIEWS.map(linkTo));
  place("nav-administration").append(...ADMINISTRATION_VIEWS.map(linkTo));
  place("skip").addEventListener("click", focusHeading);
}

function openByKey(finder: Finder): void {
  place("find").addEventListener("click", () => finder.open());
  document.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey || event.key.toLowerCase() !== "k") return;
    event.preventDefault();
    finder.open();
  });
}

/** The only address that the page creates: no part of it comes from outside. */
function linkTo({ name, title }: View): HTMLElement {
  const link = element("a", {}, title);
  link.href = `#${name}`;
  return element("li", {}, link);
}

function place(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`Cannot find "${id}": page.ts and index.html differ`);
  return found;
}

const PAUSE = "Pause updates";

/** Shows the state of the live stream, with a button that stops or starts it. */
class LiveLine {
  readonly node: HTMLElement;
  readonly #word = element("span", { class: "word", role: "status" });
  readonly #button: HTMLButtonElement;
  #isOn = true;

  constructor(stream: () => LiveStream) {
    this.#button = button(PAUSE, () => this.#isOn ? stream().stop() : stream().start(), {
      look: "small",
      action: "live",
    });
    this.node = element("div", { class: "live" }, element("span", { class: "dot", "aria-hidden": "true" }));
    this.node.append(this.#word, this.#button);
  }

  show(state: LiveState, now: number): void {
    setAttribute(this.node, "data-state", state.kind);
    this.#isOn = state.kind !== "stopped" && state.kind !== "reconnecting";
    setText(
      this.#button,
      state.kind === "stopped" ? "Start" : state.kind === "reconnecting" ? "Now" : PAUSE,
    );
    this.#button.hidden = state.kind === "refused" || state.kind === "hidden";
    if (state.kind !== "reconnecting") return setText(this.#word, WORDS[state.kind]);
    const seconds = Math.max(1, Math.round((state.at - now) / 1_000));
    setText(this.#word, `Reconnecting in ${seconds} s: ${state.why}`);
  }
}

openPage();
