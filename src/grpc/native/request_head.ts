import type { GrpcMethod } from "../grpc_service.ts";
import { TRACE_HEADERS } from "../../base/trace_context.ts";
import { StreamError } from "./frames.ts";
import type { FieldTaker, HeaderField } from "./hpack_decoder.ts";

/** Why a request is refused because of its headers. */
export type HeadRefusal = "content_type" | "header_list" | "path" | "timeout";

/** The headers of a request, possibly shared by requests with equal headers. */
export interface RequestHead {
  /** The headers of its trace and the name of its client, which alone are of use to a method. */
  readonly fields: readonly HeaderField[];
  /** Absent with a refusal. */
  readonly method: GrpcMethod | undefined;
  /** The method of HTTP. */
  readonly verb: string;
  readonly path: string;
  readonly refusal: HeadRefusal | undefined;
  /** `grpc-encoding`; empty for none. */
  readonly encoding: string;
  /** `grpc-timeout`; empty for none. */
  readonly timeout: string;
  /** The same in milliseconds; Infinity for none. */
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
const LENGTH = /^\d{1,15}$/;
const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

const COLON = 0x3a;
/** The name of a client of quotas, which Envoy sends as `initial_metadata`. */
export const CLIENT_HEADER = "x-weir-client";
/** `true` from a client that has no proxy between itself and this server. */
export const DIRECT_HEADER = "x-weir-direct";
const FOR_METHODS: ReadonlySet<string> = new Set([...TRACE_HEADERS, CLIENT_HEADER, DIRECT_HEADER]);
/** The headers that are used. */
export const USED_HEADERS: ReadonlySet<string> = new Set([
  ...[":method", ":scheme", ":path", ":authority"],
  ...["content-type", "content-length", "grpc-encoding", "grpc-timeout", "te"],
  ...FOR_METHODS,
]);
/** Maximum number of trace headers that are kept: more than any of them may be repeated. */
export const MAX_TRACE_FIELDS = 64;

/** The facts from the headers of one request. */
interface Draft {
  /** Those that are used, but for the trace. */
  readonly values: Map<string, string>;
  readonly fields: HeaderField[];
  hasPseudo: boolean;
  hasRegular: boolean;
  /** The first rule of HTTP/2 that was broken. */
  fault?: string | undefined;
}

function newDraft(): Draft {
  return { values: new Map(), fields: [], hasPseudo: false, hasRegular: false };
}

/**
 * Reads the headers of one request after the other as they are decoded. It keeps those that are used. Of the others it
 * checks the names alone: a proxy passes on what its clients sent as `baggage` and the like, and no value of it is an
 * error.
 */
export class HeadReader implements FieldTaker {
  readonly #methods: ReadonlyMap<string, GrpcMethod>;
  #draft = newDraft();
  #lastName = "";

  constructor(methods: ReadonlyMap<string, GrpcMethod>) {
    this.#methods = methods;
  }

  begin(): void {
    this.#draft = newDraft();
    this.#lastName = "";
  }

  keeps(name: string): boolean {
    const draft = this.#draft;
    if (name.charCodeAt(0) === COLON) {
      draft.hasPseudo = true;
      if (draft.hasRegular) draft.fault ??= `the pseudo-header "${name}" is out of place`;
      if (!USED_HEADERS.has(name)) draft.fault ??= `"${name}" is not a pseudo-header of a request`;
    } else {
      draft.hasRegular = true;
      // A block may repeat a name of a table without end.
      if (name !== this.#lastName) draft.fault ??= nameFault(name);
      this.#lastName = name;
    }
    return USED_HEADERS.has(name);
  }

  take(name: string, value: string): void {
    const { values, fields } = this.#draft;
    if (FOR_METHODS.has(name)) {
      if (fields.length < MAX_TRACE_FIELDS) fields.push([name, value]);
      return;
    }
    const fault = valueFault(name, value, values.get(name));
    if (fault !== undefined) this.#draft.fault ??= fault;
    values.set(name, value);
  }

  /** The head of the request; throws `StreamError` where its headers break the rules of HTTP/2. */
  head(streamId: number): RequestHead {
    const { values, fields, fault } = this.#draft;
    if (fault !== undefined) throw malformed(streamId, fault);
    const [verb, path = ""] = [values.get(":method"), values.get(":path")];
    if (verb === undefined || !values.has(":scheme") || path === "") {
      throw malformed(streamId, ":method, :scheme and :path are required");
    }
    const timeout = values.get("grpc-timeout");
    const timeoutMs = timeout === undefined ? Infinity : timeoutOf(timeout);
    const contentType = values.get("content-type") ?? "";
    const contentLength = values.get("content-length");
    const method = this.#methods.get(path);
    const refusal = refusalOf({ post: verb === "POST", contentType, method, timeoutMs });
    return {
      fields,
      method: refusal === undefined ? method : undefined,
      verb,
      path,
      refusal,
      encoding: values.get("grpc-encoding") ?? "",
      timeout: timeout ?? "",
      timeoutMs: timeoutMs ?? Infinity,
      contentLength: contentLength === undefined ? undefined : Number(contentLength),
    };
  }

  /** Checks the trailers of a request; they have no pseudo-headers. */
  checkTrailers(streamId: number): void {
    const { fault, hasPseudo } = this.#draft;
    if (hasPseudo) throw malformed(streamId, "a pseudo-header among the trailers");
    if (fault !== undefined) throw malformed(streamId, fault);
  }
}

/** The problem of the value of a header that is used; `known` is its value before. */
function valueFault(name: string, value: string, known: string | undefined): string | undefined {
  if (name.charCodeAt(0) === COLON) {
    return known === undefined ? undefined : `the pseudo-header "${name}" is out of place`;
  }
  if (name === "te") return value === "trailers" ? undefined : `te must be "trailers"`;
  if (name !== "content-length") return undefined;
  const isNumber = LENGTH.test(value) && Number(known ?? value) === Number(value);
  return isNumber ? undefined : "content-length must be one number";
}

function nameFault(name: string): string | undefined {
  if (!isToken(name)) return `"${name}" is not a lower-case header name`;
  return CONNECTION_HEADERS.has(name) ? `the header "${name}" is specific to a connection` : undefined;
}

/** True if a name consists of lower-case letters, digits and the marks that RFC 9110 allows. */
function isToken(name: string): boolean {
  if (name.length === 0) return false;
  for (let index = 0; index < name.length; index++) {
    const code = name.charCodeAt(index);
    const isPlain = (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x2d;
    if (!isPlain && !"!#$%&'*+.^_`|~".includes(name.charAt(index))) return false;
  }
  return true;
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
