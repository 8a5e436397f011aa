import { eventPatternProblem } from "../model/event.ts";
import type { FieldReader } from "./field_reader.ts";
import type { JsonObject } from "../../base/exact_json.ts";
import { invalidField } from "./problem.ts";

/** The fields of an endpoint that may be sent. */
export const ENDPOINT_FIELDS = [
  "url",
  "events",
  "description",
  "headers",
  "concurrency",
  "timeoutMs",
  "standardWebhooks",
  "enabled",
] as const;

/** Static headers as they came: name and value. */
export type StaticHeaders = readonly (readonly [string, string])[];

/** What was said of an endpoint beside its URL; absent where nothing was. */
export interface SentEndpoint {
  readonly events: readonly string[] | undefined;
  readonly description: string | undefined;
  readonly headers: StaticHeaders | undefined;
  readonly concurrency: number | undefined;
  readonly timeoutMs: number | undefined;
  readonly standardWebhooks: boolean | undefined;
  readonly enabled: boolean | undefined;
}

const MAX_URL = 2_048;
const MAX_PATTERNS = 100;
const MAX_HEADERS = 32;
const MAX_HEADER_VALUE = 4_096;
const CONCURRENCY = { min: 1, max: 100 };
const TIMEOUT_MS = { min: 1, max: 600_000 };
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
const HEADER_VALUE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
/** Headers that say how a request is sent, or whose it is. */
const RESERVED =
  /^(?:x-svc-.*|webhook-.*|content-.*|proxy-.*|host|user-agent|connection|keep-alive|transfer-encoding|te|trailer|upgrade|http2-settings|expect)$/;

/** The URL of an endpoint, if one was sent; what it may be is checked where addresses are known. */
export function sentUrl(fields: FieldReader): string | undefined {
  return fields.textIfGiven("url", { maxLength: MAX_URL });
}

/** Reads all fields but the URL; those that are `null` are taken as not sent. */
export function sentEndpoint(fields: FieldReader): SentEndpoint {
  return {
    events: fields.textsIfGiven("events", { max: MAX_PATTERNS, problem: eventPatternProblem }),
    description: fields.textIfGiven("description"),
    headers: fields.isNull("headers") ? undefined : headersOf(fields.objectIfGiven("headers")),
    concurrency: fields.wholeIfGiven("concurrency", CONCURRENCY),
    timeoutMs: fields.isNull("timeoutMs") ? undefined : fields.wholeIfGiven("timeoutMs", TIMEOUT_MS),
    standardWebhooks: fields.flagIfGiven("standardWebhooks"),
    enabled: fields.flagIfGiven("enabled"),
  };
}

function headersOf(object: JsonObject | undefined): StaticHeaders | undefined {
  if (object === undefined) return undefined;
  const entries = Object.entries(object);
  if (entries.length > MAX_HEADERS) {
    throw invalidField("headers", `at most ${MAX_HEADERS} headers are wanted`);
  }
  const seen = new Set<string>();
  return entries.map(([name, value]) => {
    const field = `headers.${name}`;
    const lower = name.toLowerCase();
    if (!HEADER_NAME.test(name)) throw invalidField("headers", "a name in it is no name of a header");
    if (RESERVED.test(lower)) throw invalidField(field, "this header is set by the service alone");
    if (seen.has(lower)) throw invalidField(field, "it stands twice");
    seen.add(lower);
    if (typeof value !== "string" || value.length > MAX_HEADER_VALUE || !HEADER_VALUE.test(value)) {
      throw invalidField(field, `a text of 1 to ${MAX_HEADER_VALUE} visible ASCII characters is wanted`);
    }
    return [name, value] as const;
  });
}
