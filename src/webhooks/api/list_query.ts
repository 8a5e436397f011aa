import type { SchemaProperties } from "../../base/json_schema.ts";
import { cursorPattern } from "../model/cursor.ts";
import { type Fields, LIST_PARAMETERS, type Resource } from "../resources/field.ts";
import type { ListOptions, Operation, Page } from "../store/store.ts";
import { readFields } from "./field_reader.ts";
import { sentSchemas } from "./field_schemas.ts";
import { invalidField } from "./problem.ts";
import { type AdministrationHandler, jsonAnswer, type RoutedCall } from "./route.ts";

/** Records on a page when a call does not set `limit`. */
const DEFAULT_LIMIT = 50;

/** The parameters of a page; `cursors` is the pattern of the cursors of the list. */
export function pageFields(cursors: string): Fields {
  const { limit, cursor } = LIST_PARAMETERS;
  return { limit, cursor: { ...cursor, pattern: `^${cursors}$` } };
}

/** The parameters of a list: filters, times and paging. */
export function listFields({ list, filters }: Resource): Fields {
  const { since, until } = LIST_PARAMETERS;
  return { ...filters, since, until, ...pageFields(cursorPattern(camelCase(list))) };
}

/** A name in words with dashes, such as `event-keys`, as one word. */
export function camelCase(words: string): string {
  return words.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The schemas of the parameters of a list. */
export function listSchemas(fields: Fields): SchemaProperties {
  const { limit = {}, ...others } = sentSchemas(fields);
  return { ...others, limit: { ...limit, default: DEFAULT_LIMIT } };
}

/** The query of a call; throws a `WebhookRefusal` that names a repeated parameter. */
export function queryOf(query: URLSearchParams): Readonly<Record<string, string>> {
  const repeated = query.keys().find((name) => query.getAll(name).length > 1);
  if (repeated !== undefined) throw invalidField(repeated, "expected it once");
  return Object.fromEntries(query);
}

/** Reads the query of a list. Throws a `WebhookRefusal` that names the parameter. */
export function listOptionsOf(query: URLSearchParams, fields: Fields): ListOptions {
  const { limit = String(DEFAULT_LIMIT), ...others } = queryOf(query);
  const number = /^[1-9][0-9]{0,2}$/.test(limit) ? Number(limit) : limit;
  return readFields({ ...others, limit: number }, fields) as unknown as ListOptions;
}

/** A handler that lists the records of a resource, each item as `show` returns it. */
export function lister<T>(
  resource: Resource,
  operation: Operation<[options: ListOptions, now: number], Page<T>>,
  show: (item: T, call: RoutedCall) => unknown,
): AdministrationHandler {
  const fields = listFields(resource);
  return async (call) => {
    const options = listOptionsOf(call.query, fields);
    const { items, nextCursor } = await call.store.read(operation, options, call.clock.now());
    return jsonAnswer(200, { items: await Promise.all(items.map((item) => show(item, call))), nextCursor });
  };
}
