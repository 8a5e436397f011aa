import { cachedReading } from "../../../base/cached_reading.ts";
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

const patternsOf = cachedReading((json) => JSON.parse(json) as readonly string[]);
const filterOf = cachedReading(readEventFilter);
