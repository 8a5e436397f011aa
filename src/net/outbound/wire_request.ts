import { Buffer } from "node:buffer";
import { type DialTarget, targetOf, type TlsIdentity } from "./dial.ts";
import { SendError } from "./send_error.ts";

/** The target of a request. */
export interface WireTarget {
  readonly dial: DialTarget;
  /** Equal for all requests that one connection may serve. */
  readonly key: string;
  readonly authority: string;
  readonly path: string;
}

/** A request to be written as HTTP/1.1. */
export interface WireRequest {
  readonly target: WireTarget;
  readonly method: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body?: Uint8Array | undefined;
}

/** Options of writing requests. */
export interface WireOptions {
  readonly isReusing: boolean;
  readonly isProxied: boolean;
  readonly credentials?: string | undefined;
  /** Headers of requests that do not set their own. */
  readonly defaults?: WireRequest["headers"] | undefined;
}

/** Headers of framing and routing: callers cannot set them. */
const OURS = new Set(
  ("connection content-length expect host http2-settings keep-alive proxy-authorization proxy-connection te trailer " +
    "transfer-encoding upgrade").split(" "),
);
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const VISIBLE = /^[\x21-\x7e]+$/;
/** Methods whose requests have a body, an empty one where there is none. */
const WITH_BODY = /^(?:POST|PUT|PATCH)$/;
const encoder = new TextEncoder();
/** A body of at most so many bytes is joined to the head. */
const MAX_JOINED_BYTES = 65_536;

/** The target of a URL, whose connections are those of the identity alone. Throws a `SendError`. */
export function wireTargetOf(text: string, identity?: TlsIdentity): WireTarget {
  const url = URL.parse(text);
  // Credentials in a URL are not sent.
  if (url === null || url.username !== "" || url.password !== "") throw unsendable("invalid_url");
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new SendError("unsendable", "the URL is neither http nor https");
  }
  const dial = { ...targetOf(url), identity };
  const path = url.pathname + url.search;
  // A parsed URL has this form; that a request could be read as two has to be impossible, not unlikely.
  if (!VISIBLE.test(path) || !VISIBLE.test(url.host)) throw unsendable("invalid_url");
  return {
    dial,
    key: `${dial.isTls} ${dial.port} ${dial.host} ${identity?.id ?? ""}`,
    authority: url.host,
    path,
  };
}

/** The bytes of a request, with its length; the caller cannot change its framing. Throws a `SendError`. */
export function wireBytes(
  { target, method, headers, body }: WireRequest,
  options: WireOptions,
): Uint8Array[] {
  const verb = method.toUpperCase();
  if (!TOKEN.test(verb)) throw unsendable("invalid_method");
  const isAbsolute = options.isProxied && !target.dial.isTls;
  const origin = isAbsolute ? `http://${target.authority}` : "";
  let head = `${verb} ${origin}${target.path} HTTP/1.1\r\nhost: ${target.authority}\r\n`;
  for (const [name, value] of onceEach([...options.defaults ?? [], ...headers])) {
    if (!VALUE.test(value)) throw unsendable("invalid_header");
    head += `${name}: ${value}\r\n`;
  }
  if (body !== undefined || WITH_BODY.test(verb)) head += `content-length: ${body?.byteLength ?? 0}\r\n`;
  if (isAbsolute && options.credentials !== undefined) {
    head += `proxy-authorization: ${options.credentials}\r\n`;
  }
  head += `connection: ${options.isReusing ? "keep-alive" : "close"}\r\n\r\n`;
  return joined(head, body);
}

function joined(head: string, body: Uint8Array = new Uint8Array()): Uint8Array[] {
  const isOne = body.byteLength <= MAX_JOINED_BYTES;
  // One character is one byte.
  const bytes = Buffer.allocUnsafe(head.length + (isOne ? body.byteLength : 0));
  const { read, written } = encoder.encodeInto(head, bytes);
  // Latin-1 takes three times as long as ASCII, and is rare.
  if (read !== head.length || written !== head.length) bytes.write(head, 0, "latin1");
  if (!isOne) return [bytes, body];
  bytes.set(body, head.length);
  return [bytes];
}

/** Each header once: of two that differ only in case the later one counts. */
function onceEach(headers: WireRequest["headers"]): Iterable<readonly [string, string]> {
  const byName = new Map<string, readonly [string, string]>();
  for (const header of headers) byName.set(checkedName(header[0]), header);
  return byName.values();
}

const MAX_NAMES = 1_000;
/** Valid names, with their forms in lower case. */
const names = new Map<string, string>();

function checkedName(name: string): string {
  const known = names.get(name);
  if (known !== undefined) return known;
  if (!TOKEN.test(name)) throw unsendable("invalid_header");
  const lower = name.toLowerCase();
  if (OURS.has(lower)) {
    throw new SendError("unsendable", `the header "${lower}" cannot be set`);
  }
  if (names.size >= MAX_NAMES) names.clear();
  names.set(name, lower);
  return lower;
}

function unsendable(code: string): SendError {
  return new SendError("unsendable", "the request cannot be sent", { code });
}
