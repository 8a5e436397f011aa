import { actButton } from "./acts.ts";
import { button, element } from "./element.ts";
import { type Fields, fieldsOf, flagOf, recordsOf, textOf, timeOf } from "./fields.ts";
import { badge, code, moment } from "./pieces.ts";
import { RecordList } from "./record_list.ts";
import { NOTHING } from "./text.ts";
import { askTrigger, askTriggerEdit } from "./trigger_form.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** What starts workflows. */
export const triggersView: View = {
  name: "triggers",
  title: "Triggers",
  about:
    "What starts workflows. Each has a key, shown once; keep its address away from where a key cannot be kept.",
  isAdministration: true,
  open: openTriggers,
};

function openTriggers(parts: PageParts): OpenedView {
  const { clock } = parts;
  const list: RecordList = new RecordList(parts, {
    path: "/triggers",
    caption: "Triggers",
    empty: "There is no trigger yet.",
    columns: [
      {
        label: "Trigger",
        look: "name",
        cell: (one) => [
          code(textOf(one, "name")),
          element("div", { class: "note" }, `/api/v1/workflows/triggers/${textOf(one, "name")}`),
        ],
      },
      { label: "State", cell: (one) => [badge(flagOf(one, "enabled") ? "enabled" : "disabled")] },
      { label: "Workflow", look: "name", cell: (one) => [code(textOf(one, "workflow"))] },
      {
        label: "Limit",
        look: "name",
        cell: (one) => [code(textOf(fieldsOf(one["limit"]), "domain") || NOTHING)],
      },
      { label: "Made", cell: (one) => [moment(timeOf(one, "createdAt"), clock.now())] },
      { label: "Keys", cell: (one) => keysOf(parts, one, () => list.refresh()) },
      { label: "Actions", look: "actions", cell: (one) => actsOf(parts, one, () => list.refresh()) },
    ],
  });
  const add = button("Add a trigger", () => askTrigger(parts, () => list.restart()), { look: "primary" });
  return { nodes: [element("div", { class: "bar" }, add), list.node], close: () => list.close() };
}

function keysOf(parts: PageParts, trigger: Fields, refresh: () => void): HTMLElement[] {
  const path = `/triggers/${encodeURIComponent(textOf(trigger, "id"))}/keys`;
  const keys = recordsOf(trigger, "keys");
  return keys.map((key) => {
    const name = `…${textOf(key, "lastFour")}`;
    const revoke = actButton(parts, {
      label: "Revoke",
      question: {
        title: "Revoke this key?",
        text: `Whoever calls ${
          textOf(trigger, "name")
        } with the key that ends in ${name} gets 401 from now on.`,
        go: "Revoke the key",
        isDangerous: true,
      },
      run: async () => {
        await parts.api.administer(`${path}/${encodeURIComponent(textOf(key, "id"))}`, { method: "DELETE" });
        return "The key is revoked.";
      },
      then: refresh,
    }, { action: `revoke ${textOf(key, "id")}`, spoken: `Revoke the key that ends in ${name}` });
    return element("div", { class: "acts" }, code(name), revoke);
  });
}

function actsOf(parts: PageParts, trigger: Fields, refresh: () => void): HTMLElement[] {
  const { api, dialogs } = parts;
  const name = textOf(trigger, "name");
  const path = `/triggers/${encodeURIComponent(textOf(trigger, "id"))}`;
  const isEnabled = flagOf(trigger, "enabled");
  const turn = actButton(parts, {
    label: isEnabled ? "Disable" : "Enable",
    run: async () => {
      await api.administer(path, { method: "PATCH", body: { enabled: !isEnabled } });
      return isEnabled ? `${name} is disabled: calls get 403.` : `${name} is enabled.`;
    },
    then: refresh,
  }, { action: "turn", spoken: `${isEnabled ? "Disable" : "Enable"} ${name}` });
  const edit = button("Edit", () => askTriggerEdit(parts, trigger, refresh), {
    look: "small",
    action: "edit",
    spoken: `Edit ${name}`,
  });
  const rotate = actButton(parts, {
    label: "Rotate",
    question: {
      title: "Make a new key?",
      text:
        `${name} gets a second key. The old one works until it is revoked; of more than two the oldest goes.`,
      go: "Make a new key",
    },
    run: async () => {
      const made = await api.administer(`${path}/rotate`, { method: "POST" });
      const text = `Callers of ${name} show it as their bearer token.`;
      void dialogs.secret({ title: "The new key", text, secret: textOf(made, "key") });
      return undefined;
    },
    then: refresh,
  }, { action: "rotate", spoken: `Rotate the key of ${name}` });
  const remove = actButton(parts, {
    label: "Delete",
    question: {
      title: "Delete this trigger?",
      text: `${name}, its keys and its idempotency keys are gone.`,
      go: "Delete the trigger",
      isDangerous: true,
    },
    run: async () => {
      await api.administer(path, { method: "DELETE" });
      return "The trigger is deleted.";
    },
    then: refresh,
  }, { look: "small danger", spoken: `Delete ${name}` });
  return [element("div", { class: "acts" }, edit, turn, rotate, remove)];
}
