import { eventPatternProblem } from "../model/event.ts";
import type { FieldReader } from "./field_reader.ts";
import { type JsonObject, stringifyJson } from "../../base/exact_json.ts";
import { eventFilterProblem } from "../model/event_filter.ts";
import { MAX_HEADER_VALUE, MAX_HEADERS } from "./endpoint_operations.ts";
import { invalidField } from "./problem.ts";
import { SENDER_HEADERS } from "./text_forms.ts";

/** Static headers: name and value. */
export type StaticHeaders = readonly (readonly [string, string])[];

const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
const HEADER_VALUE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
const RESERVED = new RegExp(`^(?:${SENDER_HEADERS})$`);

/** Reads all fields but the URL, which is checked where addresses are known; `null` counts as not sent. */
export function sentEndpoint(fields: FieldReader) {
  return {
    events: fields.textsIfGiven("events", eventPatternProblem),
    description: fields.textIfGiven("description"),
    headers: fields.isNull("headers") ? undefined : headersOf(fields.objectIfGiven("headers")),
    concurrency: fields.wholeIfGiven("concurrency"),
    timeoutMs: fields.isNull("timeoutMs") ? undefined : fields.wholeIfGiven("timeoutMs"),
    standardWebhooks: fields.flagIfGiven("standardWebhooks"),
    filter: fields.isNull("filter") ? undefined : filterOf(fields.objectIfGiven("filter")),
    enabled: fields.flagIfGiven("enabled"),
  };
}

/** The JSON of a filter. */
function filterOf(object: JsonObject | undefined): string | undefined {
  if (object === undefined) return undefined;
  const problem = eventFilterProblem(object);
  if (problem === undefined) return stringifyJson(object);
  throw invalidField(problem.path === undefined ? "filter" : `filter.${problem.path}`, problem.reason);
}

function headersOf(object: JsonObject | undefined): StaticHeaders | undefined {
  if (object === undefined) return undefined;
  const entries = Object.entries(object);
  if (entries.length > MAX_HEADERS) {
    throw invalidField("headers", `expected at most ${MAX_HEADERS} headers`);
  }
  const seen = new Set<string>();
  return entries.map(([name, value]) => {
    const field = `headers.${name}`;
    const lower = name.toLowerCase();
    if (!HEADER_NAME.test(name)) throw invalidField("headers", "expected names of headers");
    if (RESERVED.test(lower)) throw invalidField(field, "this header is set by the service alone");
    if (seen.has(lower)) throw invalidField(field, "expected it once");
    seen.add(lower);
    if (typeof value !== "string" || value.length > MAX_HEADER_VALUE || !HEADER_VALUE.test(value)) {
      throw invalidField(field, `expected 1 to ${MAX_HEADER_VALUE} visible ASCII characters`);
    }
    return [name, value] as const;
  });
}
