import { eventKindProblem } from "../model/event.ts";
import { invalidField } from "./problem.ts";
import type { ListOptions, Page } from "../store/store.ts";
import { parseTime } from "../../base/rfc3339.ts";

/** What a list may be narrowed by beside `limit` and `cursor`. */
export type ListFilter = "endpointId" | "state" | "event" | "since" | "until";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;
const MAX_TEXT = 1_024;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Reads the query of a list. Throws a `WebhookRefusal` that names the parameter. */
export function listOptionsOf(
  query: URLSearchParams,
  filters: readonly ListFilter[],
  { states = [] }: { readonly states?: readonly string[] } = {},
): ListOptions {
  const known = [...filters, "limit", "cursor"];
  for (const name of query.keys()) {
    if (!known.includes(name)) throw invalidField(name, `it is not known; ${known.join(", ")} would be`);
    if (query.getAll(name).length > 1) throw invalidField(name, "it is wanted once");
  }
  const state = textOf(query, "state");
  if (state !== undefined && !states.includes(state)) {
    throw invalidField("state", `one of ${states.join(", ")} is wanted`);
  }
  const endpointId = textOf(query, "endpointId");
  if (endpointId !== undefined && !UUID.test(endpointId)) {
    throw invalidField("endpointId", "expected the identifier of an endpoint");
  }
  // Actions of the audit log are written as kinds are. A pattern such as "*" would match nothing.
  const event = textOf(query, "event");
  const problem = event === undefined ? undefined : eventKindProblem(event);
  if (problem !== undefined) throw invalidField("event", problem);
  return {
    limit: limitOf(query),
    cursor: textOf(query, "cursor"),
    endpointId,
    state,
    event,
    since: timeOf(query, "since"),
    until: timeOf(query, "until"),
  };
}

/** The page that `list` answers, each item as `show` has it. A cursor that is none is refused. */
export async function pageOf<T>(
  list: Promise<Page<T>>,
  show: (item: T) => unknown,
): Promise<{ readonly items: readonly unknown[]; readonly nextCursor?: string | undefined }> {
  const { items, nextCursor } = await list.catch((error: unknown) => {
    if (error instanceof RangeError) {
      throw invalidField("cursor", "the nextCursor of a page of this list is wanted");
    }
    throw error;
  });
  return { items: await Promise.all(items.map(show)), nextCursor };
}

function limitOf(query: URLSearchParams): number {
  const text = query.get("limit");
  if (text === null) return DEFAULT_LIMIT;
  const limit = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw invalidField("limit", `a whole number from 1 to ${MAX_LIMIT} is wanted`);
}

function textOf(query: URLSearchParams, name: string): string | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (text !== "" && text.length <= MAX_TEXT) return text;
  throw invalidField(name, `a text of 1 to ${MAX_TEXT} characters is wanted`);
}

function timeOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const time = parseTime(text);
  if (time !== undefined) return time;
  throw invalidField(name, "a time such as 2026-01-31T12:00:00Z is wanted");
}
