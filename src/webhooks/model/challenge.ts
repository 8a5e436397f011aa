import { isJsonObject, type JsonObject, type JsonValue } from "../../base/exact_json.ts";
import type { TRIGGER_FIELDS } from "../resources/trigger.ts";

/** A provider that checks a URL before it sends events to it. */
type ChallengeProvider = (typeof TRIGGER_FIELDS.challenge.choices)[number];

/** Longest text that is returned to the caller, in characters of one byte. */
const MAX_ECHOED = 1_024;
const ECHOED = new RegExp(`^[ -~]{1,${MAX_ECHOED}}$`);
/** It is signed with the secret of the trigger: no text that a signature covers has this form. */
const PLAIN_TOKEN = /^[A-Za-z0-9_-]{1,128}$/;

/** The parameters of a query that a provider checks a URL with. */
const PARAMETERS: Readonly<Partial<Record<ChallengeProvider, string>>> = {
  meta: "hub.challenge",
  dropbox: "challenge",
  microsoft: "validationToken",
};

/** The text that a check by a query expects; nothing for another call, and for a text that is not returned. */
export function challengeOfQuery(provider: ChallengeProvider, query: URLSearchParams): string | undefined {
  if (provider === "meta" && soleValue(query, "hub.mode") !== "subscribe") return undefined;
  const text = soleValue(query, PARAMETERS[provider] ?? "");
  return text !== undefined && ECHOED.test(text) ? text : undefined;
}

/** The value of a parameter; nothing for one that is repeated, of which another program may have read the other value. */
function soleValue(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  return values.length === 1 ? values[0] : undefined;
}

/** The token that the check of Meta shows; empty for none. */
export function shownToken(query: URLSearchParams): string {
  return soleValue(query, "hub.verify_token") ?? "";
}

/** Returns whether a call may be a check without a body. */
export function isQueryCheck(query: URLSearchParams): boolean {
  return query.has("validationToken");
}

/** A check in a signed body: the text to return, or nothing for one that is not returned. */
interface BodyCheck {
  readonly text: string | undefined;
}

/** The answers to pings of Discord by `type`: those of event webhooks, whose answer is empty, and those of interactions. */
const PINGS = new Map<JsonValue | undefined, string>([[0, ""], [1, '{"type":1}']]);

/** The check that a body is; nothing for a call. */
export function challengeOfBody(provider: ChallengeProvider, body: JsonObject): BodyCheck | undefined {
  if (provider === "slack" && body["type"] === "url_verification") {
    return { text: textOf(body["challenge"], ECHOED) };
  }
  if (provider === "discord") {
    // The type of an event is 1 too.
    const text = Object.hasOwn(body, "event") ? undefined : PINGS.get(body["type"]);
    return text === undefined ? undefined : { text };
  }
  if (provider !== "zoom" || body["event"] !== "endpoint.url_validation") return undefined;
  const { payload } = body;
  return { text: isJsonObject(payload) ? textOf(payload["plainToken"], PLAIN_TOKEN) : undefined };
}

function textOf(value: JsonValue | undefined, form: RegExp): string | undefined {
  return typeof value === "string" && form.test(value) ? value : undefined;
}
