import { wordsOf } from "./api.ts";
import { openDelivery } from "./delivery_view.ts";
import { button, element } from "./element.ts";
import { type Fields, numberOf, recordsOf, textOf, timeOf } from "./fields.ts";
import { badge, code, moment } from "./pieces.ts";
import { keepFilter } from "./keep_filter.ts";
import { RecordList } from "./record_list.ts";
import { NOTHING, shortId } from "./text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** Events on their way to endpoints. */
export const deliveriesView: View = {
  name: "deliveries",
  title: "Deliveries",
  about: "Events on their way to endpoints, the newest first.",
  isAdministration: true,
  open: (parts, id) => id === "" ? openDeliveries(parts) : openDelivery(parts, id),
};

const STATES = ["attempting", "retrying", "acknowledged", "failed"];

function openDeliveries(parts: PageParts): OpenedView {
  const state = choice("deliveries-state", "State", [
    ["", "every state"],
    ...STATES.map((one) => [one, one] as const),
  ]);
  const endpoint = choice("deliveries-endpoint", "Endpoint", [["", "every endpoint"]]);
  const event = element("input", {
    id: "deliveries-event",
    type: "search",
    autocomplete: "off",
    placeholder: "exact kind",
  });
  const urls = new Map<string, string>();
  const kept = parts.filters.get(endpoint.control.id) ?? "";
  if (kept !== "") endpoint.control.append(element("option", { value: kept }, shortId(kept)));
  for (const control of [state.control, endpoint.control, event]) {
    keepFilter(parts, control, () => list.restart());
  }
  const list: RecordList = new RecordList(parts, {
    path: "/deliveries",
    caption: "Deliveries",
    empty: "No delivery is like this.",
    query: () => ({
      state: state.control.value,
      endpointId: endpoint.control.value,
      event: event.value.trim(),
    }),
    columns: columnsOf(parts, urls),
  });
  void loadEndpoints(parts, urls, endpoint.control).then(() => list.redraw());
  const bar = element(
    "div",
    { class: "bar" },
    ...[state.label, state.control, endpoint.label, endpoint.control],
    element("label", { for: "deliveries-event" }, "Event"),
    event,
  );
  return { nodes: [bar, list.node], close: () => list.close() };
}

function columnsOf({ clock, go }: PageParts, urls: ReadonlyMap<string, string>) {
  return [
    {
      label: "Delivery",
      look: "actions",
      cell: (one: Fields) => {
        const id = textOf(one, "id");
        const open = () => go("deliveries", id);
        return [
          button(shortId(id), open, { look: "link", action: "open", spoken: `Open delivery ${shortId(id)}` }),
        ];
      },
    },
    { label: "State", cell: (one: Fields) => [badge(textOf(one, "state"))] },
    { label: "Event", look: "name", cell: (one: Fields) => [code(textOf(one, "event"))] },
    {
      label: "Endpoint",
      look: "name",
      cell: (one: Fields) => {
        const id = textOf(one, "endpointId");
        return [code(urls.get(id) ?? shortId(id))];
      },
    },
    { label: "Made", cell: (one: Fields) => [moment(timeOf(one, "createdAt"), clock.now())] },
    { label: "Attempts", cell: attemptsText },
    { label: "Next", cell: (one: Fields) => [moment(timeOf(one, "nextAttemptAt"), clock.now())] },
    { label: "Why", look: "prose", cell: (one: Fields) => textOf(one, "why") || NOTHING },
  ];
}

/** How many there were, and what the last one came to. */
function attemptsText(delivery: Fields): string {
  const attempts = recordsOf(delivery, "attempts");
  const last = attempts.at(-1);
  if (last === undefined) return "none yet";
  return `${attempts.length}, last ${numberOf(last, "status") ?? (textOf(last, "errorKind") || "under way")}`;
}

async function loadEndpoints(
  { api, messages }: PageParts,
  urls: Map<string, string>,
  control: HTMLSelectElement,
): Promise<void> {
  try {
    const page = await api.administer("/endpoints", { query: { limit: "200" } });
    for (const one of recordsOf(page, "items")) {
      const id = textOf(one, "id");
      const url = textOf(one, "url");
      urls.set(id, url);
      const there = [...control.options].find(({ value }) => value === id);
      if (there !== undefined) there.textContent = url;
      else control.append(element("option", { value: id }, url));
    }
  } catch (error) {
    messages.warn(wordsOf(error));
  }
}

/** A labelled choice of a bar. */
export function choice(
  id: string,
  label: string,
  choices: readonly (readonly [string, string])[],
): { readonly label: HTMLLabelElement; readonly control: HTMLSelectElement } {
  const options = choices.map(([value, text]) => element("option", { value }, text));
  return { label: element("label", { for: id }, label), control: element("select", { id }, ...options) };
}
