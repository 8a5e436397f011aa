/** Longer texts are truncated in errors. */
const MAX_SHOWN = 200;
/** URL parsers accept any number of slashes and backslashes after `http:`. */
const USER_INFO = /^((?:https?:|[a-z][a-z0-9+.-]*:(?=[/\\]))?[/\\]*)[^/\\?#]*@/i;
const SCHEME = /^[a-z][a-z0-9+.-]*:(?=[/\\])/i;
const URLS = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"<>]*/gi;

/** A URL without its possible secrets: user info, query and fragment. */
export function shownUrl(url: string): string {
  // URL parsers ignore these.
  const read = url.replace(/[\t\r\n]/g, "").trim();
  // An unparsable URL may have its password in any part.
  if (read.includes("@") && !URL.canParse(read)) return `${SCHEME.exec(read)?.[0] ?? ""}…`;
  const end = read.search(/[?#]/);
  const path = end === -1 ? read : read.slice(0, end);
  return shortened(path.replace(USER_INFO, "$1"));
}

/** A quoted text, truncated if it is long. */
export function quoted(text: string): string {
  return JSON.stringify(shortened(text));
}

function shortened(text: string): string {
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}

/** Applies `shownUrl` to every URL in a text. */
export function withoutSecrets(text: string): string {
  return text.replace(URLS, (found) => {
    // Trailing punctuation usually belongs to the sentence.
    const url = found.replace(/[)\]'.,:;]+$/, "");
    return shownUrl(url) + found.slice(url.length);
  });
}

/** Maximum depth of causes. */
const MAX_DEPTH = 8;

/** A cause without secrets, because platforms include the whole URL. Returns a copy only if something was removed. */
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

/** The code of a platform error. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
