import type { JsonObject } from "../../base/exact_json.ts";
import type { TriggerVerification } from "../model/records.ts";
import { headerNames } from "../model/signature_scheme.ts";
import { type SignedPart, signedParts } from "../model/signed_template.ts";
import type { Fields, Sent } from "../resources/field.ts";
import {
  CUSTOM_ID,
  CUSTOM_SIGNATURE,
  CUSTOM_TIME,
  type TRIGGER_VERIFICATION,
} from "../resources/trigger_verification.ts";
import { readFields } from "./field_reader.ts";
import { invalidField } from "./problem.ts";

/** The setting that signatures of URLs require. */
export interface VerificationOptions {
  /** `TRIGGER_PUBLIC_URL`. */
  readonly publicUrl?: string | undefined;
}

/** The fields of `custom`, as they are sent. */
type SentCustom = Partial<Sent<typeof TRIGGER_VERIFICATION>>;

/** The fields of the scheme `custom`. Throws a `WebhookRefusal` that names the wrong one. */
export function customVerification(
  sent: SentCustom,
  options: VerificationOptions,
): Partial<TriggerVerification> {
  const { signed, algorithm = "hmac-sha256", secretEncoding } = sent;
  if (signed === undefined) throw invalidField("verify.signed", "it is required");
  if (sent.signature === undefined) throw invalidField("verify.signature", "it is required");
  const parts = signedParts(signed);
  if ("problem" in parts) throw invalidField("verify.signed", parts.problem);
  const signature = readPart("signature", CUSTOM_SIGNATURE, sent.signature);
  const time = readPart("time", CUSTOM_TIME, sent.time);
  const id = readPart("id", CUSTOM_ID, sent.id);
  if (algorithm === "ed25519" && secretEncoding !== undefined) {
    throw invalidField("verify.secretEncoding", "the secret of ed25519 is a public key in hex or base64");
  }
  if (time !== undefined) checkTime(time, signature, parts);
  if (id !== undefined && (id.header === undefined) === (id.field === undefined)) {
    throw invalidField("verify.id", "expected one of header and field");
  }
  checkValues(parts, { time, id }, options);
  return {
    signed,
    algorithm,
    ...(algorithm === "ed25519" ? {} : { secretEncoding: secretEncoding ?? "text" }),
    signature: { ...signature, encoding: signature.encoding ?? "hex" },
    ...(time === undefined ? {} : { time: { ...time, unit: time.unit ?? "seconds" } }),
    ...(id === undefined ? {} : { id }),
  };
}

function readPart<F extends Fields>(name: string, fields: F, object: JsonObject): Sent<F>;
function readPart<F extends Fields>(
  name: string,
  fields: F,
  object: JsonObject | undefined,
): Sent<F> | undefined;
function readPart<F extends Fields>(
  name: string,
  fields: F,
  object: JsonObject | undefined,
): Sent<F> | undefined {
  return object === undefined ? undefined : readFields(object, fields, { prefix: `verify.${name}.` });
}

function checkTime(
  { header, prefix, field }: Sent<typeof CUSTOM_TIME>,
  signature: Sent<typeof CUSTOM_SIGNATURE>,
  parts: readonly SignedPart[],
): void {
  const given = [header, prefix, field].filter((one) => one !== undefined);
  if (given.length !== 1) throw invalidField("verify.time", "expected one of header, prefix and field");
  const shared = headerNames(header).find((name) => headerNames(signature.header).includes(name));
  if (shared !== undefined) throw invalidField("verify.time.header", "it is the header of the signature");
  if (prefix !== undefined && signature.list === undefined) {
    throw invalidField("verify.time.prefix", "it requires verify.signature.list");
  }
  if (prefix !== undefined && prefix === (signature.prefix ?? "")) {
    throw invalidField("verify.time.prefix", "it is the text before the signature");
  }
  // A field of the body is signed with it.
  if (field === undefined && !has(parts, "time")) {
    throw invalidField("verify.signed", "expected {time}: without it, verify.time is not signed");
  }
  if (field !== undefined && has(parts, "time")) {
    throw invalidField("verify.signed", "{time} requires verify.time.header or verify.time.prefix");
  }
}

function checkValues(
  parts: readonly SignedPart[],
  { time, id }: Pick<TriggerVerification, "time" | "id">,
  { publicUrl }: VerificationOptions,
): void {
  if (has(parts, "time") && time === undefined) {
    throw invalidField("verify.signed", "{time} requires verify.time.header or verify.time.prefix");
  }
  if (has(parts, "id") && id?.header === undefined) {
    throw invalidField("verify.signed", "{id} requires verify.id.header");
  }
  if (has(parts, "url") && publicUrl === undefined) {
    throw invalidField("verify.signed", "{url} requires the setting TRIGGER_PUBLIC_URL");
  }
}

function has(parts: readonly SignedPart[], name: string): boolean {
  return parts.some((part) => part.kind === "value" && part.name === name);
}
