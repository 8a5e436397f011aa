import type { JsonObject } from "../../base/exact_json.ts";
import type { Fields } from "../resources/field.ts";
import { type Identified, identifiersWith, isIdentified } from "../store/operations/identifiers.ts";
import type { WebhookStore } from "../store/store.ts";
import { refusal } from "./problem.ts";

type Records = Pick<WebhookStore, "read">;

/** Fewest characters of an identifier that select a record. */
const MIN_PREFIX = 6;
const UUID_LENGTH = 36;
/** Candidates that a refusal names. */
const MAX_CANDIDATES = 5;

/** The records of the parameters of a query, and of the fields of a body, that are identifiers. */
const PARAMETERS: Readonly<Record<string, Identified>> = {
  endpointId: "endpoints",
  eventId: "events",
  replayId: "replays",
};

/** The segments of a path, with whole identifiers in place of their first characters. */
export async function wholeSegments(
  pattern: readonly string[],
  segments: readonly string[],
  store: Records,
): Promise<readonly string[]> {
  return await Promise.all(segments.map((segment, index) => {
    // `/endpoints/:id`, `/triggers/:id/keys/:keyId`; workflows, and triggers that are called, have names.
    const records = pattern[index - 1];
    const isId = pattern[index]?.startsWith(":") === true && pattern[index + 1] !== "call";
    return isId && isIdentified(records) ? wholeId(records, segment, store) : segment;
  }));
}

/** A query, with whole identifiers in place of their first characters. */
export async function wholeQuery(query: URLSearchParams, store: Records): Promise<URLSearchParams> {
  const whole = [...query].map(async ([name, value]) => [name, await wholeValue(name, value, store)]);
  return new URLSearchParams(await Promise.all(whole));
}

/** A body with these fields, with whole identifiers in place of their first characters. */
export async function wholeBody(body: JsonObject, fields: Fields, store: Records): Promise<JsonObject> {
  const whole = Object.entries(body).map(async ([name, value]) => {
    const isId = Object.hasOwn(fields, name) && fields[name]?.type === "id" && typeof value === "string";
    return [name, isId ? await wholeValue(name, value, store) : value];
  });
  return Object.fromEntries(await Promise.all(whole));
}

async function wholeValue(name: string, value: string, store: Records): Promise<string> {
  const records = Object.hasOwn(PARAMETERS, name) ? PARAMETERS[name] : undefined;
  return records === undefined ? value : await wholeId(records, value, store);
}

/** The identifier that begins with a text; the text itself if there is none. Throws the refusal of an ambiguous one. */
export async function wholeId(records: Identified, text: string, store: Records): Promise<string> {
  if (text.length < MIN_PREFIX || text.length >= UUID_LENGTH) return text;
  const found = await store.read(identifiersWith, records, text.toLowerCase(), { max: MAX_CANDIDATES + 1 });
  if (found.length <= 1) return found[0] ?? text;
  const candidates = found.slice(0, MAX_CANDIDATES);
  const more = found.length > candidates.length ? " and others" : "";
  const detail = `Cannot find one record: ${candidates.join(", ")}${more} begin with "${text.toLowerCase()}"`;
  throw refusal("ambiguous_id", detail, { candidates });
}
