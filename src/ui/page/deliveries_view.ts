import { wordsOf } from "./api.ts";
import { element, fill } from "./element.ts";
import { executionLink } from "./events_view.ts";
import { factsOf } from "./field_display.ts";
import { type Fields, flagOf, numberOf, recordsOf, textOf, timeOf } from "./fields.ts";
import {
  attemptSection,
  badge,
  code,
  emptyNote,
  type Fact,
  facts,
  linkTo,
  moment,
  note,
  panel,
  textBlock,
} from "./pieces.ts";
import { recordListView } from "./record_list.ts";
import { isNotFound, payloadPanel, RecordView } from "./record_view.ts";
import { DELIVERIES } from "./resources.ts";
import { shortId, tookText } from "./text.ts";
import type { OpenedView, PageParts } from "./view.ts";

/** The deliveries of events to endpoints. */
export const deliveriesView = recordListView({
  resource: DELIVERIES,
  title: "Deliveries",
  about: "Deliveries of events to endpoints, newest first.",
  next: [
    "Each event becomes a delivery for every endpoint that subscribes to its kind. Post one:",
    "weir events post order.created --data '{\"id\": 1}'",
  ],
  loads: {
    endpointId: async ({ api }) => {
      const page = await api.administer("/endpoints", { query: { limit: "200" } });
      return recordsOf(page, "items").map((one) => [textOf(one, "id"), textOf(one, "url")]);
    },
  },
  hasTimes: true,
  bulk: {
    adjective: "failed",
    appliesTo: (delivery) => textOf(delivery, "state") === "failed",
    label: "Resend",
    text: "Each delivery gets one more attempt with the same identifier.",
    run: (api, path) => api.administer(`${path}/resend`, { method: "POST" }),
  },
  columns: [
    "state",
    { field: "event", as: "code", isAside: true },
    {
      label: "Endpoint",
      look: "name",
      isAside: true,
      cell: ({ record, labelOf }) => {
        const id = textOf(record, "endpointId");
        const last = recordsOf(record, "attempts").at(-1);
        return [code(labelOf(id) ?? (textOf(last ?? {}, "url") || shortId(id)))];
      },
    },
    "createdAt",
    { label: "Attempts", cell: ({ record }) => attemptsText(record) },
    { field: "nextAttemptAt", label: "Next" },
    { label: "Reason", look: "prose", cell: ({ record }) => isDone(record) ? "" : textOf(record, "why") },
  ],
  record: { label: "Delivery", open: openDelivery },
});

function isDone(delivery: Fields): boolean {
  return textOf(delivery, "state") === "acknowledged";
}

function attemptsText(delivery: Fields): string {
  const attempts = recordsOf(delivery, "attempts");
  const last = attempts.at(-1);
  if (last === undefined) return "none yet";
  return `${attempts.length}, last ${numberOf(last, "status") ?? (textOf(last, "errorKind") || "in flight")}`;
}

function openDelivery(parts: PageParts, id: string): OpenedView {
  const payload = element("div");
  let eventId = "";
  return new RecordView(parts, {
    list: "deliveries",
    id,
    show: (delivery, now) => {
      if (eventId === "") void showPayload(parts, eventId = textOf(delivery, "eventId"), payload);
      return [
        panel("Delivery", facts(ownFacts(parts, delivery, now))),
        panel("Attempts", ...attemptsOf(delivery, now)),
      ];
    },
    actions: (path) => [{
      label: "Resend",
      look: "primary",
      run: async () => {
        const why = textOf(await parts.api.administer(`${path}/resend`, { method: "POST" }), "why");
        return why === "" ? "Sending it again with the same identifier." : `Not sent yet: ${why}.`;
      },
    }],
    below: payload,
  });
}

function ownFacts(parts: PageParts, delivery: Fields, now: number): Fact[] {
  const [endpointId, eventId] = [textOf(delivery, "endpointId"), textOf(delivery, "eventId")];
  return factsOf(DELIVERIES.fields, delivery, now, {
    endpointId: [linkTo(parts, endpointId, "endpoints", endpointId)],
    event: [code(textOf(delivery, "event")), " ", linkTo(parts, eventId, "events", eventId)],
  });
}

function attemptsOf(delivery: Fields, now: number): HTMLElement[] {
  const attempts = recordsOf(delivery, "attempts");
  if (attempts.length === 0) return [emptyNote("No attempts yet.")];
  return attempts.toReversed().map((attempt) => attemptOf(attempt, now));
}

function attemptOf(attempt: Fields, now: number): HTMLElement {
  const number = String(numberOf(attempt, "number") ?? "");
  const started = timeOf(attempt, "startedAt");
  const finished = timeOf(attempt, "finishedAt");
  const took = started === undefined || finished === undefined
    ? "in flight"
    : `took ${tookText(finished - started)}`;
  const status = numberOf(attempt, "status");
  const response = textOf(attempt, "response");
  const heading = [
    `Attempt ${number} `,
    badge(textOf(attempt, "result") || "in flight"),
    status === undefined ? undefined : badge(String(status), status < 300 ? "good" : "bad"),
    flagOf(attempt, "manual") ? badge("manual") : undefined,
  ];
  const line = [moment(started, now), note(` ${took} `), code(textOf(attempt, "url"))];
  const result = response === "" ? undefined : textBlock(`Response to attempt ${number}`, response);
  return attemptSection(heading, line, textOf(attempt, "error"), result);
}

async function showPayload(parts: PageParts, id: string, place: HTMLElement): Promise<void> {
  const { api } = parts;
  try {
    const event = await api.administer(`/events/${encodeURIComponent(id)}`);
    const link = executionLink(parts, event);
    const execution = link && panel("Execution", element("p", {}, "The event reports ", link));
    fill(place, [execution, payloadPanel(event)]);
  } catch (error) {
    const text = isNotFound(error) ? "The event no longer exists." : wordsOf(error);
    fill(place, [panel("Payload", emptyNote(text))]);
  }
}
