import { factsOf } from "./field_display.ts";
import { type Fields, fieldsOf, flagOf, numberOf, textOf } from "./fields.ts";
import { badge, emptyNote, facts, jsonBlock, linkTo, panel } from "./pieces.ts";
import { requestFields } from "./record_form.ts";
import { recordListView } from "./record_list.ts";
import { RecordView } from "./record_view.ts";
import { EVENTS, POSTED_EVENT } from "./resources.ts";
import { countText } from "./text.ts";
import { objectIn } from "./typed_text.ts";
import type { OpenedView, PageParts } from "./view.ts";

/** The kind of events that report finished executions. */
export const COMPLETED_KIND = "workflow.execution.completed";

/** The events that were reported. */
export const eventsView = recordListView({
  resource: EVENTS,
  title: "Events",
  about: "Finished executions, and events that other systems report.",
  next: [
    "An event is delivered to every endpoint that subscribes to its kind. Post one:",
    "weir events post order.created --data '{\"id\": 1}'",
  ],
  hasTimes: true,
  columns: [
    "event",
    { label: "Payload", cell: ({ record }) => flagOf(record, "isErased") ? [badge("erased")] : "" },
    "createdAt",
  ],
  add: { label: "Post an event", open: askEvent },
  record: { label: "Event", open: openEvent },
});

function openEvent(parts: PageParts, id: string): OpenedView {
  return new RecordView(parts, {
    list: "events",
    id,
    show: (event, now) => {
      const execution = executionLink(parts, event);
      return [
        panel(
          "Event",
          facts([
            ...factsOf(EVENTS.fields, event, now, { isErased: undefined }),
            ["Deliveries", linkTo(parts, "Show its deliveries", "deliveries", "", { eventId: id })],
            ...execution === undefined ? [] : [["Execution", execution] as const],
          ]),
        ),
        flagOf(event, "isErased")
          ? panel("Payload", emptyNote("Payload erased."))
          : panel("Payload", jsonBlock("Payload", event["data"])),
      ];
    },
    actions: ({ path, record }) =>
      flagOf(record, "isErased") ? [] : [{
        label: "Erase the payload",
        look: "danger",
        question: {
          title: "Erase this payload?",
          text: "Pending deliveries of the event fail. The event itself is kept.",
          go: "Erase the payload",
          isDangerous: true,
        },
        run: async () => {
          await parts.api.administer(`${path}/payload`, { method: "DELETE" });
          return "Payload erased.";
        },
      }],
  });
}

/** The execution that an event reports, if it does. */
export function executionLink(parts: PageParts, { event, data }: Fields): HTMLElement | undefined {
  const id = textOf(fieldsOf(data), "executionId");
  return event !== COMPLETED_KIND || id === "" ? undefined : linkTo(parts, id, "executions", id);
}

function askEvent({ api, dialogs, messages }: PageParts, posted: () => void): void {
  dialogs.form({
    title: "Post an event",
    text: "The event is delivered to every endpoint that subscribes to its kind.",
    submit: "Post",
    fields: [
      ...requestFields(POSTED_EVENT, { event: { hint: "Such as agent.reply.completed" } }),
      { name: "data", label: "Payload", kind: "lines", value: "{}", required: true, hint: "A JSON object" },
    ],
    run: async (values) => {
      const data = objectIn(values["data"] ?? "", "data");
      const body = `{"event":${JSON.stringify((values["event"] ?? "").trim())},"data":${data}}`;
      const count = numberOf(await api.administer("/events", { body }), "deliveries") ?? 0;
      posted();
      messages.say(`Event posted to ${count === 1 ? "1 endpoint" : `${countText(count)} endpoints`}.`);
      return undefined;
    },
  });
}
