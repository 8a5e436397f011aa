import { deliveriesView } from "./deliveries_view.ts";
import { withPause } from "./delivery_pause.ts";
import { endpointsView } from "./endpoints_view.ts";
import { eventsView } from "./events_view.ts";
import { executionsView } from "./executions_view.ts";
import { textOf } from "./fields.ts";
import { code, linkTo } from "./pieces.ts";
import { deleteAction } from "./record_action.ts";
import { askNew, type RecordForm, settableFields } from "./record_form.ts";
import { recordListView } from "./record_list.ts";
import { replaysView } from "./replays_view.ts";
import { AUDIT, EVENT_KEYS } from "./resources.ts";
import { shortId } from "./text.ts";
import { triggersView } from "./triggers_view.ts";
import type { PageParts, View } from "./view.ts";
import { workflowsView } from "./workflows_view.ts";

const eventKeyForm: RecordForm = {
  list: "event-keys",
  noun: "event key",
  fields: (key) => settableFields(EVENT_KEYS.fields, key),
};

const eventKeysView = recordListView({
  resource: EVENT_KEYS,
  title: "Event keys",
  about: "Keys that allow other systems to post events of some kinds.",
  next: [
    "A key allows another system to post events of some kinds:",
    "weir event-keys create shop --kind 'order.*'",
  ],
  columns: [
    { field: "name", as: "name" },
    "kinds",
    { label: "Ends in", cell: ({ record }) => [code(`…${textOf(record, "lastFour")}`)] },
    "createdAt",
  ],
  actions: (row) => {
    const name = textOf(row.record, "name");
    const text = `Events that ${name} posts with this key are answered with 401.`;
    return [deleteAction(row, { noun: "event key", text })];
  },
  add: {
    label: "Add an event key",
    open: (parts, added) =>
      askNew(parts, eventKeyForm, (created) => ({
        title: "The new event key",
        text: "POST /api/v1/events accepts it as the bearer token.",
        secret: textOf(created, "key"),
      }), added),
  },
});

const auditView = recordListView({
  resource: AUDIT,
  title: "Audit",
  about: "Who did what, and which deliveries failed permanently.",
  next: ["Each change of the administration becomes an entry."],
  hasTimes: true,
  columns: [
    "at",
    { field: "action", as: "code" },
    { field: "actor", as: "name", isAside: true },
    {
      label: "Object",
      look: "name",
      cell: ({ parts, record }) => [objectOf(parts, textOf(record, "object"))],
    },
    {
      label: "Details",
      look: "prose",
      cell: ({ record }) => [code(JSON.stringify(record["details"]) ?? "")],
    },
  ],
});

/** The lists with records that the audit log names. */
const LISTS: Readonly<Record<string, string>> = {
  delivery: "deliveries",
  endpoint: "endpoints",
  event: "events",
  execution: "executions",
  replay: "replays",
};

function objectOf(parts: PageParts, object: string): HTMLElement {
  const [kind = "", id = ""] = object.split(":");
  const list = LISTS[kind];
  const name = id === "" ? object : `${kind}:${shortId(id)}`;
  return list === undefined || id === "" ? code(name) : linkTo(parts, name, list, id);
}

/** The views of the administration, in the order of the navigation. */
export const ADMINISTRATION_VIEWS: readonly View[] = [
  withPause(deliveriesView),
  replaysView,
  executionsView,
  endpointsView,
  triggersView,
  workflowsView,
  eventsView,
  eventKeysView,
  auditView,
];
