import { wordsOf } from "./api.ts";
import { element, fill } from "./element.ts";
import { COMPLETED_KIND } from "./events_view.ts";
import { factsOf } from "./field_display.ts";
import { type Fields, fieldsOf, flagOf, numberOf, recordsOf, textOf, timeOf } from "./fields.ts";
import {
  badge,
  code,
  type Fact,
  facts,
  jsonBlock,
  linkTo,
  moment,
  note,
  panel,
  unevenColumns,
} from "./pieces.ts";
import { recordListView } from "./record_list.ts";
import { RecordView } from "./record_view.ts";
import { EXECUTIONS } from "./resources.ts";
import { NOTHING, tookText } from "./text.ts";
import { foldedPart, timeline } from "./timeline.ts";
import type { OpenedView, PageParts } from "./view.ts";

/** Events of one millisecond that are read to find the event of an execution. */
const MAX_EVENTS = "10";

/** The executions of workflows. */
export const executionsView = recordListView({
  resource: EXECUTIONS,
  title: "Executions",
  about: "Executions of workflows, newest first.",
  next: ["A call of a trigger starts a workflow:", "weir triggers call order-intake --data '{\"total\": 3}'"],
  hasTimes: true,
  columns: [
    "status",
    { field: "workflow", as: "code", isAside: true },
    "createdAt",
    { label: "Took", look: "number", cell: ({ record }) => durationOf(record) },
    { label: "Steps done", look: "number", cell: ({ record }) => String(recordsOf(record, "steps").length) },
    "error",
  ],
  record: { label: "Execution", open: openExecution },
});

function openExecution(parts: PageParts, id: string): OpenedView {
  const event = element("span", {}, NOTHING);
  let isLinked = false;
  return new RecordView(parts, {
    list: "executions",
    id,
    show: (one, now) => {
      if (!isLinked && isFinished(one)) void linkEvent(parts, one, event);
      isLinked ||= isFinished(one);
      return [
        unevenColumns(
          [panel("Steps", stepsOf(one, now))],
          [
            panel(
              "Execution",
              facts([...ownFacts(parts, one, now), ...isFinished(one) ? [["Event", event] as const] : []]),
            ),
            panel("Input", jsonBlock("Input", one["input"])),
            one["output"] === undefined ? undefined : panel("Output", jsonBlock("Output", one["output"])),
            one["headers"] === undefined ? undefined : panel("Headers", jsonBlock("Headers", one["headers"])),
          ],
        ),
      ];
    },
    actions: ({ path, record }) => {
      if (isFinished(record)) return [rerunAction(parts, path)];
      return flagOf(record, "cancelRequested") ? [] : [cancelAction(parts, path)];
    },
  });
}

function cancelAction({ api }: PageParts, path: string) {
  return {
    label: "Cancel",
    look: "danger",
    question: {
      title: "Cancel this execution?",
      text: "The running step completes; the steps after it do not start.",
      go: "Cancel the execution",
      isDangerous: true,
    },
    run: async () => {
      await api.administer(`${path}/cancel`, { method: "POST" });
      return "The execution is cancelled when the running step completes.";
    },
  };
}

function rerunAction({ api, go }: PageParts, path: string) {
  return {
    label: "Rerun",
    look: "primary",
    question: {
      title: "Run this execution again?",
      text: "A new execution runs the current workflow with the same input. All steps run again.",
      go: "Run it again",
    },
    run: async () => {
      const { executionId } = await api.administer(`${path}/rerun`, { method: "POST" });
      go("executions", String(executionId));
      return "It runs again.";
    },
  };
}

/** The event of an execution has the time of its end, and its payload the identifier. */
async function linkEvent(parts: PageParts, execution: Fields, place: HTMLElement): Promise<void> {
  const at = timeOf(execution, "finishedAt");
  if (at === undefined) return;
  const [since, until] = [new Date(at).toISOString(), new Date(at + 1).toISOString()];
  try {
    const { api } = parts;
    const query = { event: COMPLETED_KIND, since, until, limit: MAX_EVENTS };
    for (const { id } of recordsOf(await api.administer("/events", { query }), "items")) {
      const event = await api.administer(`/events/${encodeURIComponent(String(id))}`);
      if (fieldsOf(event["data"])["executionId"] !== execution["id"]) continue;
      return fill(place, [linkTo(parts, String(id), "events", String(id))]);
    }
  } catch (error) {
    fill(place, [note(wordsOf(error))]);
  }
}

function isFinished(one: Fields): boolean {
  return !["queued", "running"].includes(textOf(one, "status"));
}

function ownFacts(parts: PageParts, one: Fields, now: number): Fact[] {
  const origin = textOf(one, "rerunOf");
  const cancel = flagOf(one, "cancelRequested") && !isFinished(one)
    ? badge("cancel requested", "warn")
    : undefined;
  return factsOf(EXECUTIONS.fields, one, now, {
    rerunOf: origin === "" ? undefined : [linkTo(parts, origin, "executions", origin)],
    status: [badge(textOf(one, "status")), cancel],
    workflow: [code(textOf(one, "workflow"))],
    // In the timeline.
    createdAt: undefined,
    startedAt: undefined,
    finishedAt: isFinished(one)
      ? [moment(timeOf(one, "finishedAt"), now), note(` ${durationOf(one)}`)]
      : undefined,
    error: textOf(one, "error") === ""
      ? undefined
      : [element("span", { class: "problem" }, textOf(one, "error"))],
  });
}

/** The steps in their order, from the call of the trigger to the current step or the end. */
function stepsOf(one: Fields, now: number): HTMLElement {
  const started = timeOf(one, "startedAt");
  const waited = (started ?? now) - (timeOf(one, "createdAt") ?? now);
  const began = {
    tone: "quiet",
    heading: ["Accepted"],
    line: [moment(timeOf(one, "createdAt"), now), note(` waited ${tookText(waited)} to start`)],
  } as const;
  const steps = recordsOf(one, "steps").map((step) => stepOf(step, now));
  const current = one["currentStep"] === undefined ? [] : [currentStepOf(fieldsOf(one["currentStep"]), now)];
  return timeline([began, ...steps, ...current]);
}

function stepOf(step: Fields, now: number) {
  const [name, status] = [textOf(step, "name"), textOf(step, "status")];
  const attempts = numberOf(step, "attempts") ?? 1;
  const took = ` took ${durationOf(step)}, ${attempts === 1 ? "1 attempt" : `${attempts} attempts`}`;
  const result = step["result"];
  const block = jsonBlock(`Result of ${name}`, result);
  return {
    tone: status === "failed" ? "bad" : status === "succeeded" ? "good" : "quiet",
    heading: [code(name), " ", badge(textOf(step, "kind"), "quiet"), badge(status)],
    line: [moment(timeOf(step, "startedAt"), now), note(took)],
    problem: textOf(step, "error"),
    parts: result === undefined ? [] : [foldedPart(`Result of ${name}`, "Result", block)],
  } as const;
}

function currentStepOf(step: Fields, now: number) {
  const next = timeOf(step, "nextAttemptAt");
  const attempt = numberOf(step, "attempt") ?? 1;
  return {
    tone: "warn",
    heading: [code(textOf(step, "name")), " ", badge(textOf(step, "kind"), "quiet"), badge("running")],
    line: next === undefined
      ? [`attempt ${attempt} is running`]
      : [`attempt ${attempt}, `, moment(next, now)],
    problem: textOf(step, "lastError"),
  } as const;
}

function durationOf(one: Fields): string {
  const from = timeOf(one, "startedAt");
  const to = timeOf(one, "finishedAt");
  return from === undefined || to === undefined ? NOTHING : tookText(to - from);
}
