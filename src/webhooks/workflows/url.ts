import {
  parseTemplate,
  renderText,
  TemplateError,
  type TemplatePath,
  type TemplateScope,
  type TextTemplate,
} from "../model/template.ts";
import type { UrlTemplate } from "../model/workflow.ts";

/** A URL of templates, or its problem. */
type ParsedUrl =
  | { readonly url: UrlTemplate; readonly problem?: undefined }
  | { readonly url?: undefined; readonly problem: string };

const RIGHT = "expected one such as 'https://host/path/{{ input.id }}'";
const ORIGIN = /^https?:\/\/[^/?#]*/i;
// deno-lint-ignore no-control-regex
const ODD_CHARACTERS = /[\s\x00-\x1f\x7f\\#]/;
/** Characters that a server might decode again: a dot, the two slashes, a semicolon, and the percent sign itself. */
const ENCODED = /%(2e|2f|3b|5c|25)/gi;
const MAX_ENCODINGS = 8;

/** Reads a URL with templates in its path and its query, the only places for them. */
export function parseUrl(text: string): ParsedUrl {
  const { template, problem } = parseTemplate(text);
  if (problem !== undefined) return { problem };
  const [first = "", ...rest] = template;
  if (typeof first !== "string") {
    return { problem: `a template cannot stand for the scheme or the host of a URL; ${RIGHT}` };
  }
  const origin = ORIGIN.exec(first)?.[0];
  if (origin === undefined) return { problem: `the URL has to begin with https:// or http://; ${RIGHT}` };
  if (origin.length === first.length && rest.length > 0) {
    return { problem: `a template cannot stand for the host or the port of a URL; ${RIGHT}` };
  }
  const invalid = originProblem(origin) ?? literalProblem(template);
  if (invalid !== undefined) return { problem: invalid };
  const { path, query } = splitAtQuery([first.slice(origin.length), ...rest]);
  if (segmentsOf(path, (part) => part.text === "" ? "" : "x").some(({ text }) => isDotted(text))) {
    return { problem: "the path of a URL cannot hold '.' or '..'; write where it leads" };
  }
  return { url: query === undefined ? { origin, path } : { origin, path, query } };
}

function originProblem(origin: string): string | undefined {
  if (origin.includes("@")) {
    return "a URL cannot hold a user name or a password; write an authorization header";
  }
  return URL.canParse(origin) ? undefined : `the URL has no host that can be read; ${RIGHT}`;
}

function literalProblem(template: TextTemplate): string | undefined {
  const literals = template.filter((part) => typeof part === "string");
  const odd = literals.map((text) => ODD_CHARACTERS.exec(text)?.[0]).find((found) => found !== undefined);
  if (odd === undefined) return undefined;
  const name = odd === "#" ? "a fragment, which is never sent" : odd === "\\" ? "a backslash" : "white space";
  return `a URL cannot hold ${name}; leave it out, or percent-encode it`;
}

function splitAtQuery(template: TextTemplate): { path: TextTemplate; query?: TextTemplate } {
  const index = template.findIndex((part) => typeof part === "string" && part.includes("?"));
  const part = template[index];
  const mark = typeof part === "string" ? part.indexOf("?") : -1;
  const path = typeof part === "string" ? [...template.slice(0, index), part.slice(0, mark)] : template;
  const query = typeof part === "string"
    ? { query: [part.slice(mark + 1), ...template.slice(index + 1)] }
    : {};
  return { path: path.length === 1 && path[0] === "" ? ["/"] : path, ...query };
}

/** The URL with its values; throws a `TemplateError` where one would lead elsewhere. */
export function renderUrl({ origin, path, query }: UrlTemplate, scope: TemplateScope): string {
  const segments = segmentsOf(path, (part) => renderText([part], scope, encodeValue));
  for (const { text, paths } of segments) {
    const [name] = paths;
    if (name !== undefined && text === "") {
      throw new TemplateError(`Cannot write "${name}" into the path of a URL: it is empty`);
    }
    if (isDotted(text)) {
      const names = paths.map((path) => `"${path}"`).join(" and ");
      throw new TemplateError(`Cannot write ${names} into the path of a URL: it would become '.' or '..'`);
    }
  }
  const plain = segments.map(({ text }) => text).join("/");
  const search = query === undefined ? "" : `?${renderText(query, scope, encodeValue)}`;
  const text = `${origin}${plain}${search}`;
  // Checked again as a whole.
  if (new URL(text).origin === new URL(origin).origin) return text;
  throw new TemplateError("Cannot make the URL of the request: a value would lead to another host");
}

function encodeValue(text: string, path: TemplatePath): string {
  if (!text.isWellFormed()) {
    throw new TemplateError(`Cannot write "${path.text}" into a URL: it holds half of a character`);
  }
  return encodeURIComponent(text);
}

interface Segment {
  text: string;
  /** Of its values. */
  readonly paths: string[];
}

/** The parts of a path between its slashes; values hold none. */
function segmentsOf(path: TextTemplate, render: (part: TemplatePath) => string): readonly Segment[] {
  let last: Segment = { text: "", paths: [] };
  const segments = [last];
  for (const part of path) {
    if (typeof part !== "string") {
      last.text += render(part);
      last.paths.push(part.text);
      continue;
    }
    const [first = "", ...rest] = part.split("/");
    last.text += first;
    for (const text of rest) {
      last = { text, paths: [] };
      segments.push(last);
    }
  }
  return segments;
}

/** True if a segment is, or contains, `.` or `..`, also for a server that decodes it again. */
function isDotted(segment: string): boolean {
  let text = segment;
  for (let round = 0; round < MAX_ENCODINGS; round++) {
    const decoded = text.replaceAll(ENCODED, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
    if (decoded === text) break;
    text = decoded;
  }
  return text.split(/[/\\]/).some((part) => /^\.\.?(?:;|$)/.test(part));
}
