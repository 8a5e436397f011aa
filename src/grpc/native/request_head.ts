import type { GrpcMethod } from "../grpc_service.ts";
import { StreamError } from "./frames.ts";
import type { HeaderField } from "./hpack_decoder.ts";

/** Why a request is refused because of its headers. */
export type HeadRefusal = "content_type" | "header_list" | "path" | "timeout";

/** The headers of a request, possibly shared by requests with equal headers. */
export interface RequestHead {
  readonly fields: readonly HeaderField[];
  /** Absent with a refusal. */
  readonly method: GrpcMethod | undefined;
  readonly path: string;
  readonly refusal: HeadRefusal | undefined;
  /** `grpc-encoding`; empty for none. */
  readonly encoding: string;
  /** `grpc-timeout` in milliseconds; Infinity for none. */
  readonly timeoutMs: number;
  readonly contentLength: number | undefined;
}

/** Connection-specific headers, which HTTP/2 forbids (RFC 9113, section 8.2.2). */
const CONNECTION_HEADERS = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);
const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** Reads the headers of a request; throws `StreamError` where they break the rules of HTTP/2. */
export function readHead(
  fields: readonly HeaderField[],
  streamId: number,
  methods: ReadonlyMap<string, GrpcMethod>,
): RequestHead {
  const pseudo = readPseudo(fields, streamId);
  let contentType = "";
  let encoding = "";
  let timeout: string | undefined;
  let contentLength: number | undefined;
  for (const [name, value] of fields) {
    if (name === "content-type") contentType = value;
    else if (name === "grpc-encoding") encoding = value;
    else if (name === "grpc-timeout") timeout = value;
    else if (name === "content-length") contentLength = lengthOf(value, contentLength, streamId);
  }
  const timeoutMs = timeout === undefined ? Infinity : timeoutOf(timeout);
  const method = methods.get(pseudo.path);
  const refusal = refusalOf({ post: pseudo.method === "POST", contentType, method, timeoutMs });
  return {
    fields,
    method: refusal === undefined ? method : undefined,
    path: pseudo.path,
    refusal,
    encoding,
    timeoutMs: timeoutMs ?? Infinity,
    contentLength,
  };
}

/** Checks the trailers of a request; they have no pseudo-headers. */
export function checkTrailers(fields: readonly HeaderField[], streamId: number): void {
  for (const [name, value] of fields) {
    if (name.startsWith(":")) throw malformed(streamId, `the pseudo-header "${name}" among the trailers`);
    checkField(name, value, streamId);
  }
}

interface Pseudo {
  readonly method: string;
  readonly path: string;
}

function readPseudo(fields: readonly HeaderField[], streamId: number): Pseudo {
  let method: string | undefined;
  let path: string | undefined;
  let scheme: string | undefined;
  let authority: string | undefined;
  let regular = false;
  const once = (known: string | undefined, name: string, value: string): string => {
    if (known !== undefined || regular) {
      throw malformed(streamId, `the pseudo-header "${name}" is out of place`);
    }
    return value;
  };
  for (const [name, value] of fields) {
    if (name.charCodeAt(0) !== 0x3a) {
      regular = true;
      checkField(name, value, streamId);
    } else if (name === ":method") method = once(method, name, value);
    else if (name === ":path") path = once(path, name, value);
    else if (name === ":scheme") scheme = once(scheme, name, value);
    else if (name === ":authority") authority = once(authority, name, value);
    else throw malformed(streamId, `"${name}" is not a pseudo-header of a request`);
  }
  if (method === undefined || scheme === undefined || path === undefined || path === "") {
    throw malformed(streamId, ":method, :scheme and :path are required");
  }
  return { method, path };
}

function checkField(name: string, value: string, streamId: number): void {
  if (!isToken(name)) throw malformed(streamId, `"${name}" is not a lower-case header name`);
  if (CONNECTION_HEADERS.has(name)) {
    throw malformed(streamId, `the header "${name}" is specific to a connection`);
  }
  if (name === "te" && value !== "trailers") throw malformed(streamId, `te must be "trailers"`);
  for (let index = 0; index < value.length; index++) {
    const code = value.charCodeAt(index);
    if (code === 0 || code === 10 || code === 13) {
      throw malformed(streamId, `the value of "${name}" contains a line break`);
    }
  }
}

/** Whether a name consists of lower-case letters, digits and the marks that RFC 9110 allows. */
function isToken(name: string): boolean {
  if (name.length === 0) return false;
  for (let index = 0; index < name.length; index++) {
    const code = name.charCodeAt(index);
    const isPlain = (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x2d;
    if (!isPlain && !"!#$%&'*+.^_`|~".includes(name.charAt(index))) return false;
  }
  return true;
}

function lengthOf(value: string, known: number | undefined, streamId: number): number {
  const length = /^\d{1,15}$/.test(value) ? Number(value) : NaN;
  if (Number.isNaN(length) || (known !== undefined && known !== length)) {
    throw malformed(streamId, `content-length must be one number`);
  }
  return length;
}

/** `grpc-timeout` in milliseconds; undefined when it is invalid. */
function timeoutOf(text: string): number | undefined {
  const [, digits, unit = ""] = TIMEOUT.exec(text) ?? [];
  const factor = UNIT_MS[unit];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}

function refusalOf(head: {
  post: boolean;
  contentType: string;
  method: GrpcMethod | undefined;
  timeoutMs: number | undefined;
}): HeadRefusal | undefined {
  const { contentType } = head;
  const isGrpc = contentType === "application/grpc" || contentType.startsWith("application/grpc+") ||
    contentType.startsWith("application/grpc;");
  if (!head.post || !isGrpc) return "content_type";
  if (head.method === undefined) return "path";
  return head.timeoutMs === undefined ? "timeout" : undefined;
}

function malformed(streamId: number, state: string): StreamError {
  return new StreamError("PROTOCOL_ERROR", streamId, `Cannot read a request: ${state}`);
}
