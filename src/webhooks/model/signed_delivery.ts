import { type JsonObject, ownValueAt } from "../../base/exact_json.ts";
import type { TriggerVerification } from "./records.ts";
import { type CallHeaders, headerValue } from "./signature_header.ts";
import { headerNames, schemeOf } from "./signature_scheme.ts";

/** The provider's identifier of a delivery, which is the same when the call is repeated; nothing where it has none. */
export function deliveryIdOf(
  verification: TriggerVerification,
  headers: CallHeaders,
  input: JsonObject,
): string | undefined {
  const { header, field } = schemeOf(verification).id ?? {};
  if (field === undefined) return headerValue(header, headers);
  const id = ownValueAt(input, field.split("."));
  return typeof id === "string" ? id : undefined;
}

const MAX_EVENT_LENGTH = 128;

/** The kind of event that the provider names in a header, which is not signed; nothing where it names none. */
export function eventOf(verification: TriggerVerification, headers: CallHeaders): string | undefined {
  const event = headers.get(schemeOf(verification).eventHeader ?? "");
  return event === undefined || event === "" || event.length > MAX_EVENT_LENGTH ? undefined : event;
}

/** Returns whether a call only tests the connection. */
export function isPing(verification: TriggerVerification, headers: CallHeaders): boolean {
  const { eventHeader, pingEvent } = schemeOf(verification);
  return pingEvent !== undefined && headers.get(eventHeader ?? "") === pingEvent;
}

/** The headers of the delivery's identifier; none where the scheme has none. */
export function idHeadersOf(verification: TriggerVerification): readonly string[] {
  return headerNames(schemeOf(verification).id?.header);
}

/** A warning about the signatures of a trigger, if they are weak. */
export function weaknessOf(verification: TriggerVerification): string | undefined {
  const { algorithm } = schemeOf(verification);
  return algorithm === "hmac-sha1"
    ? "HMAC-SHA1 is weak: use another algorithm if the sender offers one"
    : undefined;
}
