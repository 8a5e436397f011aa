import { isRawNumber, type JsonObject, type JsonValue, stringifyJson } from "../../base/exact_json.ts";

/** Where a template may read. */
export type TemplateRoot = "input" | "steps" | "execution" | "env";

/** A path such as `steps.enrich.body.items[0]`. */
export interface TemplatePath {
  /** As written. */
  readonly text: string;
  readonly root: TemplateRoot;
  /** Names of properties and indexes below the root. */
  readonly keys: readonly string[];
}

/** A text with templates in it: what is written, and the paths whose values stand between. */
export type TextTemplate = readonly (string | TemplatePath)[];

/** A value that may hold templates at any depth. */
export type ValueTemplate =
  /** Holds no template. */
  | { readonly kind: "value"; readonly value: JsonValue }
  | { readonly kind: "text"; readonly template: TextTemplate }
  | { readonly kind: "list"; readonly items: readonly ValueTemplate[] }
  | { readonly kind: "object"; readonly entries: readonly (readonly [string, ValueTemplate])[] };

/** What templates read. Nothing but own properties is ever seen. */
export interface TemplateScope {
  /** The value below a root; nothing where it is not there. `steps` and `env` are asked with a name. */
  read(root: TemplateRoot, name: string | undefined): JsonValue | undefined;
}

/** A template that cannot be filled in. Its text names the path, never the value. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
}

/** A text of templates, or what is wrong with it. */
export type ParsedTemplate =
  | { readonly template: TextTemplate; readonly problem?: undefined }
  | { readonly template?: undefined; readonly problem: string };

const ROOTS: readonly TemplateRoot[] = ["input", "steps", "execution", "env"];
const MAX_KEYS = 64;
/** How many characters a text may have once it is filled in: each template in it may stand for as many as an input has. */
export const MAX_TEXT_LENGTH = 16_777_216;
/** A name after a dot, an index, or any name in brackets and quotes. */
const KEY = /\.([\p{L}\p{N}_$-]+)|\[(0|[1-9][0-9]{0,8})\]|\["([^"\\{}]+)"\]/uy;
const INDEX = /^(?:0|[1-9][0-9]{0,8})$/;

/** Reads the templates of a text; `roots` are those that may be read. */
export function parseTemplate(text: string, roots: readonly TemplateRoot[] = ROOTS): ParsedTemplate {
  const template: (string | TemplatePath)[] = [];
  let at = 0;
  for (let open = text.indexOf("{{"); open !== -1; open = text.indexOf("{{", at)) {
    const close = text.indexOf("}}", open + 2);
    if (close === -1) return { problem: "a '{{' has no '}}' after it; write '{{ input.name }}'" };
    const path = parsePath(text.slice(open + 2, close).trim(), roots);
    if (typeof path === "string") return { problem: path };
    if (open > at) template.push(text.slice(at, open));
    template.push(path);
    at = close + 2;
  }
  if (at < text.length || template.length === 0) template.push(text.slice(at));
  return { template };
}

/** The path, or what is wrong with it. */
function parsePath(text: string, roots: readonly TemplateRoot[]): TemplatePath | string {
  const shown = text.length > 60 ? `${text.slice(0, 60)}…` : text;
  const name = /^[a-z]+/i.exec(text)?.[0] ?? "";
  const root = roots.find((known) => known === name);
  const first = roots.map((known) => `'${known}'`).join(" or ");
  if (root === undefined) return `a template cannot begin with '${shown}'; a path begins with ${first}`;
  const keys: string[] = [];
  KEY.lastIndex = root.length;
  while (KEY.lastIndex < text.length) {
    const [, word, index, quoted] = KEY.exec(text) ?? [];
    const key = word ?? index ?? quoted;
    if (key === undefined) {
      return `the template '${shown}' is no path; write names and indexes only, such as '{{ input.items[0].id }}'`;
    }
    keys.push(key);
    if (keys.length > MAX_KEYS) return `the template '${shown}' has more than ${MAX_KEYS} names; use fewer`;
  }
  if (root !== "input" && keys.length === 0) {
    return `the template '${shown}' names nothing; write '${root}.' and a name after it`;
  }
  return { text, root, keys };
}

/** The paths of a text. */
export function pathsOf(template: TextTemplate): readonly TemplatePath[] {
  return template.filter((part) => typeof part !== "string");
}

/** The value at a path; throws a `TemplateError` where there is none. */
export function readPath({ text, root, keys }: TemplatePath, scope: TemplateScope): JsonValue {
  const isNamed = root === "steps" || root === "env";
  let value = scope.read(root, isNamed ? keys[0] : undefined);
  for (const key of isNamed ? keys.slice(1) : keys) {
    if (value === undefined) break;
    value = ownValue(value, key);
  }
  if (value === undefined) throw new TemplateError(`Cannot read "${text}": it is not there`);
  return value;
}

/** What stands under a key, of lists under an index; texts and numbers hold nothing. */
function ownValue(value: JsonValue, key: string): JsonValue | undefined {
  if (typeof value !== "object" || value === null || isRawNumber(value)) return undefined;
  if (Array.isArray(value)) return INDEX.test(key) ? (value as readonly JsonValue[])[Number(key)] : undefined;
  const object = value as JsonObject;
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/**
 * The text with its templates filled in, each value passed through `encode`. Takes texts, numbers and flags; throws a
 * `TemplateError` for anything else.
 */
export function renderText(
  template: TextTemplate,
  scope: TemplateScope,
  encode: (text: string, path: TemplatePath) => string = (text) => text,
): string {
  let text = "";
  for (const part of template) {
    text += typeof part === "string" ? part : encode(plainText(part, scope), part);
    if (text.length > MAX_TEXT_LENGTH) {
      throw new TemplateError(`Cannot fill in a text: it would have more than ${MAX_TEXT_LENGTH} characters`);
    }
  }
  return text;
}

function plainText(path: TemplatePath, scope: TemplateScope): string {
  const value = readPath(path, scope);
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean" || isRawNumber(value)) {
    return stringifyJson(value);
  }
  const kind = value === null ? "null" : Array.isArray(value) ? "a list" : "an object";
  throw new TemplateError(
    `Cannot write "${path.text}" into a text: it is ${kind}; a text, a number or a flag would be right`,
  );
}

/** The value with its templates filled in; a text that is one template has the type of its value. */
export function renderValue(template: ValueTemplate, scope: TemplateScope): JsonValue {
  switch (template.kind) {
    case "value":
      return template.value;
    case "text": {
      const [first] = template.template;
      const isWhole = template.template.length === 1 && first !== undefined && typeof first !== "string";
      return isWhole ? readPath(first, scope) : renderText(template.template, scope);
    }
    case "list":
      return template.items.map((item) => renderValue(item, scope));
    case "object":
      // Makes own properties of any name, unlike assignments.
      return Object.fromEntries(template.entries.map(([key, value]) => [key, renderValue(value, scope)]));
  }
}
