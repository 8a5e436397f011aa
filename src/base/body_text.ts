import { gunzipSync } from "node:zlib";
import { strictText } from "./bytes.ts";
import { byteLength } from "./exact_json.ts";

/** Why a body is not read as text. */
export interface BodyTextProblem {
  readonly kind: "unsupported_body" | "malformed" | "too_large";
  /** `body`, or the header that is wrong. */
  readonly field: string;
  readonly reason: string;
  /** Headers of the answer. */
  readonly headers?: Readonly<Record<string, string>>;
}

// RFC 9110, section 12.5.3.
const UNSUPPORTED_CODING: BodyTextProblem = {
  kind: "unsupported_body",
  field: "Content-Encoding",
  reason: "expected gzip or no content coding",
  headers: { "accept-encoding": "gzip" },
};
const UNSUPPORTED_CHARSET: BodyTextProblem = {
  kind: "unsupported_body",
  field: "Content-Type",
  reason: "the charset is unknown; expected utf-8",
};

/** The headers of a body, and the bound of its decoded bytes. */
interface SentBody {
  readonly contentEncoding: string | null | undefined;
  readonly contentType: string | null | undefined;
  readonly maxBytes: number;
  /** Decodes UTF-8; when absent, a body that is not UTF-8 is a problem. */
  readonly decode?: ((bytes: Uint8Array) => string) | undefined;
}

const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
/** A comma outside of quotes separates a second type. */
const PARAMETERS = '(?:;(?:[^",]|"(?:[^"\\\\]|\\\\.)*")*)?';
const JSON_TYPE = new RegExp(
  `^(?:(?:application|text)/json|${TOKEN}/${TOKEN}\\+json)[\\t ]*${PARAMETERS}$`,
  "i",
);
const PARAMETER = new RegExp(`;[\\t ]*(?:(${TOKEN})=[\\t ]*("(?:[^"\\\\]|\\\\.)*"|[^;",\\s]*))?`, "g");

const UTF8 = "utf-8";
/** The bytes that name a charset before any declaration. */
const MARKS: readonly (readonly [charset: string, ...bytes: number[]])[] = [
  [UTF8, 0xef, 0xbb, 0xbf],
  ["utf-16be", 0xfe, 0xff],
  ["utf-16le", 0xff, 0xfe],
];

/** True for a content type of JSON: `application/json`, `text/json`, or one that ends with `+json`. */
export function isJsonType(contentType: string | null | undefined): boolean {
  return JSON_TYPE.test(contentType ?? "");
}

/**
 * Decodes a body: its content coding, then its charset by its byte order mark, which is dropped, or as it is declared, or
 * else as UTF-8.
 */
export function bodyText(
  bytes: Uint8Array,
  { contentEncoding, contentType, maxBytes, decode }: SentBody,
): string | BodyTextProblem {
  if (bytes.length === 0) return "";
  const decoded = withoutCoding(bytes, contentEncoding ?? "", maxBytes);
  if (!(decoded instanceof Uint8Array)) return decoded;
  const charset = charsetOf(decoded, contentType ?? "");
  return charset === UTF8 && decode !== undefined
    ? decode(decoded).replace(/^\ufeff/, "")
    : textOf(decoded, charset, maxBytes);
}

function withoutCoding(bytes: Uint8Array, header: string, maxBytes: number): Uint8Array | BodyTextProblem {
  const codings = header.split(",").map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== "" && coding !== "identity");
  const [coding, ...others] = codings;
  if (coding === undefined) return bytes;
  if (others.length > 0 || (coding !== "gzip" && coding !== "x-gzip")) {
    return UNSUPPORTED_CODING;
  }
  try {
    // Ends at the bound, however much the rest would become.
    return gunzipSync(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    return error instanceof RangeError
      ? tooLarge(maxBytes)
      : { kind: "malformed", field: "body", reason: "not valid gzip" };
  }
}

function tooLarge(maxBytes: number): BodyTextProblem {
  return { kind: "too_large", field: "body", reason: `larger than ${maxBytes} bytes when decoded` };
}

function textOf(bytes: Uint8Array, charset: string, maxBytes: number): string | BodyTextProblem {
  const { text, problem } = strictText(bytes, charset);
  if (problem === "unknown charset") return UNSUPPORTED_CHARSET;
  if (text === undefined) {
    const reason = `not valid ${charset === UTF8 ? "UTF-8" : charset}`;
    return { kind: "malformed", field: "body", reason };
  }
  // It is kept as UTF-8, in which a character may have more bytes.
  return charset === UTF8 || byteLength(text) <= maxBytes ? text : tooLarge(maxBytes);
}

/** The label of the charset of a body: by its byte order mark, as it is declared, or else `utf-8`. */
export function charsetOf(bytes: Uint8Array, contentType: string): string {
  const marked = MARKS.find(([, ...mark]) => mark.every((byte, index) => bytes[index] === byte))?.[0];
  return marked ?? declaredCharset(contentType);
}

function declaredCharset(contentType: string): string {
  if (!contentType.includes(";")) return UTF8;
  for (const [, name = "", value = ""] of contentType.matchAll(PARAMETER)) {
    if (name.toLowerCase() !== "charset") continue;
    const charset = value.replace(/^"(.*)"$/, "$1").trim().toLowerCase();
    return charset === "" || charset === "utf8" ? UTF8 : charset;
  }
  return UTF8;
}
