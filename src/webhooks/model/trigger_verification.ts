import type { JsonObject } from "../../base/exact_json.ts";
import { DEFAULT_TOLERANCE_SECONDS } from "../resources/trigger.ts";
import type { TriggerVerification } from "./records.ts";
import {
  constantTimeEqual,
  hmacSha256,
  secondsBehind,
  signedBytes,
  type SigningSecret,
} from "./signature.ts";

/** Headers of a call by name in lower case; repeated ones are joined by a comma and a space. */
export type CallHeaders = ReadonlyMap<string, string>;

/** Why a signature is refused, and when. */
export const SIGNATURE_REFUSALS = {
  no_secret: "every secret of the trigger was revoked",
  missing_header: "a header of the scheme is missing",
  malformed_header:
    "the header of the signature is malformed, or a header of the scheme has different values",
  malformed_timestamp: "the time is not a whole number of seconds",
  too_old: "the time is further behind the clock than the tolerance",
  too_new: "the time is further ahead of the clock than the tolerance",
  wrong_signature: "the signature matches no secret of the trigger",
} as const;

/** Why a signature is refused. */
export type SignatureRefusal = keyof typeof SIGNATURE_REFUSALS;

/** A scheme as the checks need it. */
interface Scheme {
  /** The header of the signature. */
  readonly header: string;
  /**
   * The form of that header: `single` for one signature behind a prefix, `stripe` for `t=…,v1=…`, `list` for `v1,…` with
   * spaces in between.
   */
  readonly form: "single" | "stripe" | "list";
  readonly prefix?: string | undefined;
  readonly encoding: "hex" | "base64";
  readonly secretForm: SigningSecret["form"];
  /** The header of the time, unless it is in the header of the signature. */
  readonly timestampHeader?: string | undefined;
  readonly isTimed: boolean;
  /** The header of the delivery's identifier. */
  readonly idHeader?: string | undefined;
  /** True if that identifier is signed in front of the time. */
  readonly isIdSigned?: boolean;
  /** The field of the body with the delivery's identifier. */
  readonly idField?: string;
  /** The header of the kind of event, and the kind that only tests the connection. */
  readonly eventHeader?: string;
  readonly pingEvent?: string;
}

const SCHEMES: Readonly<Record<Exclude<TriggerVerification["scheme"], "hmac-sha256">, Scheme>> = {
  github: {
    header: "x-hub-signature-256",
    form: "single",
    prefix: "sha256=",
    encoding: "hex",
    secretForm: "text",
    isTimed: false,
    idHeader: "x-github-delivery",
    eventHeader: "x-github-event",
    pingEvent: "ping",
  },
  stripe: {
    header: "stripe-signature",
    form: "stripe",
    encoding: "hex",
    secretForm: "text",
    isTimed: true,
    idField: "id",
  },
  shopify: {
    header: "x-shopify-hmac-sha256",
    form: "single",
    encoding: "base64",
    secretForm: "text",
    isTimed: false,
    idHeader: "x-shopify-webhook-id",
    eventHeader: "x-shopify-topic",
  },
  "standard-webhooks": {
    header: "webhook-signature",
    form: "list",
    encoding: "base64",
    secretForm: "base64",
    timestampHeader: "webhook-timestamp",
    isTimed: true,
    idHeader: "webhook-id",
    isIdSigned: true,
  },
};

/** A call whose signature is checked. */
interface SignedCall {
  readonly headers: CallHeaders;
  /** Names of headers that were sent several times with different values; none when absent. */
  readonly repeated?: readonly string[] | undefined;
  /** The raw body. */
  readonly body: Uint8Array;
}

/** Secrets and time that the signature of a call is checked against. */
interface VerifySignatureOptions {
  readonly secrets: readonly string[];
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

/**
 * Why the signature of a call is refused; nothing where it is valid. The body is hashed in any case, so that the time
 * does not tell what is wrong.
 */
export async function signatureRefusal(
  verification: TriggerVerification,
  { headers, repeated, body }: SignedCall,
  { secrets, now }: VerifySignatureOptions,
): Promise<SignatureRefusal | undefined> {
  const scheme = schemeOf(verification);
  const { header, timestampHeader, eventHeader } = scheme;
  const isAmbiguous = [header, timestampHeader, eventHeader].some((name) => repeated?.includes(name ?? ""));
  const read = isAmbiguous ? "malformed_header" : readSignatures(scheme, headers);
  const { head, signatures } = typeof read === "string" ? { head: "", signatures: [] } : read;
  const signed = signedBytes(head, body);
  const digests = await Promise.all(secrets.map((secret) => {
    return hmacSha256({ secret, form: scheme.secretForm }, signed);
  }));
  if (secrets.length === 0) return "no_secret";
  if (typeof read === "string") return read;
  const { toleranceSeconds = DEFAULT_TOLERANCE_SECONDS } = verification;
  const late = read.timestamp === undefined ? undefined : timeRefusal(read.timestamp, now, toleranceSeconds);
  if (late !== undefined) return late;
  const expected = digests.map((digest) => scheme.encoding === "hex" ? digest.toHex() : digest.toBase64());
  const matches = expected.flatMap((one) => signatures.map((given) => constantTimeEqual(one, given)));
  return matches.includes(true) ? undefined : "wrong_signature";
}

/** The provider's identifier of a delivery, which is the same when the call is repeated; nothing where it has none. */
export function deliveryIdOf(
  verification: TriggerVerification,
  headers: CallHeaders,
  input: JsonObject,
): string | undefined {
  const { idHeader, idField } = schemeOf(verification);
  if (idHeader !== undefined) return headers.get(idHeader);
  const id = idField !== undefined && Object.hasOwn(input, idField) ? input[idField] : undefined;
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

/** The header of the delivery's identifier; nothing where the scheme has none. */
export function idHeaderOf(verification: TriggerVerification): string | undefined {
  return schemeOf(verification).idHeader;
}

/** Returns whether a scheme signs a time, so that a tolerance applies. */
export function isTimed(verification: TriggerVerification): boolean {
  return schemeOf(verification).isTimed;
}

/** The form in which secrets of a scheme become keys. */
export function secretFormOf(verification: TriggerVerification): SigningSecret["form"] {
  return schemeOf(verification).secretForm;
}

function schemeOf(verification: TriggerVerification): Scheme {
  if (verification.scheme !== "hmac-sha256") return SCHEMES[verification.scheme];
  const { header = "", prefix, encoding = "hex", timestampHeader, idempotencyHeader } = verification;
  return {
    header,
    form: "single",
    prefix,
    encoding,
    secretForm: "text",
    timestampHeader,
    isTimed: timestampHeader !== undefined,
    idHeader: idempotencyHeader,
  };
}

/** Longer headers are refused, and so are those with more signatures: each is compared with each secret. */
const MAX_HEADER_LENGTH = 4_096;
const MAX_SIGNATURES = 16;
const DIGESTS = { hex: /^[0-9a-f]{64}$/i, base64: /^[A-Za-z0-9+/]{43}=$/ } as const;

/** The signature in the headers of a call. */
interface ReadSignatures {
  /** As `signatureRefusal` compares them: hex is in lower case. */
  readonly signatures: readonly string[];
  /** The text that is signed in front of the body. */
  readonly head: string;
  readonly timestamp?: string | undefined;
}

function readSignatures(scheme: Scheme, headers: CallHeaders): ReadSignatures | SignatureRefusal {
  const { header, form, prefix = "", timestampHeader, idHeader, isIdSigned = false } = scheme;
  const value = headers.get(header);
  const sentTime = timestampHeader === undefined ? undefined : headers.get(timestampHeader);
  const id = isIdSigned ? headers.get(idHeader ?? "") : undefined;
  if (value === undefined || isIdSigned && id === undefined) return "missing_header";
  if (timestampHeader !== undefined && sentTime === undefined) return "missing_header";
  if (value.length > MAX_HEADER_LENGTH) return "malformed_header";
  const parts = form === "single" ? { given: withoutPrefix(value, prefix) } : PARSERS[form](value);
  const { given, timestamp = sentTime } = parts ?? {};
  const signatures = given
    ?.filter((one) => DIGESTS[scheme.encoding].test(one))
    .map((one) => scheme.encoding === "hex" ? one.toLowerCase() : one);
  if (signatures === undefined || signatures.length === 0) return "malformed_header";
  if (signatures.length > MAX_SIGNATURES) return "malformed_header";
  const head = [id, timestamp].filter((one) => one !== undefined).map((one) => `${one}.`).join("");
  return { signatures, head, timestamp };
}

function withoutPrefix(value: string, prefix: string): readonly string[] {
  return value.startsWith(prefix) ? [value.slice(prefix.length)] : [];
}

/** The signatures in a header, and the time if it is there; nothing for another form. */
type HeaderParser = (
  value: string,
) => { readonly given: readonly string[]; readonly timestamp?: string } | undefined;

/** Versions of signatures other than `v1` are ignored, as both schemes require. */
const PARSERS: Readonly<Record<Exclude<Scheme["form"], "single">, HeaderParser>> = {
  stripe(value) {
    const items = value.split(",").map((item) => /^([a-z0-9_]+)=([^\s=]+)$/.exec(item));
    if (items.includes(null)) return undefined;
    const valuesOf = (name: string) => items.flatMap((item) => item?.[1] === name ? [item[2] ?? ""] : []);
    const [timestamp, ...others] = valuesOf("t");
    return timestamp === undefined || others.length > 0 ? undefined : { given: valuesOf("v1"), timestamp };
  },
  list(value) {
    const items = value.split(" ").map((item) => /^([a-z0-9]+),([^\s,]+)$/.exec(item));
    if (items.includes(null)) return undefined;
    return { given: items.flatMap((item) => item?.[1] === "v1" ? [item[2] ?? ""] : []) };
  },
};

function timeRefusal(timestamp: string, now: number, toleranceSeconds: number): SignatureRefusal | undefined {
  const behind = secondsBehind(timestamp, now);
  if (behind === undefined) return "malformed_timestamp";
  if (Math.abs(behind) <= toleranceSeconds) return undefined;
  return behind > 0 ? "too_old" : "too_new";
}
