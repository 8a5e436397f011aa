import type { SignatureScheme } from "../resources/signature_presets.ts";
import { headerNames } from "./signature_scheme.ts";

/** Headers of a call by name in lower case; repeated ones are joined by a comma and a space. */
export type CallHeaders = ReadonlyMap<string, string>;

/** The signatures in the header of a call, and the signed time if it is there. */
interface ReadSignatures {
  /** In one form for each encoding, so that texts can be compared. */
  readonly signatures: readonly string[];
  readonly time?: string | undefined;
}

/** Longer headers are refused, and so are those with more signatures: each is compared with each secret. */
const MAX_HEADER_LENGTH = 4_096;
const MAX_SIGNATURES = 16;

/** Bytes of a signature. */
const BYTES = {
  "hmac-sha256": 32,
  "hmac-sha512": 64,
  "hmac-sha1": 20,
  ed25519: 64,
} as const;

/** The value of the first of alternative headers that a call has; different values of several are no value. */
export function headerValue(header: string | undefined, headers: CallHeaders): string | undefined {
  const [value, ...others] = headerNames(header).map((name) => headers.get(name))
    .filter((one) => one !== undefined);
  return others.every((other) => other === value) ? value : undefined;
}

/** The signatures in the headers of a call, or why they are refused. */
export function readSignatures(
  { algorithm = "hmac-sha256", signature, time }: SignatureScheme,
  headers: CallHeaders,
): ReadSignatures | "missing_header" | "malformed_header" {
  const { header, prefix = "", encoding = "hex", list } = signature;
  const value = headerValue(header, headers);
  if (value === undefined) return "missing_header";
  if (value.length > MAX_HEADER_LENGTH) return "malformed_header";
  if (algorithm === "certificate") return "malformed_header";
  if (algorithm === "token" || algorithm === "basic") {
    const shown = shownSecret(value, prefix, algorithm === "basic");
    return shown === "" ? "malformed_header" : { signatures: [shown] };
  }
  const items = list === undefined ? [value] : itemsOf(value, list, prefix);
  const after = (start: string) =>
    items?.flatMap((item) => item.startsWith(start) ? [item.slice(start.length)] : []);
  const times = time?.prefix === undefined ? [undefined] : after(time.prefix) ?? [];
  const form = formOf(encoding, BYTES[algorithm]);
  const signatures = after(prefix)?.filter((one) => form.test(one)).map(COMPARED[encoding]);
  const isUsable = signatures !== undefined && signatures.length > 0 && signatures.length <= MAX_SIGNATURES;
  return isUsable && times.length === 1 ? { signatures, time: times[0] } : "malformed_header";
}

/** The text behind a prefix; the name of a scheme of HTTP may be in any letter case. */
function shownSecret(value: string, prefix: string, isHttpScheme: boolean): string {
  const start = value.slice(0, prefix.length);
  const isPrefixed = isHttpScheme ? start.toLowerCase() === prefix.toLowerCase() : start === prefix;
  return isPrefixed ? value.slice(prefix.length) : "";
}

/** Items such as `v1=…` of a list; nothing for another form. Those of unknown names are ignored, as providers require. */
function itemsOf(value: string, separator: string, prefix: string): readonly string[] | undefined {
  const sign = prefix.at(-1) ?? "";
  const items = value.split(separator);
  if (!/[=,]/.test(sign)) return items.every((item) => /^\S+$/.test(item)) ? items : undefined;
  // Base64 may end with equals signs.
  const form = new RegExp(`^[A-Za-z0-9_-]+${sign}[^\\s${sign}]+={0,2}$`);
  return items.every((item) => form.test(item)) ? items : undefined;
}

/** The form of a signature of so many bytes. */
function formOf(encoding: "hex" | "base64" | "base64url", bytes: number): RegExp {
  if (encoding === "hex") return new RegExp(`^[0-9a-f]{${2 * bytes}}$`, "i");
  const padding = (3 - bytes % 3) % 3;
  const length = Math.ceil(bytes * 4 / 3);
  return encoding === "base64"
    ? new RegExp(`^[A-Za-z0-9+/]{${length}}={${padding}}$`)
    : new RegExp(`^[A-Za-z0-9_-]{${length}}(?:={${padding}})?$`);
}

/** Signatures in the form of `encodedSignature`. */
const COMPARED = {
  hex: (text: string) => text.toLowerCase(),
  base64: (text: string) => text,
  base64url: (text: string) => text.replace(/=+$/, ""),
} as const;

/** The text of a signature. */
export function encodedSignature(bytes: Uint8Array, encoding: keyof typeof COMPARED = "hex"): string {
  if (encoding === "hex") return bytes.toHex();
  return encoding === "base64"
    ? bytes.toBase64()
    : bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/** The bytes of a text in the form of `encodedSignature`. */
export function decodedSignature(text: string, encoding: keyof typeof COMPARED = "hex"): Uint8Array {
  return encoding === "hex" ? Uint8Array.fromHex(text) : Uint8Array.fromBase64(text, { alphabet: encoding });
}
