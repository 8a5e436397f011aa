import { parseTime } from "../../base/rfc3339.ts";
import { eventKindProblem } from "../model/event.ts";
import type { ListOptions, Operation, Page } from "../store/store.ts";
import { FieldReader } from "./field_reader.ts";
import { invalidField } from "./problem.ts";
import { type AdministrationHandler, jsonAnswer, type RoutedCall } from "./route.ts";

/** Filters of lists, in addition to `limit` and `cursor`. */
export type ListFilter = "endpointId" | "state" | "event" | "since" | "until";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Reads the query of a list. Throws a `WebhookRefusal` that names the parameter. */
function listOptionsOf(
  query: URLSearchParams,
  filters: readonly ListFilter[],
  states: readonly string[] = [],
): ListOptions {
  const fields = new FieldReader(Object.fromEntries(query), [...filters, "limit", "cursor"]);
  for (const name of query.keys()) {
    if (query.getAll(name).length > 1) throw invalidField(name, "expected it once");
  }
  const endpointId = fields.textIfGiven("endpointId");
  if (endpointId !== undefined && !UUID.test(endpointId)) {
    throw invalidField("endpointId", "expected the identifier of an endpoint");
  }
  // Actions of the audit log are written as kinds are. A pattern such as "*" would match nothing.
  const event = fields.textIfGiven("event");
  const problem = event === undefined ? undefined : eventKindProblem(event);
  if (problem !== undefined) throw invalidField("event", problem);
  return {
    limit: limitOf(query),
    cursor: fields.textIfGiven("cursor"),
    endpointId,
    state: fields.choiceIfGiven("state", states),
    event,
    since: timeOf(query, "since"),
    until: timeOf(query, "until"),
  };
}

/** A handler that lists records by these filters, each item as `show` returns it. An invalid cursor is refused. */
export function lister<T>(
  filters: readonly ListFilter[],
  operation: Operation<[ListOptions], Page<T>>,
  show: (item: T, call: RoutedCall) => unknown,
  states?: readonly string[],
): AdministrationHandler {
  return async (call) => {
    const options = listOptionsOf(call.query, filters, states);
    const { items, nextCursor } = await call.store.read(operation, options).catch((error: unknown) => {
      if (!(error instanceof RangeError)) throw error;
      throw invalidField("cursor", "expected the nextCursor of a page of this list");
    });
    return jsonAnswer(200, { items: await Promise.all(items.map((item) => show(item, call))), nextCursor });
  };
}

function limitOf(query: URLSearchParams): number {
  const text = query.get("limit") ?? String(DEFAULT_LIMIT);
  const limit = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw invalidField("limit", `expected an integer from 1 to ${MAX_LIMIT}`);
}

function timeOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const time = parseTime(text);
  if (time !== undefined) return time;
  throw invalidField(name, "expected a time such as 2026-01-31T12:00:00Z");
}
