import { wordsOf } from "./api.ts";
import { type Child, element, fill } from "./element.ts";
import { COMPLETED_KIND } from "./events_view.ts";
import { factsOf } from "./field_display.ts";
import { type Fields, fieldsOf, flagOf, numberOf, recordsOf, textOf, timeOf } from "./fields.ts";
import {
  attemptSection,
  badge,
  code,
  emptyNote,
  type Fact,
  facts,
  jsonBlock,
  linkTo,
  moment,
  note,
  panel,
} from "./pieces.ts";
import { recordListView } from "./record_list.ts";
import { RecordView } from "./record_view.ts";
import { EXECUTIONS } from "./resources.ts";
import { NOTHING, tookText } from "./text.ts";
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
        panel("Execution", facts([...ownFacts(parts, one, now), ["Event", event]])),
        one["currentStep"] === undefined
          ? undefined
          : panel("Current step", facts(currentStepOf(fieldsOf(one["currentStep"]), now))),
        panel("Steps", ...stepsOf(one, now)),
        one["headers"] === undefined ? undefined : panel("Headers", jsonBlock("Headers", one["headers"])),
        panel("Input", jsonBlock("Input", one["input"])),
        one["output"] === undefined ? undefined : panel("Output", jsonBlock("Output", one["output"])),
      ];
    },
    actions: (path) => [cancelAction(parts, path), rerunAction(parts, path)],
  });
}

function cancelAction({ api }: PageParts, path: string) {
  return {
    isHidden: (one: Fields) => isFinished(one) || flagOf(one, "cancelRequested"),
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
    isHidden: (one: Fields) => !isFinished(one),
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
    finishedAt: [moment(timeOf(one, "finishedAt"), now), note(` ${durationOf(one)}`)],
    error: problemIn(textOf(one, "error")),
  });
}

function problemIn(error: string): Child[] | undefined {
  return error === "" ? undefined : [element("span", { class: "problem" }, error)];
}

function currentStepOf(step: Fields, now: number): Fact[] {
  const problem = problemIn(textOf(step, "lastError"));
  const next = timeOf(step, "nextAttemptAt");
  return [
    ["Step", [code(textOf(step, "name")), " ", badge(textOf(step, "kind"), "quiet")]],
    ["Attempt", String(numberOf(step, "attempt") ?? 1)],
    ["Next attempt", next === undefined ? "running now" : moment(next, now)],
    ...problem === undefined ? [] : [["Last error", problem] as const],
  ];
}

function stepsOf(one: Fields, now: number): HTMLElement[] {
  const steps = recordsOf(one, "steps");
  if (steps.length === 0) return [emptyNote("No completed steps yet.")];
  return steps.map((step) => {
    const name = textOf(step, "name");
    const attempts = numberOf(step, "attempts") ?? 1;
    const took = note(` took ${durationOf(step)}, ${attempts === 1 ? "1 attempt" : `${attempts} attempts`}`);
    return attemptSection(
      [code(name), " ", badge(textOf(step, "kind"), "quiet"), badge(textOf(step, "status"))],
      [moment(timeOf(step, "startedAt"), now), took],
      textOf(step, "error"),
      step["result"] === undefined ? undefined : jsonBlock(`Result of ${name}`, step["result"]),
    );
  });
}

function durationOf(one: Fields): string {
  const from = timeOf(one, "startedAt");
  const to = timeOf(one, "finishedAt");
  return from === undefined || to === undefined ? NOTHING : tookText(to - from);
}
