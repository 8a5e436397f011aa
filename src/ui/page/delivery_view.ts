import { actButton } from "./acts.ts";
import { ApiProblem, wordsOf } from "./api.ts";
import { button, type Child, element, fill } from "./element.ts";
import { type Fields, flagOf, numberOf, recordsOf, textOf, timeOf } from "./fields.ts";
import { badge, code, facts, jsonBlock, moment, note, panel, textBlock } from "./pieces.ts";
import { tookText } from "./text.ts";
import type { OpenedView, PageParts } from "./view.ts";
import { Watched } from "./watched.ts";

/** One delivery: its attempts, what was sent, and a button that sends it again. */
export function openDelivery(parts: PageParts, id: string): OpenedView {
  const { api, clock, go } = parts;
  const place = element("div");
  const payload = element("div");
  const path = `/deliveries/${encodeURIComponent(id)}`;
  let eventId = "";
  const watched = new Watched(parts, place, {
    load: () => api.administer(path),
    show: (delivery) => {
      if (eventId === "") void showPayload(parts, eventId = textOf(delivery, "eventId"), payload);
      return [
        panel("Delivery", facts(factsOf(delivery, clock.now()))),
        panel("Attempts", ...attemptsOf(delivery, clock.now())),
      ];
    },
  });
  const resend = actButton(parts, {
    label: "Send again",
    run: async () => {
      await api.administer(`${path}/resend`, { method: "POST" });
      return "It is sent again, under the same identifier.";
    },
    then: () => watched.refresh(),
  }, { look: "primary" });
  const bar = element("div", { class: "bar" }, button("All deliveries", () => go("deliveries")), resend);
  return { nodes: [bar, place, payload], close: () => watched.close() };
}

function factsOf(delivery: Fields, now: number): (readonly [string, Child | readonly Child[]])[] {
  return [
    ["Identifier", code(textOf(delivery, "id"))],
    ["State", badge(textOf(delivery, "state"))],
    ["Why", textOf(delivery, "why")],
    ["Event", code(textOf(delivery, "event"))],
    ["Endpoint", code(textOf(delivery, "endpointId"))],
    ["Made", moment(timeOf(delivery, "createdAt"), now)],
    ["Next attempt", moment(timeOf(delivery, "nextAttemptAt"), now)],
    ["Ended", moment(timeOf(delivery, "finishedAt"), now)],
  ];
}

function attemptsOf(delivery: Fields, now: number): HTMLElement[] {
  const attempts = recordsOf(delivery, "attempts");
  if (attempts.length === 0) return [element("p", { class: "empty" }, "None was made yet.")];
  return attempts.toReversed().map((attempt) => attemptOf(attempt, now));
}

function attemptOf(attempt: Fields, now: number): HTMLElement {
  const number = String(numberOf(attempt, "number") ?? "");
  const started = timeOf(attempt, "startedAt");
  const finished = timeOf(attempt, "finishedAt");
  const took = started === undefined || finished === undefined
    ? "is under way"
    : `took ${tookText(finished - started)}`;
  const status = numberOf(attempt, "status");
  const error = textOf(attempt, "error");
  const response = textOf(attempt, "response");
  return element(
    "section",
    { class: "attempt" },
    element(
      "h3",
      {},
      `Attempt ${number} `,
      badge(textOf(attempt, "result") || "under way"),
      status === undefined ? undefined : badge(String(status), status < 300 ? "good" : "bad"),
      flagOf(attempt, "manual") ? badge("by hand") : undefined,
    ),
    element("p", {}, moment(started, now), note(` ${took} `), code(textOf(attempt, "url"))),
    error === "" ? undefined : element("p", { class: "problem" }, error),
    response === "" ? undefined : textBlock(`Answer to attempt ${number}`, response),
  );
}

async function showPayload({ api }: PageParts, id: string, place: HTMLElement): Promise<void> {
  try {
    const event = await api.administer(`/events/${encodeURIComponent(id)}`);
    const shown = flagOf(event, "isErased")
      ? element("p", { class: "empty" }, "It was erased.")
      : jsonBlock("Payload", event["data"]);
    fill(place, [panel("Payload", shown)]);
  } catch (error) {
    const isGone = error instanceof ApiProblem && error.status === 404;
    fill(place, [
      panel("Payload", element("p", { class: "empty" }, isGone ? "It is gone." : wordsOf(error))),
    ]);
  }
}
