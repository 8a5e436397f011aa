/** Longest text of a caller that an error shows. */
const MAX_SHOWN = 200;
const USER_INFO = /^([a-z][a-z0-9+.-]*:)?(\/\/|\\\\)[^/\\?#]*@/i;
const URLS = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>()]*/gi;

/** A URL as an error may show it: without user name, password, query and fragment, which may be secrets. */
export function shownUrl(url: string): string {
  const end = url.search(/[?#]/);
  const path = end === -1 ? url : url.slice(0, end);
  return shortened(path.replace(USER_INFO, "$1$2"));
}

/** A text in quotes, cut where it is long. */
export function quoted(text: string): string {
  return JSON.stringify(shortened(text));
}

function shortened(text: string): string {
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}

/** A text in which every URL is shown as `shownUrl` does. */
export function withoutSecrets(text: string): string {
  return text.replace(URLS, shownUrl);
}

/** How deep causes of causes are followed. */
const MAX_DEPTH = 8;

/**
 * What went wrong, for an error that may be printed with all its causes: platforms name the whole URL in
 * theirs. An error without such a text stays itself; of another one a copy takes its place.
 */
export function shownCause(cause: unknown, depth = 0): unknown {
  if (!(cause instanceof Error) || depth === MAX_DEPTH) return depth === MAX_DEPTH ? undefined : cause;
  const inner = cause.cause === undefined ? undefined : shownCause(cause.cause, depth + 1);
  const message = withoutSecrets(cause.message);
  if (inner === cause.cause && message === cause.message) return cause;
  const copy = new Error(message, inner === undefined ? undefined : { cause: inner });
  copy.name = cause.name;
  if (cause.stack !== undefined) copy.stack = withoutSecrets(cause.stack);
  const code = codeOf(cause);
  return code === undefined ? copy : Object.assign(copy, { code });
}

/** The code that a platform gave its error. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
