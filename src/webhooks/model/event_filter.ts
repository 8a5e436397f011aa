import {
  byteLength,
  isJsonObject,
  isRawNumber,
  type JsonObject,
  type JsonValue,
  parseJson,
  stringifyJson,
} from "../../base/exact_json.ts";
import { matchesKind } from "./event.ts";
import type { Endpoint } from "./records.ts";

/** Most paths of a filter. */
export const MAX_FILTER_PATHS = 10;
/** Most values of a path. */
export const MAX_FILTER_VALUES = 50;
/** Longest path, and longest value as JSON. */
export const MAX_FILTER_TEXT = 256;
/** Longest filter as JSON, in bytes: every event reads the filters of all endpoints. */
export const MAX_FILTER_BYTES = 8_192;

const MAX_SHOWN_LENGTH = 60;
const MAX_SHOWN_VALUES = 5;
// deno-lint-ignore no-control-regex
const CONTROLS = /[\0-\x1f\x7f-\x9f]/;

/** The problem of a filter: the reason, and the path that it concerns. */
interface EventFilterProblem {
  readonly path?: string | undefined;
  readonly reason: string;
}

/** The problem of a filter such as `{"customer.plan": ["pro", "team"]}`; undefined if it is valid. */
export function eventFilterProblem(filter: JsonObject): EventFilterProblem | undefined {
  const entries = Object.entries(filter);
  if (entries.length === 0 || entries.length > MAX_FILTER_PATHS) {
    return { reason: `expected 1 to ${MAX_FILTER_PATHS} paths with their values` };
  }
  for (const [path, values] of entries) {
    if (path.length > MAX_FILTER_TEXT || CONTROLS.test(path) || path.split(".").includes("")) {
      const reason = `expected paths of at most ${MAX_FILTER_TEXT} characters, names joined by dots`;
      return { reason };
    }
    if (!Array.isArray(values) || values.length === 0 || values.length > MAX_FILTER_VALUES) {
      return { path, reason: `expected a list of 1 to ${MAX_FILTER_VALUES} values` };
    }
    if (!values.every(isFilterValue)) {
      const reason = `expected texts, numbers, true, false or null, of at most ${MAX_FILTER_TEXT} characters`;
      return { path, reason };
    }
  }
  if (byteLength(stringifyJson(filter)) <= MAX_FILTER_BYTES) return undefined;
  return { reason: `expected at most ${MAX_FILTER_BYTES} bytes` };
}

function isFilterValue(value: JsonValue): boolean {
  const isPlain = typeof value !== "object" || value === null || isRawNumber(value);
  if (!isPlain || (typeof value === "string" && CONTROLS.test(value))) return false;
  return stringifyJson(value).length <= MAX_FILTER_TEXT;
}

/** A path of a filter, and the values that match, as JSON: a number keeps its digits. */
interface Condition {
  readonly path: string;
  readonly keys: readonly string[];
  readonly values: ReadonlySet<string>;
}

/** A filter that is ready to be compared; all conditions must match. */
type EventFilter = readonly Condition[];

/** Reads the JSON of a valid filter. */
export function readEventFilter(json: string): EventFilter {
  return Object.entries(parseJson(json) as Readonly<Record<string, readonly JsonValue[]>>)
    .map(([path, values]) => ({ path, keys: path.split("."), values: new Set(values.map(stringifyJson)) }));
}

/** Returns whether `data` matches a filter. */
export function matchesFilter(filter: EventFilter, data: JsonValue | undefined): boolean {
  return firstMismatch(filter, data) === undefined;
}

/** Why `data` does not match a filter, in one line; nothing when it matches. */
export function filterMismatch(filter: EventFilter, data: JsonValue | undefined): string | undefined {
  const mismatch = firstMismatch(filter, data);
  if (mismatch === undefined) return undefined;
  const { path, keys, values } = mismatch;
  const value = valueAt(data, keys);
  const state = value === undefined ? "is missing in data" : `is ${shortened(stringifyJson(value))}`;
  return `${path} ${state}; the filter expects ${shownValues(values)}`;
}

function firstMismatch(filter: EventFilter, data: JsonValue | undefined): Condition | undefined {
  return filter.find(({ keys, values }) => {
    const value = valueAt(data, keys);
    return value === undefined || !isComparable(value) || !values.has(stringifyJson(value));
  });
}

/** No filter has other values: these may have a megabyte each, which every filter would write as JSON. */
function isComparable(value: JsonValue): boolean {
  if (typeof value === "string") return value.length <= MAX_FILTER_TEXT;
  return typeof value !== "object" || value === null || isRawNumber(value);
}

/** An event, as far as it is known. */
export interface ComparedEvent {
  readonly kind?: string | undefined;
  readonly data?: JsonValue | undefined;
}

/** Why an endpoint does not receive an event, in one line; nothing when it does. Compares only what is known. */
export function subscriptionMismatch(
  { events, filter }: Pick<Endpoint, "events" | "filter">,
  { kind, data }: ComparedEvent,
): string | undefined {
  if (kind !== undefined && !matchesKind(events, kind)) {
    return `the endpoint does not subscribe to ${kind}`;
  }
  if (filter === undefined || data === undefined) return undefined;
  return filterMismatch(readEventFilter(filter), data);
}

/** The `data` of the body of an event; nothing where it cannot be read. */
export function payloadOf(body: Uint8Array): JsonValue | undefined {
  try {
    return (parseJson(new TextDecoder().decode(body)) as JsonObject)["data"];
  } catch {
    // The output of a workflow may be nested too deep for the parser, and its event must be stored all the same.
    return undefined;
  }
}

/** The value below own properties of objects; a path does not enter lists. */
function valueAt(data: JsonValue | undefined, keys: readonly string[]): JsonValue | undefined {
  let value = data;
  for (const key of keys) {
    if (!isJsonObject(value)) return undefined;
    value = Object.hasOwn(value, key) ? value[key] : undefined;
  }
  return value;
}

function shownValues(values: ReadonlySet<string>): string {
  const shown = [...values].slice(0, MAX_SHOWN_VALUES).map(shortened);
  const further = values.size - shown.length;
  return `${shown.join(" or ")}${further > 0 ? ` or one of ${further} further values` : ""}`;
}

function shortened(text: string): string {
  return text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH)}…` : text;
}
