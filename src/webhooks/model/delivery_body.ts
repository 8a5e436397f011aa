import {
  isRawNumber,
  type JsonObject,
  type JsonValue,
  nestingProblem,
  parseJson,
  stringifyJson,
} from "../../base/exact_json.ts";
import { joinBytes } from "../../base/bytes.ts";
import { JsonText } from "../../base/json_text.ts";
import { timeText } from "../../base/rfc3339.ts";
import { errorText } from "../../base/error_text.ts";
import { payloadBytes } from "./event.ts";
import type { Endpoint } from "./records.ts";
import {
  parseTemplate,
  pathsOf,
  renderValue,
  TemplateError,
  type TemplatePath,
  type TemplateScope,
  valueAt,
  type ValueTemplate,
} from "./template.ts";

/** The form of a body other than that of its event. */
export type BodyForm = "cloudevents" | "template";

/** The event of a delivery. */
interface RenderedEvent {
  readonly id: string;
  readonly kind: string;
  readonly createdAt: number;
  /** As it is stored. */
  readonly body: Uint8Array;
}

/** The body of a delivery in the form of its endpoint, or why it cannot be rendered. */
type RenderedBody =
  | { readonly form: BodyForm; readonly body: Uint8Array; readonly problem?: undefined }
  | { readonly form: BodyForm; readonly problem: string };

/** The content types of the forms. */
export const CONTENT_TYPES: Readonly<Record<BodyForm, string>> = {
  cloudevents: "application/cloudevents+json",
  template: "application/json",
};

/** The `source` of CloudEvents; the identifier of the event is unique over all installations. */
const SOURCE = "/weir";
/** Longest template as JSON, in characters: each delivery reads it. */
const MAX_TEMPLATE = 8_192;
const MAX_DEPTH = 32;
/** Longest rendered body in characters, unless the body of the event is longer: a template may repeat its values. */
const MAX_RENDERED = 1_048_576;
const ROOTS = ["data", "event", "id", "time"] as const;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The problem of the template of a body; undefined if it is valid. */
export function bodyTemplateProblem(template: JsonObject): string | undefined {
  const json = stringifyJson(template);
  if (json.length > MAX_TEMPLATE) return `expected at most ${MAX_TEMPLATE} characters of JSON`;
  if (nestingProblem(json, MAX_DEPTH) !== undefined) return `expected at most ${MAX_DEPTH} levels`;
  try {
    readTemplate(template);
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

/** The body of an event in the form of an endpoint; undefined where it is sent as it is stored. */
export function renderBody(
  { format, template }: Pick<Endpoint, "format" | "template">,
  event: RenderedEvent,
): RenderedBody | undefined {
  if (format === undefined && template === undefined) return undefined;
  const form = template === undefined ? "cloudevents" : "template";
  try {
    return { form, body: template === undefined ? cloudEvent(event) : rendered(template, event) };
  } catch (error) {
    return { form, problem: errorText(error) };
  }
}

/** CloudEvents 1.0 in the structured mode; the bytes of `data` stay as they came. */
function cloudEvent({ id, kind, createdAt, body }: RenderedEvent): Uint8Array {
  const attributes = {
    specversion: "1.0",
    id,
    source: SOURCE,
    type: kind,
    time: timeText(createdAt),
    datacontenttype: "application/json",
  };
  const start = encoder.encode(`${JSON.stringify(attributes).slice(0, -1)},"data":`);
  return joinBytes([start, payloadBytes(kind, body), encoder.encode("}")]);
}

function rendered(json: string, { id, kind, createdAt, body }: RenderedEvent): Uint8Array {
  const template = readTemplate(parseJson(json));
  const values: Readonly<Record<string, JsonValue>> = {
    data: new JsonText(decoder.decode(payloadBytes(kind, body))),
    event: kind,
    id,
    time: timeText(createdAt),
  };
  const scope: TemplateScope = { read: (root) => values[root] };
  const most = Math.max(MAX_RENDERED, body.length);
  const length = pathsIn(template).reduce((sum, path) => sum + lengthAt(path, scope), json.length);
  if (length > most) throw new TemplateError(`Cannot render a body of more than ${most} characters`);
  return encoder.encode(stringifyJson(renderValue(template, scope)));
}

function lengthAt(path: TemplatePath, scope: TemplateScope): number {
  const value = valueAt(path, scope);
  return value instanceof JsonText ? value.text.length : String(value).length;
}

/** Reads a template; throws a `TemplateError`. */
function readTemplate(value: JsonValue): ValueTemplate {
  if (typeof value === "string") {
    const { template, problem } = parseTemplate(value, ROOTS);
    if (template === undefined) throw new TemplateError(problem);
    const [first] = template;
    const isPlain = template.length === 1 && typeof first === "string";
    return isPlain ? { kind: "value", value: first } : { kind: "text", template };
  }
  if (typeof value !== "object" || value === null || isRawNumber(value)) return { kind: "value", value };
  if (Array.isArray(value)) {
    return { kind: "list", items: (value as readonly JsonValue[]).map(readTemplate) };
  }
  const entries = Object.entries(value as JsonObject).map(([key, below]) => {
    if (key.includes("{{")) throw new TemplateError("a key cannot contain a template; write a name instead");
    return [key, readTemplate(below)] as const;
  });
  return { kind: "object", entries };
}

function pathsIn(template: ValueTemplate): readonly TemplatePath[] {
  switch (template.kind) {
    case "value":
      return [];
    case "text":
      return pathsOf(template.template);
    case "list":
      return template.items.flatMap(pathsIn);
    case "object":
      return template.entries.flatMap(([, value]) => pathsIn(value));
  }
}
