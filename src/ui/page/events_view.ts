import { actButton } from "./acts.ts";
import { button, element, setHidden } from "./element.ts";
import { flagOf, numberOf, textOf, timeOf } from "./fields.ts";
import { keepFilter } from "./keep_filter.ts";
import { badge, code, facts, jsonBlock, moment, panel } from "./pieces.ts";
import { RecordList } from "./record_list.ts";
import { countText, shortId } from "./text.ts";
import { objectIn } from "./typed_text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";
import { Watched } from "./watched.ts";

/** What happened. */
export const eventsView: View = {
  name: "events",
  title: "Events",
  about: "What happened: ends of executions, and what other systems report.",
  isAdministration: true,
  open: (parts, id) => id === "" ? openEvents(parts) : openEvent(parts, id),
};

function openEvents(parts: PageParts): OpenedView {
  const { clock, go } = parts;
  const kind = element("input", {
    id: "events-kind",
    type: "search",
    autocomplete: "off",
    placeholder: "exact kind",
  });
  keepFilter(parts, kind, () => list.restart());
  const list: RecordList = new RecordList(parts, {
    path: "/events",
    caption: "Events",
    empty: "No event is like this.",
    query: () => ({ event: kind.value.trim() }),
    columns: [
      {
        label: "Event",
        look: "actions",
        cell: (one) => {
          const id = textOf(one, "id");
          const options = { look: "link", action: "open", spoken: `Open event ${shortId(id)}` };
          return [button(shortId(id), () => go("events", id), options)];
        },
      },
      { label: "Kind", look: "name", cell: (one) => [code(textOf(one, "event"))] },
      { label: "Payload", cell: (one) => [badge(flagOf(one, "isErased") ? "erased" : "kept")] },
      { label: "Made", cell: (one) => [moment(timeOf(one, "createdAt"), clock.now())] },
    ],
  });
  const post = button("Post an event", () => askEvent(parts, () => list.restart()), { look: "primary" });
  const bar = element("div", { class: "bar" }, element("label", { for: "events-kind" }, "Kind"), kind, post);
  return { nodes: [bar, list.node], close: () => list.close() };
}

function openEvent(parts: PageParts, id: string): OpenedView {
  const { api, clock, go } = parts;
  const path = `/events/${encodeURIComponent(id)}`;
  const place = element("div");
  const watched: Watched = new Watched(parts, place, {
    load: () => api.administer(path),
    show: (one) => {
      const isErased = flagOf(one, "isErased");
      setHidden(erase, isErased);
      const told = facts([
        ["Identifier", code(textOf(one, "id"))],
        ["Kind", code(textOf(one, "event"))],
        ["Made", moment(timeOf(one, "createdAt"), clock.now())],
      ]);
      const payload = isErased
        ? element("p", { class: "empty" }, "It was erased.")
        : jsonBlock("Payload", one["data"]);
      return [panel("Event", told), panel("Payload", payload)];
    },
  });
  const erase = actButton(parts, {
    label: "Erase the payload",
    question: {
      title: "Erase this payload?",
      text: "Deliveries of it that are under way fail. That it happened stays known.",
      go: "Erase the payload",
      isDangerous: true,
    },
    run: async () => {
      await api.administer(`${path}/payload`, { method: "DELETE" });
      return "The payload is erased.";
    },
    then: () => watched.refresh(),
  }, { look: "danger" });
  const bar = element("div", { class: "bar" }, button("All events", () => go("events")), erase);
  return { nodes: [bar, place], close: () => watched.close() };
}

function askEvent({ api, dialogs, messages }: PageParts, done: () => void): void {
  dialogs.form({
    title: "Post an event",
    text: "It is delivered to every endpoint that wants its kind.",
    submit: "Post it",
    fields: [
      { name: "event", label: "Kind", required: true, hint: "Such as agent.reply.completed" },
      { name: "data", label: "Payload", kind: "lines", value: "{}", required: true, hint: "A JSON object" },
    ],
    run: async (values) => {
      const data = objectIn(values["data"] ?? "", "data");
      const body = `{"event":${JSON.stringify((values["event"] ?? "").trim())},"data":${data}}`;
      const posted = await api.administer("/events", { body });
      done();
      const count = numberOf(posted, "deliveries") ?? 0;
      messages.say(`Posted. It goes to ${count === 1 ? "one endpoint" : `${countText(count)} endpoints`}.`);
      return undefined;
    },
  });
}
