import { breakable, button, type Child, element } from "./element.ts";
import { type Fields, flagOf, numberOf, recordsOf, textOf, timeOf } from "./fields.ts";
import { badge, code, emptyNote, type Fact, facts, fileOf, moment, moreNote, note, panel } from "./pieces.ts";
import { recordListView } from "./record_list.ts";
import { RecordView } from "./record_view.ts";
import { countText, NOTHING, spanText } from "./text.ts";
import type { OpenedView, PageParts } from "./view.ts";

/** The workflow files with their errors. */
export const workflowsView = recordListView({
  resource: { list: "workflows", fields: {}, filters: {} },
  title: "Workflows",
  about:
    "Workflow files as this instance has read them. A file with errors leaves its previous version in use.",
  next: [
    "A workflow is a YAML file in WORKFLOW_DIRECTORY. Check a folder of files before they are loaded:",
    "weir workflows check config/workflows",
  ],
  columns: [
    { label: "State", field: "state", as: "badge" },
    { label: "File", look: "name", cell: ({ record }) => [fileOf(textOf(record, "file"))] },
    { label: "Steps", look: "name", cell: ({ record }) => namesOf(record, "steps") },
    { label: "Triggers", look: "name", cell: ({ record }) => namesOf(record, "triggers", "triggerCount") },
    { label: "Loaded", field: "loadedAt", as: "moment" },
    { label: "Errors", look: "wrap", cell: ({ record }) => errorsCell(record) },
  ],
  above: (page) => [
    ...textOf(page, "folder") === "" ? [note("WORKFLOW_DIRECTORY is not set.")] : [],
    ...recordsOf(page, "problems").map(problemLine),
  ],
  record: { label: "Workflow", name: (record) => textOf(record, "id"), open: openWorkflow },
});

function namesOf(record: Fields, list: string, count?: string): string {
  const names = recordsOf(record, list).map((one) => textOf(one, "name"));
  const more = (count === undefined ? undefined : numberOf(record, count)) ?? names.length;
  if (names.length === 0) return NOTHING;
  return names.join(", ") + (more > names.length ? `, and ${countText(more - names.length)} more` : "");
}

function errorsCell(record: Fields): readonly Child[] {
  const [first] = recordsOf(record, "problems");
  if (first === undefined) return [NOTHING];
  return [problemLine(first), moreNote((numberOf(record, "problemCount") ?? 1) - 1)];
}

function problemLine(problem: Fields): HTMLElement {
  const parts = ["at", "path", "text"].map((name) => textOf(problem, name)).filter((part) => part !== "");
  return element("p", { class: "problem" }, ...breakable(parts.join(": ")));
}

function openWorkflow(parts: PageParts, id: string): OpenedView {
  return new RecordView(parts, {
    list: "workflows",
    id,
    show: (workflow, now) => [
      panel("Workflow", facts(ownFacts(workflow, now))),
      panel("Errors", ...problemsOf(workflow)),
      panel("Steps", ...stepsOf(workflow)),
      panel("Triggers", ...triggersOf(parts, workflow)),
    ],
  });
}

function ownFacts(workflow: Fields, now: number): Fact[] {
  const timeoutMs = numberOf(workflow, "timeoutMs");
  return [
    ["Name", code(textOf(workflow, "name") || NOTHING)],
    ["State", badge(textOf(workflow, "state"))],
    ["File", code(textOf(workflow, "file"))],
    ["Version", code(textOf(workflow, "versionId") || NOTHING)],
    ["Loaded", moment(timeOf(workflow, "loadedAt"), now)],
    ["Timeout", timeoutMs === undefined ? NOTHING : spanText(timeoutMs)],
  ];
}

function problemsOf(workflow: Fields): Child[] {
  const problems = recordsOf(workflow, "problems");
  if (problems.length === 0) return [emptyNote("No errors.")];
  const count = numberOf(workflow, "problemCount") ?? problems.length;
  return [...problems.map(problemLine), moreNote(count - problems.length)];
}

function stepsOf(workflow: Fields): HTMLElement[] {
  const steps = recordsOf(workflow, "steps");
  if (steps.length === 0) return [emptyNote("No version is in use.")];
  return [
    facts(steps.map((step) => [
      textOf(step, "name"),
      [badge(textOf(step, "kind"), "quiet"), note(` ${textOf(step, "at")}`)],
    ])),
  ];
}

function triggersOf(parts: PageParts, workflow: Fields): Child[] {
  const triggers = recordsOf(workflow, "triggers");
  if (triggers.length === 0) return [emptyNote("No triggers start this workflow.")];
  const count = numberOf(workflow, "triggerCount") ?? triggers.length;
  return [
    facts(triggers.map((trigger) => [
      textOf(trigger, "name"),
      badge(flagOf(trigger, "enabled") ? "enabled" : "disabled"),
    ])),
    moreNote(count - triggers.length),
    element("div", { class: "acts" }, button("All triggers", () => parts.go("triggers"), { look: "small" })),
  ];
}
