/** The headers of a call by their names in lower case. */
export interface HeaderSource {
  header(name: string): string | undefined;
  /** All headers as pairs of name and value, which are searched once where present. */
  readonly fields?: readonly (readonly [string, string])[] | undefined;
}

/** The trace of a call by its headers. */
export interface TraceParent {
  /** The span that caused the call; absent where only a sampling decision was sent. */
  readonly span: ParentSpan | undefined;
  /** True when the caller records its spans; absent where it leaves the decision to us. */
  readonly sampled: boolean | undefined;
  /** `tracestate` as received; absent where there is none or it is too long. */
  readonly state: string | undefined;
}

/** A span of another service. */
interface ParentSpan {
  /** 32 digits of lower-case hexadecimal, not all zero. */
  readonly traceId: string;
  /** 16 such digits. */
  readonly spanId: string;
}

/** The headers that are read here. */
export const TRACE_HEADERS = [
  ...["traceparent", "tracestate"],
  ...["b3", "x-b3-traceid", "x-b3-spanid", "x-b3-sampled", "x-b3-flags"],
] as const;

const MAX_STATE_LENGTH = 512;
const W3C = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const B3 = /^([0-9a-f]{16}|[0-9a-f]{32})-([0-9a-f]{16})(?:-([01d])(?:-[0-9a-f]{16})?)?$/;
const B3_TRACE_ID = /^(?:[0-9a-f]{16}|[0-9a-f]{32})$/;
const B3_SPAN_ID = /^[0-9a-f]{16}$/;
const ALL_ZERO = /^0+$/;
const SAMPLED_FLAG = 1;
const B3_CHOICES: Readonly<Record<string, boolean>> = { "0": false, "1": true, d: true };
const B3_HEADER_CHOICES: Readonly<Record<string, boolean>> = {
  "0": false,
  "1": true,
  false: false,
  true: true,
};

/**
 * The parent by W3C's `traceparent`, else by the single header `b3`, else by the headers `x-b3-…`; invalid ones
 * are ignored. Sources: W3C Trace Context, level 1; openzipkin/b3-propagation.
 */
export function readTraceParent(source: HeaderSource): TraceParent | undefined {
  // Most calls have none of them.
  if (source.fields !== undefined && !namesTrace(source.fields)) return undefined;
  const w3c = source.header("traceparent");
  const parent = w3c === undefined ? undefined : readW3c(w3c, source);
  if (parent !== undefined) return parent;
  const b3 = source.header("b3");
  const single = b3 === undefined ? undefined : readB3(b3.toLowerCase());
  return single ?? readB3Headers(source);
}

type Fields = readonly (readonly [string, string])[];

/** The list that was searched last: calls with the same headers share a list. */
const last: { fields: Fields; namesTrace: boolean } = { fields: [], namesTrace: false };

/** True when one of the headers belongs to a trace. */
export function namesTrace(fields: Fields): boolean {
  if (fields !== last.fields) {
    last.namesTrace = holdsTrace(fields);
    last.fields = fields;
  }
  return last.namesTrace;
}

function holdsTrace(fields: Fields): boolean {
  for (const { 0: name } of fields) {
    // Faster than comparing texts: few other headers have one of these lengths.
    switch (name.length) {
      case 2:
        if (name === "b3") return true;
        break;
      case 10:
        if (name === "x-b3-flags") return true;
        break;
      case 11:
        if (name === "traceparent") return true;
        break;
      case 12:
        if (name === "x-b3-traceid" || name === "x-b3-sampled") return true;
    }
  }
  return false;
}

function readW3c(text: string, source: HeaderSource): TraceParent | undefined {
  const [, version, traceId = "", spanId = "", flags = "", rest] = W3C.exec(text.trim()) ?? [];
  // Version 00 ends with its flags, ff is invalid, and a later one may have more fields.
  if (version === undefined || version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  const span = spanOf(traceId, spanId);
  if (span === undefined) return undefined;
  const state = stateOf(source);
  return {
    span,
    sampled: (Number.parseInt(flags, 16) & SAMPLED_FLAG) !== 0,
    state: state === undefined || state.length > MAX_STATE_LENGTH ? undefined : state,
  };
}

/** Joins several headers, of which an engine's `header` may return the first. */
function stateOf(source: HeaderSource): string | undefined {
  if (source.fields === undefined) return source.header("tracestate");
  const lists = source.fields.filter(([name]) => name === "tracestate").map(([, value]) => value);
  return lists.length === 0 ? undefined : lists.join(",");
}

function readB3(text: string): TraceParent | undefined {
  const alone = choiceOf(B3_CHOICES, text);
  if (alone !== undefined) return { span: undefined, sampled: alone, state: undefined };
  const [, traceId = "", spanId = "", choice = ""] = B3.exec(text) ?? [];
  const span = spanOf(traceId, spanId);
  return span === undefined ? undefined : { span, sampled: choiceOf(B3_CHOICES, choice), state: undefined };
}

function readB3Headers(source: HeaderSource): TraceParent | undefined {
  const traceId = source.header("x-b3-traceid")?.toLowerCase();
  const choice = source.header("x-b3-sampled")?.toLowerCase();
  const debug = source.header("x-b3-flags") === "1";
  const sampled = debug ? true : choiceOf(B3_HEADER_CHOICES, choice ?? "");
  const spanId = traceId === undefined ? undefined : source.header("x-b3-spanid")?.toLowerCase();
  const isWhole = traceId !== undefined && spanId !== undefined &&
    B3_TRACE_ID.test(traceId) && B3_SPAN_ID.test(spanId);
  const span = isWhole ? spanOf(traceId, spanId) : undefined;
  return span === undefined && sampled === undefined ? undefined : { span, sampled, state: undefined };
}

/** A decision by its text, which comes from a peer. */
function choiceOf(choices: Readonly<Record<string, boolean>>, text: string): boolean | undefined {
  return Object.hasOwn(choices, text) ? choices[text] : undefined;
}

/** A 64-bit trace id is the lower half of a 128-bit one. */
function spanOf(traceId: string, spanId: string): ParentSpan | undefined {
  if (traceId === "" || ALL_ZERO.test(traceId) || ALL_ZERO.test(spanId)) return undefined;
  return { traceId: traceId.padStart(32, "0"), spanId };
}

/** A member's key by W3C Trace Context, 3.3.1: a vendor's, or a tenant's at a vendor. */
const STATE_KEY = /^(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})$/;
/** Visible ASCII and spaces, without a comma, an equals sign or a trailing space. */
const STATE_VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
const MAX_STATE_MEMBERS = 32;

/** The valid members of a `tracestate` header, at most 32, the first of each key; none of a text above 512 characters. */
export function passedTraceState(text: string): string {
  if (text === "" || text.length > MAX_STATE_LENGTH) return "";
  const members = new Map<string, string>();
  for (const part of text.split(",")) {
    const member = part.trim();
    const equals = member.indexOf("=");
    const key = member.slice(0, Math.max(equals, 0));
    const isValid = STATE_KEY.test(key) && STATE_VALUE.test(member.slice(equals + 1));
    if (isValid && !members.has(key) && members.size < MAX_STATE_MEMBERS) members.set(key, member);
  }
  return [...members.values()].join(",");
}
