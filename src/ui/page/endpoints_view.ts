import { actButton } from "./acts.ts";
import { button, element, focusHeading } from "./element.ts";
import { askEndpoint, askEndpointEdit } from "./endpoint_form.ts";
import { askRecovery, askRotation } from "./endpoint_questions.ts";
import { type Fields, flagOf, numberOf, recordsOf, textOf, textsOf, timeOf } from "./fields.ts";
import { badge, code, facts, moment, note } from "./pieces.ts";
import { RecordList } from "./record_list.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** Where events are delivered. */
export const endpointsView: View = {
  name: "endpoints",
  title: "Endpoints",
  about: "Where events are delivered. Each has a secret that signs, which is shown once.",
  isAdministration: true,
  open: openEndpoints,
};

function openEndpoints(parts: PageParts): OpenedView {
  const { clock } = parts;
  const dryRun = element("div", { role: "status" });
  const list: RecordList = new RecordList(parts, {
    path: "/endpoints",
    caption: "Endpoints",
    empty: "There is no endpoint yet.",
    columns: [
      {
        label: "Endpoint",
        look: "name",
        cell: (
          one,
        ) => [code(textOf(one, "url")), element("div", { class: "note" }, textOf(one, "description"))],
      },
      { label: "State", cell: (one) => [badge(flagOf(one, "enabled") ? "enabled" : "disabled")] },
      { label: "Events", look: "name", cell: (one) => [code(textsOf(one, "events").join(" "))] },
      { label: "At once", look: "number", cell: (one) => String(numberOf(one, "concurrency") ?? "") },
      { label: "Secret since", cell: (one) => [secretOf(one, clock.now())] },
      { label: "Actions", look: "actions", cell: (one) => actsOf(parts, one, () => list.refresh(), dryRun) },
    ],
  });
  const add = button("Add an endpoint", () => askEndpoint(parts, () => list.restart()), { look: "primary" });
  return { nodes: [element("div", { class: "bar" }, add), dryRun, list.node], close: () => list.close() };
}

/** Since when the secret signs that does, and what is waiting. */
function secretOf(endpoint: Fields, now: number): HTMLElement {
  const secrets = recordsOf(endpoint, "secrets");
  const index = secrets.findIndex((one) => flagOf(one, "signs"));
  const active = secrets[index];
  // The newest that may sign does, and it stands first: those behind it never will. The service's clock alone says so.
  const next = secrets.slice(0, Math.max(0, index)).map((one) => timeOf(one, "activeAt") ?? Infinity);
  const told = element(
    "span",
    {},
    moment(active === undefined ? undefined : timeOf(active, "activeAt"), now),
  );
  if (next.length > 0) {
    told.append(element("div", { class: "note" }, "next ", moment(Math.min(...next), now)));
  }
  return told;
}

function actsOf(
  parts: PageParts,
  endpoint: Fields,
  refresh: () => void,
  dryRun: HTMLElement,
): HTMLElement[] {
  const { api } = parts;
  const url = textOf(endpoint, "url");
  const path = `/endpoints/${encodeURIComponent(textOf(endpoint, "id"))}`;
  const isEnabled = flagOf(endpoint, "enabled");
  const check = actButton(parts, {
    label: "Try",
    run: async () => {
      dryRun.replaceChildren(note("Trying it…"));
      const answer = await api.administer(`${path}/check`, { method: "POST" }).catch((error: unknown) => {
        dryRun.replaceChildren();
        throw error;
      });
      dryRun.replaceChildren(dryRunOf(answer, () => {
        dryRun.replaceChildren();
        focusHeading();
      }));
      // The button may stand far below.
      dryRun.scrollIntoView({ block: "nearest" });
      return undefined;
    },
  }, { spoken: `Try ${url}` });
  const turn = actButton(parts, {
    label: isEnabled ? "Disable" : "Enable",
    run: async () => {
      await api.administer(path, { method: "PATCH", body: { enabled: !isEnabled } });
      return isEnabled ? "It is disabled: its deliveries wait." : "It is enabled.";
    },
    then: refresh,
  }, { action: "turn", spoken: `${isEnabled ? "Disable" : "Enable"} ${url}` });
  const rotate = button("Rotate", () => askRotation(parts, path, url, refresh), {
    look: "small",
    action: "rotate",
    spoken: `Rotate the secret of ${url}`,
  });
  const edit = button("Edit", () => askEndpointEdit(parts, endpoint, refresh), {
    look: "small",
    action: "edit",
    spoken: `Edit ${url}`,
  });
  const recover = button("Recover", () => askRecovery(parts, path, url), {
    look: "small",
    action: "recover",
    spoken: `Recover failed deliveries of ${url}`,
  });
  const remove = actButton(parts, {
    label: "Delete",
    question: {
      title: "Delete this endpoint?",
      text: `Deliveries to ${url} that are under way fail, and its secret is gone.`,
      go: "Delete the endpoint",
      isDangerous: true,
    },
    run: async () => {
      await api.administer(path, { method: "DELETE" });
      return "The endpoint is deleted.";
    },
    then: refresh,
  }, { look: "small danger", spoken: `Delete ${url}` });
  return [element("div", { class: "acts" }, check, edit, turn, rotate, recover, remove)];
}

function dryRunOf(answer: Fields, close: () => void): HTMLElement {
  const stages = recordsOf(answer, "stages").map((one) => {
    const isOk = flagOf(one, "ok");
    const shown = [badge(isOk ? "good" : "failed", isOk ? "good" : "bad"), " ", textOf(one, "detail")];
    return [textOf(one, "stage"), shown] as const;
  });
  const isOk = flagOf(answer, "ok");
  return element(
    "section",
    { class: "panel" },
    element("h2", {}, isOk ? "A signed test event was taken" : "A test event would not be taken"),
    element("p", {}, code(textOf(answer, "url"))),
    facts(stages),
    button("Close", close, { look: "small" }),
  );
}
