import { button, element, fill } from "./element.ts";
import { executionLink } from "./events_view.ts";
import { factsOf } from "./field_display.ts";
import { type Fields, fieldsOf, flagOf, numberOf, parseExact, recordsOf, textOf, timeOf } from "./fields.ts";
import {
  badge,
  code,
  emptyNote,
  type Fact,
  facts,
  jsonBlock,
  linkTo,
  moment,
  note,
  panel,
  textBlock,
  type Tone,
  unevenColumns,
} from "./pieces.ts";
import { endpointChoices } from "./record_filters.ts";
import { recordListView } from "./record_list.ts";
import type { RecordAction } from "./record_action.ts";
import { RecordView } from "./record_view.ts";
import { countReplay } from "./replays_view.ts";
import { DELIVERIES, DELIVERY_RETRY } from "./resources.ts";
import { curlText, shortId, tookText } from "./text.ts";
import { foldedPart, timeline } from "./timeline.ts";
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
  loads: { endpointId: endpointChoices },
  hasTimes: true,
  bulk: {
    adjective: "failed",
    appliesTo: (delivery) => textOf(delivery, "state") === "failed",
    label: "Resend",
    text: "Each delivery gets one more attempt with the same identifier.",
    run: (api, path) => api.administer(`${path}/resend`, { method: "POST" }),
  },
  tools: (parts, query) => [retryAction(parts, query)],
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

/** Retries all deliveries that the filters select, or the failed ones among them. */
function retryAction(parts: PageParts, query: () => Readonly<Record<string, string>>): RecordAction {
  return {
    label: "Retry all matching",
    run: async () => {
      const body = Object.fromEntries(Object.entries(query()).filter(([, value]) => value !== ""));
      const { state = "failed" } = body;
      if (!DELIVERY_RETRY.state.choices.some((choice) => choice === state) || "replayId" in body) {
        return "Only failed and retrying deliveries can be retried, and not by their replay: change the filters.";
      }
      const start = await countReplay(parts, {
        path: "/deliveries/retry",
        body,
        noun: `${state} deliveries`,
        go: "Retry them",
      });
      await start();
      return undefined;
    },
  };
}

function attemptsText(delivery: Fields): string {
  const attempts = recordsOf(delivery, "attempts");
  const last = attempts.at(-1);
  if (last === undefined) return "none yet";
  return `${attempts.length}, last ${numberOf(last, "status") ?? (textOf(last, "errorKind") || "in flight")}`;
}

function openDelivery(parts: PageParts, id: string): OpenedView {
  // Requests never change: they are read again only after a further attempt.
  let requests: Fields = {};
  let attempts = -1;
  return new RecordView(parts, {
    list: "deliveries",
    id,
    more: async (delivery) => {
      const ended = recordsOf(delivery, "attempts").filter((one) => timeOf(one, "finishedAt") !== undefined);
      if (ended.length === attempts) return requests;
      // Without them, the delivery itself is shown, and they are asked for again.
      const read = await parts.api.administer(`/deliveries/${encodeURIComponent(id)}/requests`).catch(
        () => {},
      );
      if (read === undefined) return {};
      attempts = ended.length;
      return requests = read;
    },
    show: (delivery, now) => [
      unevenColumns(
        [panel("Timeline", timelineOf(parts, delivery, now))],
        [panel("Delivery", facts(ownFacts(parts, delivery, now))), panel("Body", bodyOf(delivery))],
      ),
    ],
    actions: ({ path }) => [{
      label: "Resend",
      look: "primary",
      run: async () => {
        const why = textOf(await parts.api.administer(`${path}/resend`, { method: "POST" }), "why");
        return why === "" ? "Sending it again with the same identifier." : `Not sent yet: ${why}.`;
      },
    }],
  });
}

function ownFacts(parts: PageParts, delivery: Fields, now: number): Fact[] {
  const endpointId = textOf(delivery, "endpointId");
  const url = textOf(recordsOf(delivery, "attempts").at(-1) ?? {}, "url");
  const execution = executionLink(parts, { ...delivery, data: fieldsOf(parsedBody(delivery))["data"] });
  const shown = factsOf(DELIVERIES.fields, delivery, now, {
    endpointId: [linkTo(parts, url || endpointId, "endpoints", endpointId)],
    // In the timeline.
    event: undefined,
    createdAt: undefined,
    finishedAt: undefined,
    nextAttemptAt: undefined,
    why: undefined,
  });
  return execution === undefined ? shown : [...shown, ["Execution", execution]];
}

/** The attempts between the event and what follows. */
function timelineOf(parts: PageParts, delivery: Fields, now: number): HTMLElement {
  const requests = recordsOf(delivery, "requests");
  const attempts = recordsOf(delivery, "attempts").map((attempt) => {
    const request = requests.find((one) => one["number"] === attempt["number"]);
    return attemptOf(parts, { attempt, request, body: textOf(delivery, "body"), now });
  });
  const event = {
    tone: "quiet",
    heading: ["Event ", code(textOf(delivery, "event"))],
    line: [
      moment(timeOf(delivery, "createdAt"), now),
      " ",
      linkTo(parts, textOf(delivery, "eventId"), "events", textOf(delivery, "eventId")),
    ],
  } as const;
  const state = textOf(delivery, "state");
  const at = timeOf(delivery, "finishedAt") ?? timeOf(delivery, "nextAttemptAt");
  const end = {
    tone: TONES[state] ?? "quiet",
    heading: [END_WORDS[state] ?? "Next attempt"],
    line: at === undefined ? [] : [moment(at, now), " "],
  } as const;
  const why = note(textOf(delivery, "why"));
  return timeline([event, ...attempts, { ...end, line: [...end.line, why] }]);
}

const TONES: Readonly<Record<string, Tone>> = { acknowledged: "good", failed: "bad", retrying: "warn" };
const END_WORDS: Readonly<Record<string, string>> = { acknowledged: "Acknowledged", failed: "Failed" };

interface ShownAttempt {
  readonly attempt: Fields;
  /** Absent where none was sent, or by an older release. */
  readonly request: Fields | undefined;
  readonly body: string;
  readonly now: number;
}

function attemptOf(parts: PageParts, { attempt, request, body, now }: ShownAttempt) {
  const number = String(numberOf(attempt, "number") ?? "");
  const [started, finished] = [timeOf(attempt, "startedAt"), timeOf(attempt, "finishedAt")];
  const took = started === undefined || finished === undefined
    ? "in flight"
    : `took ${tookText(finished - started)}`;
  const status = numberOf(attempt, "status");
  const result = textOf(attempt, "result");
  const response = textOf(attempt, "response");
  return {
    tone: result === "failed" ? "bad" : TONES[result] ?? "warn",
    heading: [
      `Attempt ${number} `,
      badge(result || "in flight"),
      status === undefined ? undefined : badge(String(status), status < 300 ? "good" : "bad"),
      flagOf(attempt, "manual") ? badge("manual") : undefined,
    ],
    line: [moment(started, now), note(` ${took} `), code(textOf(attempt, "url"))],
    problem: textOf(attempt, "error"),
    parts: [
      request && requestPart(parts, `Request of attempt ${number}`, request, body),
      response === ""
        ? undefined
        : foldedPart(`response ${number}`, "Response", textBlock(`Response to attempt ${number}`, response)),
    ],
  } as const;
}

function requestPart(parts: PageParts, label: string, request: Fields, body: string): HTMLElement {
  const headers = Object.entries(fieldsOf(request["headers"])).map(([name, value]) => {
    return [name, [code(String(value))]] as const;
  });
  const command = curlText(
    textOf(request, "url"),
    headers.map(([name, [value]]) => [name, value.textContent]),
    body,
  );
  const copied = element("div");
  const copy = button("Copy as curl", () => void copyText(parts, command, copied), {
    look: "small",
    spoken: `Copy the ${label.toLowerCase()} as curl`,
  });
  const hidden = note("Static headers and credentials of the endpoint are not shown.");
  const bar = element("div", { class: "acts" }, ...body === "" ? [] : [copy], hidden);
  return foldedPart(label, "Request", facts(headers), bar, copied);
}

/** Copies a text, or shows it where the browser does not allow that. */
async function copyText({ messages }: PageParts, text: string, place: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    messages.say("Copied.");
  } catch {
    fill(place, [textBlock("The request as curl", text)]);
  }
}

function parsedBody(delivery: Fields): unknown {
  try {
    return parseExact(textOf(delivery, "body"));
  } catch {
    return undefined;
  }
}

function bodyOf(delivery: Fields): HTMLElement {
  const body = parsedBody(delivery);
  if (body !== undefined) return jsonBlock("Body", body);
  return emptyNote("There is no body: nothing was sent yet, or the payload of the event was erased.");
}
