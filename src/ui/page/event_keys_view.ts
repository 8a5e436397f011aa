import { actButton } from "./acts.ts";
import { button, element } from "./element.ts";
import { textOf, textsOf, timeOf } from "./fields.ts";
import { code, moment } from "./pieces.ts";
import { RecordList } from "./record_list.ts";
import { wordsIn } from "./typed_text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** Who may post events beside the administration. */
export const eventKeysView: View = {
  name: "event-keys",
  title: "Event keys",
  about: "Who may post events beside the administration, and which kinds.",
  isAdministration: true,
  open: openEventKeys,
};

function openEventKeys(parts: PageParts): OpenedView {
  const { api, clock } = parts;
  const list: RecordList = new RecordList(parts, {
    path: "/event-keys",
    caption: "Event keys",
    empty: "There is no event key yet.",
    columns: [
      { label: "Name", look: "name", cell: (one) => textOf(one, "name") },
      { label: "Kinds", look: "name", cell: (one) => [code(textsOf(one, "kinds").join(" "))] },
      { label: "Ends in", cell: (one) => [code(`…${textOf(one, "lastFour")}`)] },
      { label: "Made", cell: (one) => [moment(timeOf(one, "createdAt"), clock.now())] },
      {
        label: "Actions",
        look: "actions",
        cell: (one) => [actButton(parts, {
          label: "Delete",
          question: {
            title: "Delete this event key?",
            text: `Whoever posts events as ${textOf(one, "name")} gets 401 from now on.`,
            go: "Delete the key",
            isDangerous: true,
          },
          run: async () => {
            await api.administer(`/event-keys/${encodeURIComponent(textOf(one, "id"))}`, {
              method: "DELETE",
            });
            return "The event key is deleted.";
          },
          then: () => list.refresh(),
        }, { look: "small danger", spoken: `Delete ${textOf(one, "name")}` })],
      },
    ],
  });
  const add = button("Add an event key", () => askEventKey(parts, () => list.restart()), { look: "primary" });
  return { nodes: [element("div", { class: "bar" }, add), list.node], close: () => list.close() };
}

function askEventKey({ api, dialogs }: PageParts, done: () => void): void {
  dialogs.form({
    title: "Add an event key",
    submit: "Add it",
    fields: [
      { name: "name", label: "Name", required: true, hint: "Whose key it is" },
      { name: "kinds", label: "Kinds", required: true, hint: "Kinds, prefixes such as agent.*, or *" },
    ],
    run: async (values) => {
      const body = { name: values["name"]?.trim(), kinds: wordsIn(values["kinds"] ?? "") };
      const made = await api.administer("/event-keys", { body });
      done();
      const text = "POST /api/v1/events takes it as the bearer token.";
      return { title: "The new event key", text, secret: textOf(made, "key") };
    },
  });
}
