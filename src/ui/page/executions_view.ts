import { actButton } from "./acts.ts";
import { choice } from "./deliveries_view.ts";
import { button, type Child, element, setHidden } from "./element.ts";
import { type Fields, fieldsOf, flagOf, numberOf, recordsOf, textOf, timeOf } from "./fields.ts";
import { badge, code, facts, jsonBlock, moment, note, panel } from "./pieces.ts";
import { keepFilter } from "./keep_filter.ts";
import { RecordList } from "./record_list.ts";
import { NOTHING, shortId, tookText } from "./text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";
import { Watched } from "./watched.ts";

/** Runs of workflows. */
export const executionsView: View = {
  name: "executions",
  title: "Executions",
  about: "Runs of workflows, the newest first.",
  isAdministration: true,
  open: (parts, id) => id === "" ? openExecutions(parts) : openExecution(parts, id),
};

const STATUSES = ["queued", "running", "succeeded", "failed", "cancelled"];

function openExecutions(parts: PageParts): OpenedView {
  const { clock, go } = parts;
  const options = STATUSES.map((one) => [one, one] as const);
  const status = choice("executions-status", "Status", [["", "every status"], ...options]);
  keepFilter(parts, status.control, () => list.restart());
  const list: RecordList = new RecordList(parts, {
    path: "/executions",
    caption: "Executions",
    empty: "No execution is like this.",
    query: () => ({ state: status.control.value }),
    columns: [
      {
        label: "Execution",
        look: "actions",
        cell: (one) => {
          const id = textOf(one, "id");
          const open = () => go("executions", id);
          return [
            button(shortId(id), open, {
              look: "link",
              action: "open",
              spoken: `Open execution ${shortId(id)}`,
            }),
          ];
        },
      },
      { label: "Status", cell: (one) => [badge(textOf(one, "status"))] },
      { label: "Workflow", look: "name", cell: (one) => [code(textOf(one, "workflow"))] },
      { label: "Made", cell: (one) => [moment(timeOf(one, "createdAt"), clock.now())] },
      { label: "Took", look: "number", cell: (one) => spanOf(one) },
      { label: "Steps done", look: "number", cell: (one) => String(recordsOf(one, "steps").length) },
      { label: "Error", look: "prose", cell: (one) => textOf(one, "error") || NOTHING },
    ],
  });
  const bar = element("div", { class: "bar" }, status.label, status.control);
  return { nodes: [bar, list.node], close: () => list.close() };
}

function openExecution(parts: PageParts, id: string): OpenedView {
  const { api, clock, go } = parts;
  const path = `/executions/${encodeURIComponent(id)}`;
  const place = element("div");
  const cancel = actButton(parts, {
    label: "Cancel it",
    question: {
      title: "Cancel this execution?",
      text: "A step that runs is let end; those behind it are not begun.",
      go: "Cancel the execution",
      isDangerous: true,
    },
    run: async () => {
      await api.administer(`${path}/cancel`, { method: "POST" });
      return "It is cancelled as soon as the step that runs has ended.";
    },
    then: () => watched.refresh(),
  }, { look: "danger" });
  cancel.hidden = true;
  const watched: Watched = new Watched(parts, place, {
    load: () => api.administer(path),
    show: (one) => {
      setHidden(cancel, isOver(one) || flagOf(one, "cancelRequested"));
      return [
        panel("Execution", facts(factsOf(one, clock.now()))),
        one["currentStep"] === undefined
          ? undefined
          : panel("Current step", facts(currentStepOf(fieldsOf(one["currentStep"]), clock.now()))),
        panel("Steps", ...stepsOf(one, clock.now())),
        panel("Input", jsonBlock("Input", one["input"])),
        one["output"] === undefined ? undefined : panel("Output", jsonBlock("Output", one["output"])),
      ];
    },
  });
  const bar = element("div", { class: "bar" }, button("All executions", () => go("executions")), cancel);
  return { nodes: [bar, place], close: () => watched.close() };
}

function isOver(one: Fields): boolean {
  return !["queued", "running"].includes(textOf(one, "status"));
}

function factsOf(one: Fields, now: number): (readonly [string, Child | readonly Child[]])[] {
  const error = textOf(one, "error");
  const asked = flagOf(one, "cancelRequested") && !isOver(one) ? badge("cancel asked", "warn") : undefined;
  return [
    ["Identifier", code(textOf(one, "id"))],
    ["Status", [badge(textOf(one, "status")), asked]],
    ["Workflow", code(textOf(one, "workflow"))],
    ["Made", moment(timeOf(one, "createdAt"), now)],
    ["Started", moment(timeOf(one, "startedAt"), now)],
    ["Ended", [moment(timeOf(one, "finishedAt"), now), note(` ${spanOf(one)}`)]],
    ...error === "" ? [] : [["Error", element("span", { class: "problem" }, error)] as const],
  ];
}

function currentStepOf(step: Fields, now: number): (readonly [string, Child | readonly Child[]])[] {
  const error = textOf(step, "lastError");
  const next = timeOf(step, "nextAttemptAt");
  return [
    ["Step", [code(textOf(step, "name")), " ", badge(textOf(step, "kind"), "quiet")]],
    ["Attempt", String(numberOf(step, "attempt") ?? 1)],
    ["Next attempt", next === undefined ? "it runs now" : moment(next, now)],
    ...error === "" ? [] : [["Last error", element("span", { class: "problem" }, error)] as const],
  ];
}

function stepsOf(one: Fields, now: number): HTMLElement[] {
  const steps = recordsOf(one, "steps");
  if (steps.length === 0) return [element("p", { class: "empty" }, "None has ended yet.")];
  return steps.map((step) => {
    const name = textOf(step, "name");
    const attempts = numberOf(step, "attempts") ?? 1;
    const error = textOf(step, "error");
    return element(
      "section",
      { class: "attempt" },
      element("h3", {}, code(name), " ", badge(textOf(step, "kind"), "quiet"), badge(textOf(step, "status"))),
      element(
        "p",
        {},
        moment(timeOf(step, "startedAt"), now),
        note(` took ${spanOf(step)}, ${attempts === 1 ? "one attempt" : `${attempts} attempts`}`),
      ),
      error === "" ? undefined : element("p", { class: "problem" }, error),
      step["result"] === undefined ? undefined : jsonBlock(`Result of ${name}`, step["result"]),
    );
  });
}

function spanOf(one: Fields): string {
  const from = timeOf(one, "startedAt");
  const to = timeOf(one, "finishedAt");
  return from === undefined || to === undefined ? NOTHING : tookText(to - from);
}
