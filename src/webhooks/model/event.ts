/** How long the kind of an event may be. */
export const MAX_KIND_LENGTH = 128;
/** How kinds begin that the service itself reports, and nobody else may. */
export const RESERVED_PREFIX = "workflow.";

const KIND = /^[a-z0-9_]+(?:\.[a-z0-9_]+)*$/;
const KIND_WANTED = `words of a to z, 0 to 9 and _ joined by dots, such as "agent.reply.completed"`;
const PATTERN_WANTED = `a kind, a prefix such as "workflow.*" or "*"`;
const encoder = new TextEncoder();

/** What is wrong with the kind of an event; nothing when it may be used. */
export function eventKindProblem(text: string): string | undefined {
  if (text.length > MAX_KIND_LENGTH) {
    return `an event kind of ${text.length} characters is too long; at most ${MAX_KIND_LENGTH} would be right`;
  }
  if (!KIND.test(text)) return `${JSON.stringify(text)} is not an event kind; ${KIND_WANTED} would be right`;
  return undefined;
}

/** Whether only the service itself may report events of a kind. */
export function isReservedKind(kind: string): boolean {
  return kind.startsWith(RESERVED_PREFIX);
}

/** What is wrong with one entry of the kinds that an endpoint wants, or a key may post; nothing when it may be used. */
export function eventPatternProblem(text: string): string | undefined {
  if (text === "*") return undefined;
  const kind = text.endsWith(".*") ? text.slice(0, -".*".length) : text;
  if (kind.length > MAX_KIND_LENGTH) return eventKindProblem(kind);
  if (!KIND.test(kind)) {
    return `${JSON.stringify(text)} names no event kinds; ${PATTERN_WANTED} would be right`;
  }
  return undefined;
}

/** Whether a kind is one of those that are named: exactly, by a prefix up to a dot, or by `*`. */
export function matchesKind(patterns: readonly string[], kind: string): boolean {
  return patterns.some((pattern) => {
    if (pattern === "*") return true;
    // The dot of "a.*" belongs to the prefix: neither "a" nor "ab.c" is meant.
    return pattern.endsWith(".*") ? kind.startsWith(pattern.slice(0, -1)) : kind === pattern;
  });
}

/** The body of every delivery of an event: made once, then stored, signed and sent as these bytes. */
export function eventBody(kind: string, dataJson: string): Uint8Array {
  return encoder.encode(`{"event":${JSON.stringify(kind)},"data":${dataJson}}`);
}
