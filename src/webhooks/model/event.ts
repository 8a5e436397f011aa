/** Longest kind of an event. */
export const MAX_KIND_LENGTH = 128;
/** Prefixes of kinds about the operation of the service: `*` does not include them. */
const OPERATIONAL_PREFIXES: readonly string[] = ["config.", "delivery.", "endpoint.", "ratelimit."];
/** Prefixes of kinds that only the service itself reports. */
export const RESERVED_PREFIXES: readonly string[] = [...OPERATIONAL_PREFIXES, "workflow."];

const WORD = "[A-Za-z0-9_][A-Za-z0-9_-]*";
/** The words of a kind, for a regular expression. */
export const KIND_TEXT = `${WORD}(?:\\.${WORD})*`;
const KIND = new RegExp(`^${KIND_TEXT}$`);
const encoder = new TextEncoder();

/** The problem of the kind of an event; undefined if it is valid. */
export function eventKindProblem(text: string): string | undefined {
  if (text.length > MAX_KIND_LENGTH) {
    return `expected an event kind of at most ${MAX_KIND_LENGTH} characters, got ${text.length}`;
  }
  if (KIND.test(text)) return undefined;
  const expected =
    `words of letters, digits, _ and - joined by dots, such as "agent.reply.completed"; no word begins with -`;
  return `${JSON.stringify(text)} is not an event kind; expected ${expected}`;
}

/**
 * Returns whether only the service itself may report events of a kind. In any letter case: a person would take
 * `Workflow.x` for a kind of the service.
 */
export function isReservedKind(kind: string): boolean {
  return reservedPrefixOf(kind) !== undefined;
}

/** Returns whether a kind is about the operation of the service. */
export function isOperationalKind(kind: string): boolean {
  return OPERATIONAL_PREFIXES.some((prefix) => kind.startsWith(prefix));
}

/** The problem of a kind or a pattern of kinds; undefined if it is valid. */
export function eventPatternProblem(text: string): string | undefined {
  if (text === "*") return undefined;
  const kind = text.endsWith(".*") ? text.slice(0, -".*".length) : text;
  if (kind.length > MAX_KIND_LENGTH) return eventKindProblem(kind);
  if (!KIND.test(kind)) {
    return `${
      JSON.stringify(text)
    } names no event kinds; expected a kind, a prefix such as "workflow.*" or "*"`;
  }
  const prefix = reservedPrefixOf(text);
  if (prefix === undefined || text.startsWith(prefix)) return undefined;
  return `${JSON.stringify(text)} names no event kinds; kinds that begin with "${prefix}" are in lower case`;
}

/** The reserved prefix that a kind or a pattern begins with in any letter case; undefined for none. */
function reservedPrefixOf(text: string): string | undefined {
  const lower = text.toLowerCase();
  return RESERVED_PREFIXES.find((prefix) => lower.startsWith(prefix));
}

/** Returns whether a kind matches one of the patterns: exactly, by a prefix up to a dot, or, unless operational, by `*`. */
export function matchesKind(patterns: readonly string[], kind: string): boolean {
  return patterns.some((pattern) => {
    if (pattern === "*") return !isOperationalKind(kind);
    // The dot of "a.*" belongs to the prefix: it matches neither "a" nor "ab.c".
    return pattern.endsWith(".*") ? kind.startsWith(pattern.slice(0, -1)) : kind === pattern;
  });
}

/** The bytes of the payload in the body of an event. */
export function payloadBytes(kind: string, body: Uint8Array): Uint8Array {
  return body.subarray(eventBody(kind, "").length - 1, -1);
}

/** The body of every delivery of an event, unless its endpoint has another form: these bytes are stored, signed and sent. */
export function eventBody(kind: string, dataJson: string): Uint8Array {
  return encoder.encode(`{"event":${JSON.stringify(kind)},"data":${dataJson}}`);
}
