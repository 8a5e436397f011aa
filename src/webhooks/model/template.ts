import {
  isRawNumber,
  type JsonObject,
  type JsonValue,
  parseJson,
  stringifyJson,
} from "../../base/exact_json.ts";
import { JsonText } from "../../base/json_text.ts";

/** The roots of template paths. */
export type TemplateRoot = "input" | "steps" | "execution" | "env" | EventRoot;
/** Those of bodies of deliveries. */
type EventRoot = "data" | "event" | "id" | "time";

/** A path such as `steps.enrich.body.items[0]`. */
export interface TemplatePath {
  /** As written. */
  readonly text: string;
  readonly root: TemplateRoot;
  /** Names of properties and indexes below the root. */
  readonly keys: readonly string[];
  /** In place of a value that is missing or null; absent without one. */
  readonly otherwise?: JsonValue | undefined;
}

/** A text with templates: literal parts and paths. */
export type TextTemplate = readonly (string | TemplatePath)[];

/** A value that may hold templates at any depth. */
export type ValueTemplate =
  /** Has no template. */
  | { readonly kind: "value"; readonly value: JsonValue }
  | { readonly kind: "text"; readonly template: TextTemplate }
  | { readonly kind: "list"; readonly items: readonly ValueTemplate[] }
  | { readonly kind: "object"; readonly entries: readonly (readonly [string, ValueTemplate])[] };

/** The values that templates read: own properties only. */
export interface TemplateScope {
  /** The value of a root, if it exists, as it was sent where it was. `steps` and `env` are read by name. */
  read(root: TemplateRoot, name: string | undefined): JsonValue | undefined;
}

/** A template that cannot be rendered. The message names the path, never the value. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
}

/** A parsed text, or what is wrong with it. */
type ParsedTemplate =
  | { readonly template: TextTemplate; readonly problem?: undefined }
  | { readonly template?: undefined; readonly problem: string };

const ROOTS: readonly TemplateRoot[] = ["input", "steps", "execution", "env"];
/** Roots that have no value themselves. */
const NAMED_ROOTS: readonly TemplateRoot[] = ["steps", "execution", "env"];
const MAX_KEYS = 64;
/** Longest rendered text, in characters: each of its templates may be replaced by a whole input. */
const MAX_TEXT_LENGTH = 16_777_216;
/** A name after a dot, an index, or any name in brackets and quotes. */
const KEY = /\.([\p{L}\p{N}_$-]+)|\[(0|[1-9][0-9]{0,8})\]|\["([^"\\{}]+)"\]/uy;
const INDEX = /^(?:0|[1-9][0-9]{0,8})$/;

/** Parses a text with templates; `roots` are the allowed ones. */
export function parseTemplate(text: string, roots: readonly TemplateRoot[] = ROOTS): ParsedTemplate {
  const template: (string | TemplatePath)[] = [];
  let at = 0;
  for (let open = text.indexOf("{{"); open !== -1; open = text.indexOf("{{", at)) {
    const close = text.indexOf("}}", open + 2);
    if (close === -1) return { problem: "a '{{' has no '}}' after it; write '{{ input.name }}'" };
    const path = parseExpression(text.slice(open + 2, close).trim(), roots);
    if (typeof path === "string") return { problem: path };
    if (open > at) template.push(text.slice(at, open));
    template.push(path);
    at = close + 2;
  }
  if (at < text.length || template.length === 0) template.push(text.slice(at));
  return { template };
}

/** The path with its default, or what is wrong with it. */
function parseExpression(text: string, roots: readonly TemplateRoot[]): TemplatePath | string {
  const [, before = "", filter] = EXPRESSION.exec(text) ?? [];
  const path = parsePath(before.trim(), roots);
  if (filter === undefined || typeof path === "string") return path;
  const [, literal = ""] = /^\s*default:\s*(.*)$/su.exec(filter) ?? [];
  const otherwise = literalOf(literal);
  if (!/^\s*default\b/.test(filter)) {
    return `the template '${
      shortened(text)
    }' has an unknown filter; only '| default: ' and a value may follow a path`;
  }
  if (otherwise !== undefined) return { ...path, otherwise };
  return `the template '${
    shortened(text)
  }' has no valid default; write '| default: ' and a number, true, false, null or a text in quotes`;
}

/** A path, and what is behind the first bar that is no part of a name in quotes. */
const EXPRESSION = /^((?:[^|"]|"[^"]*")*)(?:\|(.*))?$/su;

/** A JSON value without parts, or a text in single quotes. */
function literalOf(text: string): JsonValue | undefined {
  const [, quoted] = /^'([^']*)'$/su.exec(text) ?? [];
  if (quoted !== undefined) return quoted;
  if (/^[[{]/.test(text)) return undefined;
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** The path, or what is wrong with it. */
export function parsePath(text: string, roots: readonly TemplateRoot[]): TemplatePath | string {
  const shown = shortened(text);
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
      return `the template '${shown}' is not a path; use only names and indexes, such as '{{ input.items[0].id }}'`;
    }
    keys.push(key);
    if (keys.length > MAX_KEYS) return `the template '${shown}' has more than ${MAX_KEYS} names; use fewer`;
  }
  if (NAMED_ROOTS.includes(root) && keys.length === 0) {
    return `the template '${shown}' has no name; write '${root}.' and a name`;
  }
  return { text, root, keys };
}

/** The paths of a text. */
export function pathsOf(template: TextTemplate): readonly TemplatePath[] {
  return template.filter((part) => typeof part !== "string");
}

function shortened(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** The value at a path, or its default; throws a `TemplateError` where there is none. */
function readPath(path: TemplatePath, scope: TemplateScope): JsonValue {
  const value = valueAt(path, scope);
  const isAbsent = value === undefined || value === null ||
    (value instanceof JsonText && value.text === "null");
  if (isAbsent && path.otherwise !== undefined) return path.otherwise;
  if (value === undefined) throw new TemplateError(`Cannot read "${path.text}": it has no value`);
  return value;
}

/** The value at a path, if it has one. */
export function valueAt({ root, keys }: TemplatePath, scope: TemplateScope): JsonValue | undefined {
  const isNamed = root === "steps" || root === "env";
  let value = scope.read(root, isNamed ? keys[0] : undefined);
  for (const key of isNamed ? keys.slice(1) : keys) {
    if (value === undefined) break;
    value = ownValue(value, key);
  }
  return value;
}

/** The value under a key, or under an index of a list; texts and numbers have none. */
function ownValue(value: JsonValue, key: string): JsonValue | undefined {
  if (value instanceof JsonText) return value.get(key);
  if (typeof value !== "object" || value === null || isRawNumber(value)) return undefined;
  if (Array.isArray(value)) return INDEX.test(key) ? (value as readonly JsonValue[])[Number(key)] : undefined;
  const object = value as JsonObject;
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/**
 * Renders a text, each value passed through `encode`. Values may be texts, numbers and flags; throws a `TemplateError`
 * for anything else.
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
      throw new TemplateError(`Cannot render a text: it would have more than ${MAX_TEXT_LENGTH} characters`);
    }
  }
  return text;
}

/** Renders the texts of a parameter: one, or one for each item of a list that its template alone stands for. */
export function renderTexts(
  template: TextTemplate,
  scope: TemplateScope,
  encode: (text: string, path: TemplatePath) => string,
): readonly string[] {
  const [path] = template;
  if (template.length !== 1 || path === undefined || typeof path === "string") {
    return [renderText(template, scope, encode)];
  }
  const value = parsed(readPath(path, scope));
  const items = Array.isArray(value) ? value as readonly JsonValue[] : [value];
  return items.map((item) => encode(textOf(item, path), path));
}

function plainText(path: TemplatePath, scope: TemplateScope): string {
  return textOf(parsed(readPath(path, scope)), path);
}

function parsed(value: JsonValue): JsonValue {
  return value instanceof JsonText ? parseJson(value.text) : value;
}

function textOf(value: JsonValue, path: TemplatePath): string {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean" || isRawNumber(value)) {
    return stringifyJson(value);
  }
  const kind = value === null ? "null" : Array.isArray(value) ? "a list" : "an object";
  throw new TemplateError(
    `Cannot write "${path.text}" into a text: expected a text, a number, true or false, got ${kind}`,
  );
}

/** Renders a value. A text that is a single template takes the value as it was sent; objects keep the order of keys. */
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
      return new JsonText(
        `[${template.items.map((item) => stringifyJson(renderValue(item, scope))).join(",")}]`,
      );
    case "object": {
      const members = template.entries.map(([key, value]) => {
        return `${JSON.stringify(key)}:${stringifyJson(renderValue(value, scope))}`;
      });
      return new JsonText(`{${members.join(",")}}`);
    }
  }
}
