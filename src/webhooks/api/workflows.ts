import { Buffer } from "node:buffer";
import { timeTextIf } from "../../base/rfc3339.ts";
import type { WorkflowEntry } from "../model/workflow.ts";
import { type TriggersOfWorkflow, triggersOfWorkflows } from "../store/operations/triggers.ts";
import { listOptionsOf } from "./list_query.ts";
import { found } from "./problem.ts";
import { jsonAnswer, type RoutedCall, type RoutesOf } from "./route.ts";
import {
  MAX_SHOWN_PROBLEMS,
  MAX_SHOWN_TRIGGERS,
  WORKFLOW_LIST,
  type WORKFLOW_OPERATIONS,
} from "./workflow_operations.ts";

/** `/workflows`. */
export const WORKFLOW_ROUTES: RoutesOf<typeof WORKFLOW_OPERATIONS> = {
  "GET /workflows": listWorkflows,
  "GET /workflows/:id": getWorkflow,
};

async function listWorkflows(call: RoutedCall) {
  const { limit, cursor } = listOptionsOf(call.query, WORKFLOW_LIST);
  const { folder, problems, entries } = call.workflows.listing();
  const last = cursor === undefined ? "" : idOfCursor(cursor);
  const rest = entries.filter(({ id }) => id > last);
  const page = rest.slice(0, limit);
  const items = await shownAll(page, call);
  return jsonAnswer(200, {
    items,
    folder,
    problems,
    nextCursor: rest.length > page.length ? cursorOf(page.at(-1)?.id ?? "") : undefined,
  });
}

async function getWorkflow(call: RoutedCall) {
  const id = decoded(call.id);
  const entry = call.workflows.listing().entries.find((one) => one.id === id);
  const [shown] = await shownAll([found(entry, "this workflow")], call);
  return jsonAnswer(200, shown);
}

/** The file of an id may be gone when its cursor comes back. */
function cursorOf(id: string): string {
  return `workflows.${Buffer.from(id).toString("hex")}`;
}

function idOfCursor(cursor: string): string {
  return Buffer.from(cursor.slice(cursor.indexOf(".") + 1), "hex").toString();
}

/** A name of a file may have characters that are encoded in a path. */
function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

async function shownAll(entries: readonly WorkflowEntry[], { store }: RoutedCall) {
  const names = entries.flatMap(({ name }) => name ?? []);
  const triggers = await store.read(triggersOfWorkflows, names, MAX_SHOWN_TRIGGERS);
  return entries.map((entry) => shown(entry, triggers.get(entry.name ?? "")));
}

function shown({ id, name, file, current, problems }: WorkflowEntry, triggers?: TriggersOfWorkflow) {
  const { version, workflow, at, stepPositions = [], loadedAt } = current ?? {};
  const isValid = problems.every(({ severity }) => severity !== "error");
  return {
    id,
    name,
    file,
    state: current === undefined ? "invalid" : isValid ? "valid" : "outdated",
    at,
    versionId: version?.id,
    loadedAt: timeTextIf(loadedAt),
    timeoutMs: workflow?.timeoutMs,
    steps: workflow?.steps.map(({ name, kind }, index) => ({ name, kind, at: stepPositions[index] })) ?? [],
    triggers: triggers?.first ?? [],
    triggerCount: triggers?.count ?? 0,
    problems: problems.slice(0, MAX_SHOWN_PROBLEMS),
    problemCount: problems.length,
  };
}
