import { Api } from "./api.ts";
import { auditView } from "./audit_view.ts";
import { browserClock as clock } from "./clock.ts";
import { deliveriesView } from "./deliveries_view.ts";
import { Dialogs } from "./dialogs.ts";
import { button, element, focusHeading, setHidden, setText } from "./element.ts";
import { endpointsView } from "./endpoints_view.ts";
import { eventKeysView } from "./event_keys_view.ts";
import { eventsView } from "./events_view.ts";
import { executionsView } from "./executions_view.ts";
import { explainView } from "./explain_view.ts";
import { LiveLine } from "./live_line.ts";
import { type LiveState, LiveStream } from "./live_stream.ts";
import { Messages } from "./messages.ts";
import { overLimitView } from "./over_limit_view.ts";
import { overviewView } from "./overview_view.ts";
import { type RatePoint, withPoint } from "./rate_points.ts";
import { rulesView } from "./rules_view.ts";
import { Session } from "./session.ts";
import { Shell } from "./shell.ts";
import type { Snapshot } from "./snapshot.ts";
import { triggersView } from "./triggers_view.ts";
import type { PageParts, View } from "./view.ts";

const LIVE: readonly [View, ...View[]] = [overviewView, rulesView, overLimitView, explainView];
const ADMINISTRATION: readonly View[] = [
  deliveriesView,
  executionsView,
  endpointsView,
  triggersView,
  eventsView,
  eventKeysView,
  auditView,
];
const EVERY_SECOND_MS = 1_000;

openPage();

function openPage(): void {
  let snapshot: Snapshot | undefined;
  let heardAt = 0;
  let points: readonly RatePoint[] = [];
  let state: LiveState = { kind: "connecting" };
  const session = new Session();
  const messages = new Messages(place("messages"), clock);
  const ask = globalThis.fetch.bind(globalThis);
  const parts: PageParts = {
    session,
    clock,
    api: new Api({ session, fetch: ask }),
    dialogs: new Dialogs(document.body, (text) => messages.warn(text)),
    messages,
    filters: new Map(),
    live: () => ({ snapshot, heardAt, points, isRefused: state.kind === "refused" }),
    go: (view, id) => {
      location.hash = id === undefined ? view : `${view}/${encodeURIComponent(id)}`;
    },
  };
  const shell = new Shell(parts, [...LIVE, ...ADMINISTRATION] as typeof LIVE, {
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
    onSnapshot: (taken) => {
      tellOfVersion(messages, snapshot?.version, taken.version);
      snapshot = taken;
      heardAt = clock.now();
      const { perSecond, overLimitShare } = taken.decisions;
      if (perSecond !== null) {
        points = withPoint(points, { at: taken.at, perSecond, overShare: overLimitShare ?? 0 });
      }
      setText(version, taken.version);
      shell.update();
    },
    onState: (taken) => {
      state = taken;
      line.show(state, clock.now());
      shell.update();
    },
  });
  drawNav();
  place("live").append(line.node);
  place("session").append(...sessionButtons(parts));
  session.onChange(() => {
    stream.followSession();
    shell.update();
  });
  globalThis.addEventListener("hashchange", () => shell.follow(location.hash));
  document.addEventListener("visibilitychange", () => stream.setHidden(document.hidden));
  globalThis.addEventListener("pagehide", () => forgetAll(parts));
  const tick = () => {
    line.show(state, clock.now());
    shell.tick();
    clock.after(EVERY_SECOND_MS, tick);
  };
  tick();
  shell.follow(location.hash, { isFirst: true });
  stream.setHidden(document.hidden);
  if (!document.hidden) stream.start();
}

/** A page that is kept to come back to keeps neither a token, nor one that was being typed in, nor a secret. */
function forgetAll({ session, dialogs, messages }: PageParts): void {
  dialogs.closeAll();
  messages.clear();
  for (const input of document.querySelectorAll<HTMLInputElement>("input[type=password]")) input.value = "";
  session.forget();
}

/** The page is that of the program that served it; one that loaded itself again would lose the token. */
function tellOfVersion(messages: Messages, before: string | undefined, now: string): void {
  if (before === undefined || before === now) return;
  messages.warn(`The service is version ${now} now; this page is that of ${before}: load it again.`);
}

function sessionButtons(parts: PageParts): HTMLElement[] {
  const { session, messages } = parts;
  const word = element("span", { class: "note", role: "status" });
  const forget = button("Forget the token", () => {
    forgetAll(parts);
    messages.say("The token is forgotten.");
  }, { look: "small", action: "forget" });
  const show = () => {
    setHidden(forget, !session.holdsToken);
    setText(word, session.holdsToken ? "A token is in memory" : "");
    place("session").hidden = !session.holdsToken;
  };
  show();
  session.onChange(show);
  return [word, forget];
}

function drawNav(): void {
  place("nav-live").append(...LIVE.map(linkTo));
  place("nav-administration").append(...ADMINISTRATION.map(linkTo));
  const skip = place("skip");
  skip.addEventListener("click", focusHeading);
}

/** A link to a view of ours: the one address that the page makes, and none of its names comes from outside. */
function linkTo({ name, title }: View): HTMLElement {
  const link = element("a", {}, title);
  link.href = `#${name}`;
  return element("li", {}, link);
}

function place(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`Cannot find "${id}": the page is not ours`);
  return found;
}
