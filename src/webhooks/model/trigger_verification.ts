import { DEFAULT_TOLERANCE_SECONDS } from "../resources/trigger_verification.ts";
import type { SignatureScheme } from "../resources/signature_presets.ts";
import type { TriggerVerification } from "./records.ts";
import { type JsonValue, ownValueAt } from "../../base/exact_json.ts";
import { isSignedByKey } from "./public_key.ts";
import { constantTimeEqual, hmac, secondsBehind, type SigningSecret } from "./signature.ts";
import {
  type CallHeaders,
  decodedSignature,
  encodedSignature,
  headerValue,
  readSignatures,
} from "./signature_header.ts";
import { isSecretShown } from "./shown_secret.ts";
import { headerNames, schemeOf } from "./signature_scheme.ts";
import {
  BODY,
  knownParts,
  type SignedPart,
  type SignedPiece,
  signedText,
  type SignedValue,
} from "./signed_template.ts";

/** More than any provider takes. */
const MAX_TOKEN_LENGTH = 1_024;

/** Why a signature is refused, and when. */
export const SIGNATURE_REFUSALS = {
  no_secret: "every secret of the trigger was revoked",
  no_public_url: "the scheme signs the URL of the trigger, and the setting TRIGGER_PUBLIC_URL is not set",
  missing_header: "a header of the scheme is missing",
  malformed_header:
    "the header of the signature is malformed, or a header of the scheme has different values",
  malformed_timestamp: "the time is not a whole number of seconds",
  malformed_milliseconds: "the time is not a whole number of milliseconds",
  too_old: "the time is further behind the clock than the tolerance",
  too_new: "the time is further ahead of the clock than the tolerance",
  wrong_signature: "the signature matches no secret of the trigger, or not the certificate of the message",
  malformed_message: "the body does not have the form that the scheme requires",
  foreign_topic: "the trigger does not list the topic of the message",
  foreign_url: "a URL of the message is not that of Amazon SNS in the region of the topic",
  wrong_certificate: "the certificate of the message has expired, or is none of Amazon SNS",
} as const;

/** Why a signature is refused. */
export type SignatureRefusal = keyof typeof SIGNATURE_REFUSALS;

/** A call whose signature is checked. */
interface SignedCall {
  /** The path and the query, as they came; empty when absent. */
  readonly target?: string | undefined;
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
  /** `TRIGGER_PUBLIC_URL`, without a slash at its end. */
  readonly publicUrl?: string | undefined;
}

/**
 * Why the signature of a call is refused; nothing where it is valid. The body is hashed in any case, so that the time
 * does not tell what is wrong.
 */
export async function signatureRefusal(
  verification: TriggerVerification,
  call: SignedCall,
  options: VerifySignatureOptions,
): Promise<SignatureRefusal | undefined> {
  const scheme = schemeOf(verification);
  const read = readCall(scheme, call, options);
  const { pieces = [BODY], signatures = [] }: Partial<ReadCall> = typeof read === "string" ? {} : read;
  const signed = signedText(pieces, call.body);
  const matches = await Promise.all(options.secrets.map((secret) => {
    return isSigned(signed, signatures, { secret, scheme });
  }));
  if (options.secrets.length === 0) return "no_secret";
  if (typeof read === "string") return read;
  const { toleranceSeconds = DEFAULT_TOLERANCE_SECONDS } = verification;
  const late = (time: string | undefined) =>
    timeRefusal(time, scheme.time?.unit, { ...options, toleranceSeconds });
  const { field } = scheme.time ?? {};
  const refusal = scheme.time === undefined || field !== undefined ? undefined : late(read.time);
  if (refusal !== undefined) return refusal;
  if (!matches.includes(true)) return "wrong_signature";
  // Only a body that is signed is parsed.
  return field === undefined ? undefined : late(textAt(parsedBody(call.body), field));
}

/** The parts of a call that its scheme reads. */
interface ReadCall {
  /** The parts of the signed text, in their order. */
  readonly pieces: readonly SignedPiece[];
  readonly signatures: readonly string[];
  /** Unless it is in the body. */
  readonly time?: string | undefined;
}

function readCall(
  scheme: SignatureScheme,
  { target = "", headers, repeated = [], body }: SignedCall,
  { publicUrl }: VerifySignatureOptions,
): ReadCall | SignatureRefusal {
  const parts = knownParts(scheme.signed);
  const isUrlSigned = parts.some((part) => part.kind === "value" && part.name === "url");
  if (isUrlSigned && publicUrl === undefined) return "no_public_url";
  if (isAmbiguous(scheme, parts, { headers, repeated })) return "malformed_header";
  const { shownIn } = scheme;
  const read = shownIn === undefined ? readSignatures(scheme, headers) : readShown(body, shownIn);
  if (typeof read === "string") return read;
  const { signatures, time = headerValue(scheme.time?.header, headers) } = read;
  const url = `${publicUrl ?? ""}${target}`;
  const values: Readonly<Record<SignedValue, string | undefined>> = {
    id: headerValue(scheme.id?.header, headers),
    time,
    method: "POST",
    url,
    path: url.replace(/^https?:\/\/[^/]*/i, ""),
  };
  const pieces = parts.map((part) => pieceOf(part, values, headers));
  const isTimeMissing = scheme.time !== undefined && scheme.time.field === undefined && time === undefined;
  if (isTimeMissing || !pieces.every((piece) => piece !== undefined)) return "missing_header";
  return { pieces, signatures, time };
}

const encoder = new TextEncoder();

/** The token that every item of a list in the body shows: one that shows another may be anybody's. */
function readShown(
  body: Uint8Array,
  { list, field }: NonNullable<SignatureScheme["shownIn"]>,
): Pick<ReadCall, "signatures" | "time"> | "malformed_message" {
  const items = ownValueAt(parsedBody(body), [list]);
  const [first, ...others] = Array.isArray(items) ? items.map((item) => ownValueAt(item, [field])) : [];
  const isShown = typeof first === "string" && first !== "" && first.length <= MAX_TOKEN_LENGTH &&
    others.every((other) => other === first);
  // Like a header, of which each character is a byte.
  return isShown ? { signatures: [String.fromCharCode(...encoder.encode(first))] } : "malformed_message";
}

function pieceOf(
  part: SignedPart,
  values: Readonly<Record<SignedValue, string | undefined>>,
  headers: CallHeaders,
): SignedPiece | undefined {
  if (part.kind === "body") return BODY;
  if (part.kind === "text") return part.text;
  return part.kind === "value" ? values[part.name] : headers.get(part.name);
}

/** Returns whether a header has different values, so that another program on the way may have read another one. */
function isAmbiguous(
  { signature, time, id, eventHeader }: SignatureScheme,
  parts: readonly SignedPart[],
  { headers, repeated }: { readonly headers: CallHeaders; readonly repeated: readonly string[] },
): boolean {
  const signed = parts.flatMap((part) => part.kind === "header" ? [part.name] : []);
  const names = [signature.header, time?.header, eventHeader].flatMap(headerNames);
  if ([...names, ...signed].some((name) => repeated.includes(name))) return true;
  return [signature.header, time?.header, id?.header].some((header) => {
    return new Set(headerNames(header).flatMap((name) => headers.get(name) ?? [])).size > 1;
  });
}

const HASHES = {
  "hmac-sha256": "SHA-256",
  "hmac-sha512": "SHA-512",
  "hmac-sha1": "SHA-1",
} as const satisfies Readonly<Record<string, SigningSecret["hash"]>>;

/** Returns whether one of the signatures is that of a secret; all of them are compared. */
async function isSigned(
  signed: Uint8Array,
  signatures: readonly string[],
  { secret, scheme }: { readonly secret: string; readonly scheme: SignatureScheme },
): Promise<boolean> {
  const { algorithm = "hmac-sha256", secretEncoding = "text", signature: { encoding = "hex" } } = scheme;
  if (algorithm === "ed25519") {
    const given = signatures.map((one) => decodedSignature(one, encoding));
    return await isSignedByKey(secret, given, signed);
  }
  if (algorithm === "token" || algorithm === "basic") {
    const [shown = ""] = signatures;
    return await isSecretShown({ shown, secret, isBasic: algorithm === "basic", body: signed });
  }
  if (algorithm === "certificate") return false;
  const digest = await hmac({ secret, form: secretEncoding, hash: HASHES[algorithm] }, signed);
  const expected = encodedSignature(digest, encoding);
  return signatures.map((given) => constantTimeEqual(expected, given)).includes(true);
}

/** A time is a text or a number. */
function textAt(input: JsonValue | undefined, field: string): string | undefined {
  const value = ownValueAt(input, field.split("."));
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

function parsedBody(body: Uint8Array): JsonValue | undefined {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}

const MILLISECONDS = /^(?:0|[1-9][0-9]{0,14})$/;

function timeRefusal(
  time: string | undefined,
  unit: "seconds" | "milliseconds" = "seconds",
  { now, toleranceSeconds }: { readonly now: number; readonly toleranceSeconds: number },
): SignatureRefusal | undefined {
  const isMilliseconds = unit === "milliseconds";
  if (isMilliseconds && !MILLISECONDS.test(time ?? "")) return "malformed_milliseconds";
  const seconds = isMilliseconds ? `${Math.floor(Number(time) / 1_000)}` : time ?? "";
  const behind = secondsBehind(seconds, now);
  return behind === undefined ? "malformed_timestamp" : ageRefusal(behind, toleranceSeconds);
}

/** Why a time that is so far behind the clock is refused, if it is. */
export function ageRefusal(
  seconds: number,
  toleranceSeconds = DEFAULT_TOLERANCE_SECONDS,
): "too_old" | "too_new" | undefined {
  if (Math.abs(seconds) <= toleranceSeconds) return undefined;
  return seconds > 0 ? "too_old" : "too_new";
}
