import {
  choiceSchema,
  closedSchema,
  flagSchema,
  idSchema,
  integerSchema,
  type JsonSchema,
  listSchema,
  objectSchema,
  openSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
  timeSchema,
} from "../../base/json_schema.ts";
import { KIND_TEXT, MAX_KIND_LENGTH } from "../model/event.ts";
import { MAX_CONDITION_PATHS, MAX_CONDITION_TEXT, MAX_CONDITION_VALUES } from "../model/condition.ts";
import { type Field, type Fields, type FieldType, isShown } from "../resources/field.ts";

/** Longest text of a field without its own bound. */
export const MAX_TEXT_LENGTH = 1_024;
/** Most static headers of an endpoint. */
export const MAX_HEADERS = 32;
/** Longest value of a static header. */
export const MAX_HEADER_VALUE = 4_096;
/** Most entries of a descriptor of a limit. */
export const MAX_ENTRIES = 16;
/** The sender of deliveries sets these headers itself. */
export const SENDER_HEADERS = [
  ...["x-svc-.*", "webhook-.*", "content-.*", "proxy-.*", "host", "user-agent", "connection", "keep-alive"],
  ...["transfer-encoding", "te", "trailer", "upgrade", "http2-settings", "expect"],
].join("|");
/** Headers that HTTP itself or a proxy sets, so that they cannot prove a sender. */
export const HTTP_HEADERS = [
  ...["accept", "connection", "content-encoding", "content-length", "content-type", "expect", "host"],
  ...["keep-alive", "te", "trailer", "transfer-encoding", "upgrade"],
];
const HEADER_NAME = `(?!(?:${inAnyCase(HTTP_HEADERS.join("|"))})(?:,|$))[A-Za-z0-9-]{1,64}`;
/** The name of a header of a signed call. */
export const SIGNED_HEADER = `^${HEADER_NAME}$`;

const KINDS = `^(?:\\*|(?=[^*]{1,${MAX_KIND_LENGTH}}(?:\\.\\*)?$)${KIND_TEXT}(?:\\.\\*)?)$`;
/** A character that a text in one line may have, and one that is no blank either. */
const PRINTED = "[^\\u0000-\\u001f\\u007f-\\u009f]";
const VISIBLE = "[^\\s\\u0000-\\u001f\\u007f-\\u009f]";
const ANY_SECRET = `^${VISIBLE}(?:${PRINTED}*${VISIBLE})?$`;
/** A text in PEM has one of these. */
export const PEM = "-----BEGIN [A-Z0-9 ]+-----";
const STATIC_HEADER = `^(?!(?:${inAnyCase(SENDER_HEADERS)})$)[!#$%&'*+.^_\`|~0-9A-Za-z-]{1,128}$`;
const TEMPLATE_PATH = "^(?:any|all|execution\\.event|input(?:[.[].+)?)$";
const FILTER_PATH = "^[^.\\u0000-\\u001f\\u007f-\\u009f]+(?:\\.[^.\\u0000-\\u001f\\u007f-\\u009f]+)*$";
/** A value of a descriptor, with templates of the input. */
const LIMIT_VALUE =
  "^(?:(?!\\{\\{)[\\s\\S]|\\{\\{ *input(?:\\.[A-Za-z0-9_$-]+|\\[(?:0|[1-9][0-9]{0,8})\\]){0,10} *\\}\\})*$";
/** Each unit once and in order, far below the longest duration. */
const AGO =
  "(?=.)(?:[0-9]{1,4}d)?(?:[0-9]{1,6}h)?(?:[0-9]{1,6}m)?(?:[0-9]{1,9}(?:\\.[0-9]{1,9})?s)?(?:[0-9]{1,9}ms)?|0";
/** At most 30 days: one unit, or units in order that do not exceed the next one. */
const DELAY = [
  "0|30d|(?:[1-6]?[0-9]{1,2}|7[01][0-9]|720)h",
  "(?:[1-3]?[0-9]{1,4}|4[0-2][0-9]{3}|43[01][0-9]{2}|43200)m",
  "(?:1?[0-9]{1,6}|2[0-4][0-9]{5}|25[0-8][0-9]{4}|259[01][0-9]{3}|2592000)s|[0-9]{1,9}ms",
  "(?=.)(?:[12]?[0-9]d)?(?:(?:1?[0-9]|2[0-3])h)?(?:[1-5]?[0-9]m)?(?:[1-5]?[0-9](?:\\.[0-9]{1,9})?s)?",
].join("|");

/** A pattern that matches in any letter case, without a flag. */
function inAnyCase(pattern: string): string {
  return pattern.replaceAll(/[a-z]/g, (letter) => `[${letter.toUpperCase()}${letter}]`);
}

/** The schema of a field in an answer. */
type Shape = (field: Field) => JsonSchema;

const SHAPES: Readonly<Record<FieldType, Shape>> = {
  text: ({ words, min, max, pattern, examples }) => {
    const bounds = boundsOf("minLength", "maxLength", min, max);
    return textSchema(words, {
      ...(pattern === undefined ? {} : { ...bounds, pattern }),
      ...(examples === undefined ? {} : { examples }),
    });
  },
  url: ({ words, max = MAX_TEXT_LENGTH }) => textSchema(words, { maxLength: max, format: "uri" }),
  header: ({ words, max = 1 }) => {
    const others = max === 1 ? "" : `(?:, ?${HEADER_NAME}){0,${max - 1}}`;
    return textSchema(words, { pattern: `^${HEADER_NAME}${others}$` });
  },
  secret: ({ words, min = 1, max = MAX_TEXT_LENGTH, pattern = ANY_SECRET }) => {
    return textSchema(words, { minLength: min, maxLength: max, pattern });
  },
  pem: ({ words, max }) => textSchema(words, { ...boundsOf("minLength", "maxLength", 0, max), pattern: PEM }),
  choice: ({ words, choices = [] }) => choiceSchema(choices, words),
  flag: ({ words }) => flagSchema(words),
  integer: integerShape,
  milliseconds: integerShape,
  seconds: integerShape,
  share: ({ words }) => ({ type: "number", minimum: 0, maximum: 1, description: words }),
  id: ({ words }) => idSchema(words),
  time: ({ words }) => timeSchema(words),
  moment: ({ words }) => ({
    anyOf: [{ type: "string", format: "date-time" }, { type: "string", pattern: `^(?:${AGO})$` }],
    description: words,
  }),
  delay: ({ words }) => ({
    anyOf: [{ type: "string", pattern: `^(?:${DELAY})$` }, { type: "integer", enum: [0] }],
    description: words,
  }),
  kind: ({ words }) => textSchema(words, { maxLength: MAX_KIND_LENGTH, pattern: `^${KIND_TEXT}$` }),
  kinds: ({ words, max }) => {
    const bounds = { maxLength: MAX_KIND_LENGTH + 2, pattern: KINDS };
    const item = textSchema("A kind, a prefix such as `agent.*`, or `*`.", bounds);
    return listSchema(item, words, { minItems: 1, ...boundsOf("minItems", "maxItems", 1, max) });
  },
  headers: () => listSchema({ type: "string" }, "Names of the static headers."),
  rate: ({ of = "" }) => schemaOf(of),
  filter: ({ words }) => conditionSchema(words, FILTER_PATH),
  condition: ({ words }) => conditionSchema(words, TEMPLATE_PATH),
  template: ({ words }) => openSchema(words),
  limit: ({ of = "" }) => schemaOf(of),
  descriptors: ({ words, max }) => {
    const descriptor: JsonSchema = {
      type: "object",
      propertyNames: { minLength: 1 },
      additionalProperties: { type: "string", pattern: LIMIT_VALUE },
      minProperties: 1,
      maxProperties: MAX_ENTRIES,
    };
    return listSchema(descriptor, words, boundsOf("minItems", "maxItems", 1, max));
  },
  verification: ({ of = "" }) => schemaOf(of),
  credentials: ({ of = "" }) => schemaOf(of),
  object: ({ words }) => openSchema(words),
  json: ({ words }) => ({ description: words }),
  texts: ({ words, pattern, max }) => {
    if (pattern === undefined) return listSchema({ type: "string" }, words);
    return listSchema({ type: "string", pattern }, words, boundsOf("minItems", "maxItems", 1, max));
  },
  record: ({ of = "" }) => schemaOf(of),
  records: ({ words, of = "", min, max }) => {
    return listSchema(schemaOf(of), words, boundsOf("minItems", "maxItems", min, max));
  },
};

/** The schemas of fields that a request has in another form than an answer. */
const SENT_SHAPES: Partial<Record<FieldType, Shape>> = {
  text: ({ words, min, max, pattern }) => {
    if (pattern !== undefined) {
      return textSchema(words, { ...boundsOf("minLength", "maxLength", min, max), pattern });
    }
    const bounds = boundsOf("minLength", "maxLength", min, max ?? MAX_TEXT_LENGTH);
    return textSchema(words, { ...bounds, pattern: `^${PRINTED}*$` });
  },
  rate: ({ words, fields = {} }) => ({ ...bodySchema(fields), description: words }),
  credentials: ({ of = "" }) => schemaOf(`New${of}`),
  headers: ({ words }) => ({
    type: "object",
    additionalProperties: {
      type: "string",
      maxLength: MAX_HEADER_VALUE,
      pattern: "^[!-~](?:[\\t -~]*[!-~])?$",
    },
    propertyNames: { pattern: STATIC_HEADER },
    maxProperties: MAX_HEADERS,
    description: words,
  }),
};

function integerShape({ words, min, max }: Field): JsonSchema {
  return integerSchema(words, boundsOf("minimum", "maximum", min, max));
}

function boundsOf(
  least: keyof JsonSchema,
  most: keyof JsonSchema,
  min: number | undefined,
  max: number | undefined,
): JsonSchema {
  return { ...(min === undefined ? {} : { [least]: min }), ...(max === undefined ? {} : { [most]: max }) };
}

function conditionSchema(description: string, pattern: string): JsonSchema {
  const texts = [
    // The bound is that of the JSON, which takes two characters for a quote or a backslash.
    textSchema("A text.", {
      maxLength: MAX_CONDITION_TEXT - 2,
      pattern: '^[^"\\\\\\u0000-\\u001f\\u007f-\\u009f]*$',
    }),
    textSchema("A text.", { maxLength: MAX_CONDITION_TEXT / 2 - 1, pattern: `^${PRINTED}*$` }),
  ];
  const value: JsonSchema = { anyOf: [...texts, { type: ["number", "boolean", "null"] }] };
  const bounds = { minItems: 1, maxItems: MAX_CONDITION_VALUES };
  const values: JsonSchema = { type: "array", items: value, ...bounds };
  const operators: JsonSchema = {
    type: "object",
    properties: {
      equal: value,
      notEqual: value,
      in: values,
      exists: { type: "boolean" },
      greater: { type: "number" },
      less: { type: "number" },
    },
    additionalProperties: false,
    minProperties: 1,
  };
  const group: JsonSchema = {
    anyOf: [values, operators, {
      type: "array",
      items: { type: "object", minProperties: 1, maxProperties: MAX_CONDITION_PATHS },
      ...bounds,
      description: "Conditions of the same form, of which one (`any`) or each (`all`) has to hold.",
    }],
  };
  return {
    type: "object",
    properties: { any: group, all: group },
    propertyNames: { maxLength: MAX_CONDITION_TEXT, pattern },
    additionalProperties: { anyOf: [values, operators] },
    minProperties: 1,
    maxProperties: MAX_CONDITION_PATHS,
    description,
  };
}

/** The schema of a record in an answer. */
export function recordSchema(fields: Fields): JsonSchema {
  const shown = Object.entries(fields).filter(([, field]) => isShown(field));
  const [sometimes, always] = [true, false].map((isOptional) => {
    const chosen = shown.filter(([, { shown }]) => (shown === "sometimes") === isOptional);
    return Object.fromEntries(chosen.map(([name, field]) => [name, SHAPES[field.type](field)]));
  });
  return objectSchema(always ?? {}, sometimes);
}

/** The schema of the fields that only the call which creates a record shows; `isSure` when it always has them. */
export function onceSchema(fields: Fields, isSure = true): JsonSchema {
  const once = Object.entries(fields).filter(([, { shown }]) => shown === "once");
  const schemas = Object.fromEntries(once.map(([name, field]) => [name, SHAPES[field.type](field)]));
  return isSure ? objectSchema(schemas) : objectSchema({}, schemas);
}

/** The schemas of records that fields have, by name. */
export function innerSchemas(fields: Fields): SchemaProperties {
  return Object.fromEntries(
    Object.values(fields).flatMap(({ of, fields }) =>
      of === undefined || fields === undefined ? [] : [[of, recordSchema(fields)]]
    ),
  );
}

/** The schemas of the fields of a request, by name. */
export function sentSchemas(fields: Fields, noun = ""): SchemaProperties {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, sentSchema(field, noun)]));
}

/** The schema of the body of a request: these fields and no others. */
export function bodySchema(fields: Fields, noun?: string): JsonSchema {
  const schemas = Object.entries(sentSchemas(fields, noun));
  const isRequired = ([name]: readonly [string, unknown]) => fields[name]?.isRequired === true;
  const required = schemas.filter(isRequired);
  const optional = schemas.filter((entry) => !isRequired(entry));
  return closedSchema(Object.fromEntries(required), Object.fromEntries(optional));
}

function sentSchema(field: Field, noun: string): JsonSchema {
  const { default: value, isNullable, clear: [, clear = "remove it"] = [] } = field;
  const sentences = [
    field.words,
    ...(value === undefined || value === "" ? [] : [`Default${noun}: \`${value}\`.`]),
    ...(isNullable === true ? [`\`null\` ${clear.replace(/^\w+/, (verb) => `${verb}s`)}.`] : []),
  ];
  const schema = (SENT_SHAPES[field.type] ?? SHAPES[field.type])({ ...field, words: sentences.join(" ") });
  if (isNullable !== true) return schema;
  const { type, description = sentences.join(" ") } = schema;
  if (type === undefined || field.type === "choice") {
    return { anyOf: [schema, { type: "null" }], description };
  }
  return { ...schema, type: [type, "null" as const].flat() };
}
