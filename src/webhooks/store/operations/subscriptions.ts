import type { JsonValue } from "../../../base/exact_json.ts";
import { matchesKind } from "../../model/event.ts";
import { matchesFilter, payloadOf, readEventFilter } from "../../model/event_filter.ts";
import type { NewEvent } from "../../model/records.ts";
import { text } from "../rows.ts";
import type { Row } from "../work.ts";

/** A delivery to create. */
export interface NewDelivery {
  readonly id: string;
  readonly endpointId: string;
}

/** Selects what `subscribedTo` reads. */
export const SUBSCRIPTIONS = "SELECT id, events, data_filter FROM endpoint ORDER BY seq";

/** A delivery for every endpoint that names the kind of an event and whose filter matches. */
export function subscribedTo(
  { kind, body }: Pick<NewEvent, "kind" | "body">,
  endpoints: readonly Row[],
): readonly NewDelivery[] {
  // Read once, and only for a filter: a body may have a megabyte.
  let data: { readonly value: JsonValue | undefined } | undefined;
  return endpoints
    .filter((row) => {
      if (!matchesKind(patternsOf(text(row, "events")), kind)) return false;
      const json = row["data_filter"];
      if (typeof json !== "string") return true;
      data ??= { value: payloadOf(body) };
      return matchesFilter(filterOf(json), data.value);
    })
    .map((row) => ({ id: crypto.randomUUID(), endpointId: text(row, "id") }));
}

/** In characters of the texts, of which each counts for some more. Each event needs all texts, so all have to fit. */
const MAX_CACHED = 8_388_608;
const MORE_CHARACTERS = 100;

/** Keeps what was read of a text. */
function cached<T>(read: (json: string) => T): (json: string) => T {
  const known = new Map<string, T>();
  let size = 0;
  return (json) => {
    let value = known.get(json);
    if (value === undefined) {
      value = read(json);
      if (size >= MAX_CACHED) {
        known.clear();
        size = 0;
      }
      known.set(json, value);
      size += json.length + MORE_CHARACTERS;
    }
    return value;
  };
}

const patternsOf = cached((json) => JSON.parse(json) as readonly string[]);
const filterOf = cached(readEventFilter);
