import { type JsonObject, type JsonValue, ownValueAt, parseJson } from "../../base/exact_json.ts";
import {
  type Condition,
  type ConditionProblem,
  conditionProblem,
  mismatchOf,
  mismatchText,
  PATH_PROBLEM,
  type ReadPath,
  storedCondition,
} from "./condition.ts";
import { matchesKind } from "./event.ts";
import type { Endpoint } from "./records.ts";

/** A filter that is ready to be compared; its paths are names below `data`. */
type EventFilter = Condition<readonly string[]>;

/** The problem of a filter such as `{"customer.plan": ["pro", "team"]}`; undefined if it is valid. */
export function eventFilterProblem(filter: JsonObject): ConditionProblem | undefined {
  return conditionProblem(filter, readPath);
}

/** Reads the JSON of a valid filter. */
export function readEventFilter(json: string): EventFilter {
  return storedCondition(json, readPath);
}

const readPath: ReadPath<readonly string[]> = (text) => {
  const path = text.split(".");
  return path.includes("") ? { problem: PATH_PROBLEM } : { path };
};

/** Returns whether `data` matches a filter. */
export function matchesFilter(filter: EventFilter, data: JsonValue | undefined): boolean {
  return mismatchOf(filter, (keys) => ownValueAt(data, keys)) === undefined;
}

/** Why `data` does not match a filter, in one line; nothing when it matches. */
export function filterMismatch(filter: EventFilter, data: JsonValue | undefined): string | undefined {
  const mismatch = mismatchOf(filter, (keys) => ownValueAt(data, keys));
  return mismatch === undefined ? undefined : mismatchText(mismatch, { of: "data", whose: "the filter" });
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
