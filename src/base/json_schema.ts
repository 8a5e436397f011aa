/** A JSON Schema (draft 2020-12), with the keywords that are used here. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: SchemaType | readonly SchemaType[];
  readonly description?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly (string | number | boolean | null)[];
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: SchemaProperties;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly propertyNames?: JsonSchema;
  readonly dependentRequired?: Readonly<Record<string, readonly string[]>>;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
}

/** Schemas by the names of the fields. */
export type SchemaProperties = Readonly<Record<string, JsonSchema>>;

type SchemaType = "null" | "boolean" | "integer" | "number" | "string" | "array" | "object";

/** An object with required and optional fields. */
export function objectSchema(
  required: SchemaProperties,
  optional: SchemaProperties = {},
  more: JsonSchema = {},
): JsonSchema {
  const names = Object.keys(required);
  return {
    type: "object",
    ...more,
    properties: { ...required, ...optional },
    ...(names.length === 0 ? {} : { required: names }),
  };
}

/** An object with these fields and no others. */
export function closedSchema(required: SchemaProperties, optional: SchemaProperties = {}): JsonSchema {
  return objectSchema(required, optional, { additionalProperties: false });
}

/** A text. */
export function textSchema(description: string, more: JsonSchema = {}): JsonSchema {
  return { type: "string", ...more, description };
}

/** One of these texts. */
export function choiceSchema(
  choices: readonly string[],
  description: string,
  more: JsonSchema = {},
): JsonSchema {
  return { type: "string", enum: choices, ...more, description };
}

/** An integer within bounds. */
export function integerSchema(description: string, more: JsonSchema = {}): JsonSchema {
  return { type: "integer", ...more, description };
}

/** True or false. */
export function flagSchema(description: string, more: JsonSchema = {}): JsonSchema {
  return { type: "boolean", ...more, description };
}

/** A list. */
export function listSchema(items: JsonSchema, description: string, more: JsonSchema = {}): JsonSchema {
  return { type: "array", items, ...more, description };
}

/** A time of RFC 3339. */
export function timeSchema(description: string): JsonSchema {
  return textSchema(description, { format: "date-time" });
}

/** A UUID. */
export function idSchema(description: string): JsonSchema {
  return textSchema(description, { format: "uuid" });
}

/** An object with any fields. */
export function openSchema(description: string): JsonSchema {
  return { type: "object", additionalProperties: true, description };
}

/** A schema of the components of the same document. */
export function schemaOf(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}
