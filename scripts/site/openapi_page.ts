import type { JsonSchema, SchemaProperties } from "../../src/base/json_schema.ts";
import {
  DESCRIBED_ROUTES,
  type DescribedRoute,
  SCHEMAS,
  TAGS,
} from "../../src/http/openapi/described_routes.ts";
import { PROBLEM_CODES } from "../../src/webhooks/api/problem_codes.ts";
import { table } from "../docs/generated_page.ts";

const CREDENTIALS = {
  admin: "an administration token",
  trigger: "a trigger key",
  signature: "the signature of the trigger",
  event: "an event key",
  debug: "`DEBUG_TOKEN`, if it is set",
} as const;

/** The OpenAPI document as a page: every call with its parameters, body and answers, and every schema. */
export function openApiPage(): string {
  return [
    "# HTTP API",
    "This page has every call of the [OpenAPI document](/openapi.json). " +
    "[HTTP and gRPC API](/api) and the [administration API](/webhooks/admin-api) explain how to use them.",
    ...Object.entries(TAGS).flatMap(([tag, description]) => [
      `## ${tag.slice(0, 1).toUpperCase()}${tag.slice(1)} {#${tag}}`,
      `${description}.`,
      ...DESCRIBED_ROUTES.filter((route) => route.tag === tag).flatMap(routeParts),
    ]),
    "## Schemas {#schemas}",
    ...Object.entries(SCHEMAS).flatMap(([name, schema]) => [
      `### ${name} {#${anchorOf(name)}}`,
      schema.description ?? "",
      schemaText(schema),
    ]),
  ].filter((part) => part !== "").join("\n\n") + "\n";
}

function routeParts(route: DescribedRoute): string[] {
  const { method, path, operation, credentials } = route;
  const { id, summary, description = "", query = {}, headers = {}, body } = operation;
  const parameters = [
    ...parameterRows(query, "query", operation.requiredQuery),
    ...parameterRows(headers, "header"),
  ];
  const required = credentials.map((credential) => CREDENTIALS[credential]).join(" or ");
  return [
    `### \`${method} ${path}\` {#${id.toLowerCase()}}`,
    `${summary}. ${description}`.trim(),
    required === "" ? "" : `Requires ${required}.`,
    parameters.length === 0 ? "" : table(["Parameter", "In", "Type", "Meaning"], parameters),
    ...(body === undefined ? [] : [
      `**Body**${body.isOptional === true ? ", optional" : ""}: ${typeText(body.schema)}`,
      schemaText(body.schema),
      jsonBlock(body.example),
    ]),
    table(["Status", "Answer", "Body"], answerRows(route)),
  ];
}

function parameterRows(
  properties: SchemaProperties,
  place: string,
  required: readonly string[] = [],
): string[][] {
  return Object.entries(properties).map(([name, schema]) => [
    `\`${name}\`${required.includes(name) ? ", required" : ""}`,
    place,
    typeText(schema),
    schema.description ?? "",
  ]);
}

function answerRows({ operation, problems, refusals }: DescribedRoute): string[][] {
  return [
    ...Object.entries(operation.answers).map(([status, { description, schema, mediaType }]) => {
      const type = schema === undefined ? "" : typeText(schema);
      return [status, description, mediaType === undefined ? type : `\`${mediaType}\``];
    }),
    ...problems.map((code) => [String(PROBLEM_CODES[code][0]), `${PROBLEM_CODES[code][1]}.`, `\`${code}\``]),
    ...Object.entries(refusals).map(([status, description]) => [status, description, ""]),
  ].toSorted(([a = ""], [b = ""]) => Number(a) - Number(b));
}

/** The fields of an object; nothing for a reference, which has its own section. */
function schemaText(schema: JsonSchema): string {
  const { properties, required = [] } = schema;
  if (properties === undefined) return "";
  const rows = Object.entries(properties).map(([name, field]) => [
    `\`${name}\`${required.includes(name) ? ", required" : ""}`,
    typeText(field),
    field.description ?? "",
  ]);
  return table(["Field", "Type", "Meaning"], rows);
}

/** A type in short, with a link to its section if it has one. */
function typeText(schema: JsonSchema): string {
  const { $ref, type, items, anyOf, allOf } = schema;
  if ($ref !== undefined) {
    const name = $ref.split("/").at(-1) ?? "";
    return `[${name}](#${anchorOf(name)})`;
  }
  const parts = allOf ?? anyOf;
  if (parts !== undefined && type === undefined) {
    return [...new Set(parts.map(typeText))].join(allOf === undefined ? " or " : " and ");
  }
  if (items !== undefined) return `list of ${typeText(items)}`;
  return [`${[type ?? "any"].flat().join(" or ")}`, ...boundTexts(schema)].join(", ");
}

function boundTexts(schema: JsonSchema): string[] {
  const { enum: values, format, minimum, maximum, minLength, maxLength, default: preset } = schema;
  const range = (low: number | undefined, high: number | undefined, unit: string) => {
    if (low === undefined && high === undefined) return [];
    if (low === undefined) return [`at most ${high}${unit}`];
    return [high === undefined ? `at least ${low}${unit}` : `${low} to ${high}${unit}`];
  };
  return [
    ...(values === undefined ? [] : [values.map((value) => `\`${value}\``).join(" · ")]),
    ...(format === undefined ? [] : [format]),
    ...range(minimum, maximum, ""),
    ...range(minLength, maxLength, " characters"),
    ...(preset === undefined ? [] : [`default \`${JSON.stringify(preset)}\``]),
  ];
}

function anchorOf(name: string): string {
  return `schema-${name.toLowerCase()}`;
}

function jsonBlock(value: unknown): string {
  return value === undefined ? "" : "```json\n" + JSON.stringify(value, undefined, 2) + "\n```";
}
