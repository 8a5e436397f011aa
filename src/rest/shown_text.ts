/** Longest text of a caller that an error shows. */
const MAX_SHOWN = 200;
/** As URLs are read: the slashes after `http:` may be any number of either kind. */
const USER_INFO = /^((?:https?:|[a-z][a-z0-9+.-]*:(?=[/\\]))?[/\\]*)[^/\\?#]*@/i;
const SCHEME = /^[a-z][a-z0-9+.-]*:(?=[/\\])/i;
const URLS = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"<>]*/gi;

/** A URL as an error may show it: without user name, password, query and fragment, which may be secrets. */
export function shownUrl(url: string): string {
  // A reader of URLs leaves these out.
  const read = url.replace(/[\t\r\n]/g, "").trim();
  // Where nobody can tell which part a password is in, all of it stays out.
  if (read.includes("@") && !URL.canParse(read)) return `${SCHEME.exec(read)?.[0] ?? ""}…`;
  const end = read.search(/[?#]/);
  const path = end === -1 ? read : read.slice(0, end);
  return shortened(path.replace(USER_INFO, "$1"));
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
  return text.replace(URLS, (found) => {
    // Brackets and stops at the end are mostly those of the text around it.
    const url = found.replace(/[)\]'.,:;]+$/, "");
    return shownUrl(url) + found.slice(url.length);
  });
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
