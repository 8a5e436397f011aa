import { parseDuration } from "../base/duration.ts";
import { type JsonObject, type JsonValue, parseJson } from "../base/exact_json.ts";
import { compact, JsonText } from "../base/json_text.ts";
import { parseMoment, timeText } from "../base/rfc3339.ts";
import { type Field, type Fields, type FieldType, newFields } from "../webhooks/resources/field.ts";
import { CUSTOM_PLACES } from "../webhooks/resources/trigger_verification.ts";
import type { CommandFlag } from "./command.ts";
import { FlagError, headerOf } from "./flags.ts";

/** A flag whose value becomes part of a call. */
export interface CallFlag extends CommandFlag {
  readonly into: "query" | "body" | "header";
  /** Name of the parameter, header or field; `outer.inner` for a nested field. */
  readonly field: string;
  /** The field in place of that, where another flag has a value. */
  readonly moved?: { readonly flag: string; readonly value: string; readonly field: string } | undefined;
  /** Parses its texts, one unless it is repeated; the text itself when absent. Throws a `FlagError`. */
  readonly read?: ((texts: readonly string[], now: number) => JsonValue) | undefined;
  /** The value that a boolean flag sends; its own value when absent. */
  readonly is?: false | null | undefined;
  /** True if its value names the file of the text; `-` for standard input. */
  readonly isFile?: boolean | undefined;
  readonly isRequired?: boolean | undefined;
  /** The flag that may be given in place of it, if it is required. */
  readonly instead?: string | undefined;
  /** The value that is sent when it is not given. */
  readonly otherwise?: ((now: number) => JsonValue) | undefined;
}

/** Flags by name. */
export type CallFlags = Readonly<Record<string, CallFlag>>;

const FILTER_PARTS = /(?<=^|,)(?:\s*"(?:[^"\\]|\\.)*"\s*|[^,"]*)(?=,|$)/g;
const FILTER_LITERAL = /^(?:"[^]*"|true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

/** A flag with a value that becomes a field of the body. */
export function bodyFlag(field: string, value: string, doc: string, options: FlagOptions = {}): CallFlag {
  return { into: "body", field, value, doc, ...options };
}

/** A flag without a value that becomes a field of the body. */
export function booleanFlag(field: string, doc: string, is?: false | null): CallFlag {
  return { into: "body", field, doc, is };
}

interface FlagOptions {
  readonly read?: CallFlag["read"];
  readonly repeated?: boolean;
  readonly isFile?: boolean;
  readonly isRequired?: boolean;
  readonly otherwise?: CallFlag["otherwise"];
}

/** The flags of a type of fields: the placeholder of the value, and how it is read. */
interface FlagType extends FlagOptions {
  readonly value?: string;
}

const FLAG_TYPES: Partial<Record<FieldType, FlagType>> = {
  text: { value: "TEXT" },
  url: { value: "URL" },
  header: { value: "NAME" },
  secret: { value: "FILE", isFile: true, read: readSecret },
  pem: { value: "FILE", isFile: true, read: ([text = ""]) => text },
  choice: { value: "NAME" },
  flag: {},
  integer: { value: "N", read: readWhole },
  milliseconds: { value: "DURATION", read: readMilliseconds },
  seconds: { value: "DURATION", read: readSeconds },
  rate: { value: "N/UNIT", read: readRate },
  id: { value: "ID" },
  time: { value: "TIME", read: readMoment },
  moment: { value: "TIME", read: readMoment },
  delay: { value: "DURATION", read: readDurationText },
  kind: { value: "KIND" },
  kinds: { value: "KIND", repeated: true, read: readTexts },
  texts: { value: "TEXT", repeated: true, read: readTexts },
  headers: { value: "'NAME: VALUE'", repeated: true, read: readHeaders },
  filter: { value: "PATH=VALUE,...", repeated: true, read: readFilter },
  condition: { value: "PATH=VALUE,...", repeated: true, read: readFilter },
  template: { value: "JSON", read: readJson },
  descriptors: { value: "KEY=VALUE,...", repeated: true, read: readDescriptors },
  object: { value: "JSON", read: readJson },
};

/** The flags of the fields of a body, or of the query of a list; `outer` is the object that they are in. */
export function flagsOf(fields: Fields, into: CallFlag["into"] = "body", outer = ""): CallFlags {
  const flags = Object.entries(fields).map(([name, field]) => {
    const path = `${outer}${name}`;
    // The object may be absent, so that its fields are not required by themselves.
    if (field.type === "limit" || field.type === "verification") {
      return flagsOf(optional(field.fields ?? {}), into, `${path}.`);
    }
    if (field.type === "credentials") {
      return flagsOf(optional(newFields(field.fields ?? {})), into, `${path}.`);
    }
    const { flag = dashed(name), value, isRequired, short } = field;
    const type = FLAG_TYPES[field.type] ?? {};
    const doc = `${helpOf(field)}${isRequired === true ? " (required)" : ""}`;
    const one: CallFlag = {
      into,
      field: path,
      doc,
      ...type,
      ...(value === undefined ? {} : { value }),
      isRequired,
      short,
    };
    return { [flag]: one, ...(field.type === "headers" ? { "headers-file": headersFile(path) } : {}) };
  });
  return Object.assign({}, ...flags);
}

/** The flags that remove the values of fields. */
export function clearingFlags(fields: Fields): CallFlags {
  const flags = Object.entries(fields).flatMap(([name, { clear }]) => {
    return clear === undefined ? [] : [[clear[0], booleanFlag(name, clear[1], null)] as const];
  });
  return Object.fromEntries(flags);
}

/** The fields of `verify` have the same flags with `custom`, which has them in other places. */
export function withCustomPlaces(flags: CallFlags): CallFlags {
  const moves = Object.entries(CUSTOM_PLACES);
  const places = new Map<string, string>(moves.map(([from, to]) => [`verify.${from}`, `verify.${to}`]));
  const targets = new Set(places.values());
  const kept = Object.entries(flags).filter(([, { field }]) => !targets.has(field));
  return Object.fromEntries(kept.map(([name, flag]) => {
    const field = places.get(flag.field);
    return [
      name,
      field === undefined ? flag : { ...flag, moved: { flag: "verify", value: "custom", field } },
    ];
  }));
}

function optional(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, { isRequired: _, ...field }]) => [name, field]),
  );
}

function headersFile(field: string): CallFlag {
  const doc = "file with secret static headers, one per line; - for standard input";
  return bodyFlag(field, "FILE", doc, { isFile: true, read: readHeaderLines });
}

function dashed(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The help of a flag: the first of the words of its field, the choices and the default. */
function helpOf({ type, words, help, choices = [], default: value }: Field): string {
  const [sentence = ""] = words.split(/\.(?: |$)/);
  const plain = sentence.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase()).replaceAll("`", "");
  const text = help ?? plain;
  const isListed = choices.every((choice) => text.includes(choice));
  const listed = isListed ? "" : `: ${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`;
  const kinds = type === "kinds" ? ": a kind, a prefix such as workflow.*, or *" : "";
  const otherwise = value === undefined || value === "" || help !== undefined ? "" : ` (default ${value})`;
  return `${text}${listed}${kinds}${otherwise}`;
}

/** The flags of a JSON object that becomes the field `data`. */
export function payloadFlags(what: string): CallFlags {
  return {
    data: bodyFlag("data", "JSON", `${what}, a JSON object (default {})`, {
      read: readJson,
      otherwise: () => ({}),
    }),
    "data-file": bodyFlag("data", "FILE", `file with the ${what}; - for standard input`, {
      read: readJson,
      isFile: true,
    }),
  };
}

/** A whole number. */
function readWhole([text = ""]: readonly string[]): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (Number.isSafeInteger(value)) return value;
  throw new FlagError("expected an integer");
}

/** A rate such as 10/second; the service checks number and unit. */
function readRate([text = ""]: readonly string[]): JsonValue {
  const [, number, unit = ""] = /^(\d{1,15})\/([a-z]+)$/.exec(text) ?? [];
  if (number !== undefined) return { unit, requestsPerUnit: Number(number) };
  throw new FlagError("expected a number and a unit such as 10/second");
}

/** A duration as whole milliseconds. */
function readMilliseconds([text = ""]: readonly string[]): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms >= 1) return Math.round(ms);
  throw new FlagError("expected a duration such as 500ms or 10s");
}

/** A duration in whole seconds. */
function readSeconds([text = ""]: readonly string[]): number {
  const seconds = (parseDuration(text) ?? NaN) / 1_000;
  if (Number.isInteger(seconds)) return seconds;
  throw new FlagError("expected a duration in whole seconds such as 90s or 5m");
}

/** A secret; the line break that ends its file is not part of it. */
function readSecret([text = ""]: readonly string[]): string {
  const secret = text.replace(/\r?\n$/, "");
  if (secret !== "") return secret;
  throw new FlagError("expected a secret");
}

/** A duration, as written. */
function readDurationText([text = ""]: readonly string[]): string {
  if (parseDuration(text) !== undefined) return text;
  throw new FlagError("expected a duration such as 30m or 24h");
}

/** A time in RFC 3339, or how long ago it was. */
function readMoment([text = ""]: readonly string[], now: number): string {
  const time = parseMoment(text, now);
  if (time !== undefined) return timeText(time);
  throw new FlagError("expected a time such as 2026-01-31T12:00:00Z, or how long ago it was, such as 24h");
}

/** The texts themselves. */
function readTexts(texts: readonly string[]): readonly string[] {
  return texts;
}

/** A value of JSON, as it was given but for the white space between its values. */
function readJson([text = ""]: readonly string[]): JsonText {
  try {
    JSON.parse(text);
    return new JsonText(compact(text));
  } catch {
    // The parser's message would show a part of the text.
    throw new FlagError("expected JSON");
  }
}

/** Headers, each a text `Name: value`. */
function readHeaders(texts: readonly string[]): Record<string, string> {
  const headers = texts.map((text) => {
    const header = headerOf(text);
    if (header !== undefined) return header;
    throw new FlagError('expected "Name: value"');
  });
  if (new Set(headers.map(([name]) => name.toLowerCase())).size < headers.length) {
    throw new FlagError("expected each header once");
  }
  return Object.fromEntries(headers);
}

/** Headers of a file, one `Name: value` a line. */
function readHeaderLines([text = ""]: readonly string[]): Record<string, string> {
  return readHeaders(text.split("\n").filter((line) => line.trim() !== ""));
}

/** Conditions of a filter, each as `path=value[,value...]`, or with JSON of operators or conditions; a value is JSON, or else a text. */
function readFilter(texts: readonly string[]): JsonObject {
  const conditions = texts.map((text) => {
    const at = text.indexOf("=");
    const values = at > 0 ? filterOperand(text.slice(at + 1)) : undefined;
    if (values === undefined) throw new FlagError("expected path=value[,value...] or path=JSON");
    return [text.slice(0, at), values] as const;
  });
  if (new Set(conditions.map(([path]) => path)).size < conditions.length) {
    throw new FlagError("expected each path once");
  }
  return Object.fromEntries(conditions);
}

/** Operators or conditions as JSON, or values; nothing for JSON that is invalid. */
function filterOperand(text: string): JsonValue | undefined {
  if (!/^\s*(?:\{|\[\s*\{)/.test(text)) return filterValues(text);
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** A text in quotes may contain commas; nothing for one that does not end. */
function filterValues(text: string): readonly JsonValue[] | undefined {
  const parts = text.match(FILTER_PARTS);
  if (parts === null || parts.join(",").length !== text.length) return undefined;
  const values = parts.map((part) => {
    const word = part.trim();
    if (!FILTER_LITERAL.test(word)) return word.startsWith('"') ? undefined : word;
    try {
      return parseJson(word);
    } catch {
      return undefined;
    }
  });
  const known = values.filter((value) => value !== undefined);
  return known.length < values.length || known.includes("") ? undefined : known;
}

/** Descriptors, each as `key=value[,key=value...]`. */
export function readDescriptors(texts: readonly string[]): readonly JsonText[] {
  return texts.map((text) => {
    const entries = text.split(",").map((pair) => {
      const at = pair.indexOf("=");
      if (at > 0) return [pair.slice(0, at), pair.slice(at + 1)] as const;
      throw new FlagError("expected key=value[,key=value...]");
    });
    if (new Set(entries.map(([key]) => key)).size < entries.length) {
      throw new FlagError("expected each key once");
    }
    // An object would not keep the order of keys.
    const members = entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`);
    return new JsonText(`{${members.join(",")}}`);
  });
}
