import type { SchemaProperties } from "../../base/json_schema.ts";
import { parseTime } from "../../base/rfc3339.ts";
import { eventKindProblem } from "../model/event.ts";
import type { ListOptions, Operation, Page } from "../store/store.ts";
import { FieldReader } from "./field_reader.ts";
import { DEFAULT_LIMIT, MAX_LIMIT } from "./list_parameters.ts";
import { invalidField } from "./problem.ts";
import { type AdministrationHandler, jsonAnswer, type RoutedCall } from "./route.ts";

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Reads the query of a list. Throws a `WebhookRefusal` that names the parameter. */
export function listOptionsOf(query: URLSearchParams, schemas: SchemaProperties): ListOptions {
  const fields = new FieldReader(Object.fromEntries(query), schemas);
  for (const name of query.keys()) {
    if (query.getAll(name).length > 1) throw invalidField(name, "expected it once");
  }
  // Actions of the audit log are written as kinds are. A pattern such as "*" would match nothing.
  const event = fields.textIfGiven("event");
  const problem = event === undefined ? undefined : eventKindProblem(event);
  if (problem !== undefined) throw invalidField("event", problem);
  return {
    limit: limitOf(query),
    cursor: fields.textIfGiven("cursor"),
    endpointId: idIfGiven(fields, "endpointId", "an endpoint"),
    eventId: idIfGiven(fields, "eventId", "an event"),
    state: fields.choiceIfGiven("state", statesOf(schemas)),
    event,
    since: timeOf(query, "since"),
    until: timeOf(query, "until"),
  };
}

/** A handler that lists records by these parameters, each item as `show` returns it. An invalid cursor is refused. */
export function lister<T>(
  parameters: SchemaProperties,
  operation: Operation<[options: ListOptions, now: number], Page<T>>,
  show: (item: T, call: RoutedCall) => unknown,
): AdministrationHandler {
  return async (call) => {
    const options = listOptionsOf(call.query, parameters);
    const read = call.store.read(operation, options, call.clock.now());
    const { items, nextCursor } = await read.catch((error: unknown) => {
      if (!(error instanceof RangeError)) throw error;
      throw invalidCursor();
    });
    return jsonAnswer(200, { items: await Promise.all(items.map((item) => show(item, call))), nextCursor });
  };
}

/** The refusal of a cursor that is not one of the list. */
export function invalidCursor(): Error {
  return invalidField("cursor", "expected the nextCursor of a page of this list");
}

/** An identifier of the query; nothing for an absent one. */
export function idIfGiven(fields: FieldReader, name: string, what: string): string | undefined {
  const id = fields.textIfGiven(name);
  if (id === undefined || UUID.test(id)) return id;
  throw invalidField(name, `expected the identifier of ${what}`);
}

function statesOf({ state }: SchemaProperties): readonly string[] {
  return state?.enum?.map(String) ?? [];
}

function limitOf(query: URLSearchParams): number {
  const text = query.get("limit") ?? String(DEFAULT_LIMIT);
  const limit = /^[1-9][0-9]{0,2}$/.test(text) ? Number(text) : 0;
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
