import { button, type Child, element, focusHeading } from "./element.ts";
import { askRecovery, askRotation, endpointForm, SIGNS } from "./endpoint_form.ts";
import { type Fields, flagOf, numberOf, recordsOf, textOf, timeOf } from "./fields.ts";
import { badge, code, facts, moment, note, panel } from "./pieces.ts";
import { deleteAction, type RecordAction, type Row, switchAction } from "./record_action.ts";
import { askEdit, askNew } from "./record_form.ts";
import { recordListView } from "./record_list.ts";

/** The endpoints that events are delivered to. */
export const endpointsView = recordListView({
  name: "endpoints",
  title: "Endpoints",
  about: "Where events are delivered. Each endpoint has a signing secret, which is shown only once.",
  empty: "No endpoints yet.",
  columns: [
    {
      label: "Endpoint",
      look: "name",
      cell: ({ record }) => [
        code(textOf(record, "url")),
        element("div", { class: "note" }, textOf(record, "description")),
      ],
    },
    { label: "State", field: "enabled", as: "switch" },
    { label: "Events", field: "events", as: "codes" },
    {
      label: "Concurrency",
      look: "number",
      cell: ({ record }) => String(numberOf(record, "concurrency") ?? ""),
    },
    { label: "Secret since", cell: ({ record, now }) => secretOf(record, now) },
  ],
  actions: actionsOf,
  add: {
    label: "Add an endpoint",
    open: (parts, added) =>
      askNew(parts, endpointForm, (endpoint) => ({
        title: "The secret of the new endpoint",
        text: SIGNS,
        secret: textOf(endpoint, "secret"),
      }), added),
  },
});

/** When the active secret became active, and when the next one does. */
function secretOf(endpoint: Fields, now: number): Child[] {
  const secrets = recordsOf(endpoint, "secrets");
  const index = secrets.findIndex((one) => flagOf(one, "signs"));
  const active = secrets[index];
  // The newest secret is first and takes over from older ones: only those before the active one will ever sign.
  const next = secrets.slice(0, Math.max(0, index)).map((one) => timeOf(one, "activeAt") ?? Infinity);
  const since = moment(active === undefined ? undefined : timeOf(active, "activeAt"), now);
  if (next.length === 0) return [since];
  return [since, element("div", { class: "note" }, "next ", moment(Math.min(...next), now))];
}

function actionsOf(row: Row): RecordAction[] {
  const { parts, record, refresh } = row;
  const url = textOf(record, "url");
  const edit = {
    title: "Edit this endpoint",
    text: "Changes apply from the next attempt on. The secret stays the same.",
    edited: refresh,
  };
  return [
    { label: "Try", spoken: `Try ${url}`, run: () => tryEndpoint(row) },
    {
      label: "Edit",
      spoken: `Edit ${url}`,
      run: () => void askEdit(parts, endpointForm, record, edit),
    },
    switchAction(row, url, {
      enabled: "Endpoint enabled.",
      disabled: "Endpoint disabled; its deliveries wait.",
    }),
    { label: "Rotate", spoken: `Rotate the secret of ${url}`, run: () => void askRotation(row) },
    {
      label: "Recover",
      spoken: `Recover failed deliveries of ${url}`,
      run: () => void askRecovery(row),
    },
    deleteAction(row, url, {
      noun: "endpoint",
      text: `Its secret is deleted, and pending deliveries to ${url} fail.`,
    }),
  ];
}

/** Sends a signed test event and shows each stage of the attempt. */
async function tryEndpoint({ parts, path, show }: Row): Promise<undefined> {
  show(note("Sending a test event…"));
  const answer = await parts.api.administer(`${path}/check`, { method: "POST" }).catch((error: unknown) => {
    show();
    throw error;
  });
  const close = () => {
    show();
    focusHeading();
  };
  const stages = recordsOf(answer, "stages").map((one) => {
    const isOk = flagOf(one, "ok");
    const result = [badge(isOk ? "good" : "failed", isOk ? "good" : "bad"), " ", textOf(one, "detail")];
    return [textOf(one, "stage"), result] as const;
  });
  const result = panel(
    flagOf(answer, "ok")
      ? "The endpoint accepted a signed test event"
      : "The endpoint did not accept a test event",
    element("p", {}, code(textOf(answer, "url"))),
    facts(stages),
    button("Close", close, { look: "small" }),
  );
  show(result);
  // The button may be far below.
  result.scrollIntoView({ block: "nearest" });
}
