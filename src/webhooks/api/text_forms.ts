import { type JsonSchema, textSchema } from "../../base/json_schema.ts";
import { KIND_TEXT, MAX_KIND_LENGTH } from "../model/event.ts";

/** Longest text of a field without its own bound. */
export const MAX_TEXT_LENGTH = 1_024;

const KINDS_PATTERN = `^(?:\\*|(?=[^*]{1,${MAX_KIND_LENGTH}}(?:\\.\\*)?$)${KIND_TEXT}(?:\\.\\*)?)$`;
/** A character that a text in one line may have, and one that is no blank either. */
const PRINTED = "[^\\u0000-\\u001f\\u007f-\\u009f]";
const VISIBLE = "[^\\s\\u0000-\\u001f\\u007f-\\u009f]";
/** A text in one line without blanks at its ends. */
export const SECRET_PATTERN = `^${VISIBLE}(?:${PRINTED}*${VISIBLE})?$`;
/** A word of visible characters. */
export const WORD_PATTERN = `^${VISIBLE}+$`;
const HEADER_CHARACTERS = "[!#$%&'*+.^_`|~0-9A-Za-z-]";
/** The sender of deliveries sets these headers itself. */
export const SENDER_HEADERS = [
  ...["x-svc-.*", "webhook-.*", "content-.*", "proxy-.*", "host", "user-agent", "connection", "keep-alive"],
  ...["transfer-encoding", "te", "trailer", "upgrade", "http2-settings", "expect"],
].join("|");
/** The name of a static header of deliveries. */
export const STATIC_HEADER = `^(?!(?:${inAnyCase(SENDER_HEADERS)})$)${HEADER_CHARACTERS}{1,128}$`;
/** A value of a descriptor, with templates of the input. */
export const LIMIT_VALUE =
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
export function inAnyCase(pattern: string): string {
  return pattern.replaceAll(/[a-z]/g, (letter) => `[${letter.toUpperCase()}${letter}]`);
}

/** A text of a request in one line. */
export function lineSchema(description: string, more: JsonSchema = {}): JsonSchema {
  return textSchema(description, {
    maxLength: MAX_TEXT_LENGTH,
    pattern: `^${PRINTED}*$`,
    ...more,
  });
}

/** A text of a request in one line that is not blank. */
export function nameSchema(description: string, more: JsonSchema = {}): JsonSchema {
  const pattern = `^${PRINTED}*${VISIBLE}${PRINTED}*$`;
  return textSchema(description, { maxLength: MAX_TEXT_LENGTH, pattern, ...more });
}

/** A kind of event. */
export function kindSchema(description: string): JsonSchema {
  return textSchema(description, { maxLength: MAX_KIND_LENGTH, pattern: `^${KIND_TEXT}$` });
}

/** A kind of event, the prefix of several, or `*`. */
export function kindsSchema(description: string): JsonSchema {
  return textSchema(description, { maxLength: MAX_KIND_LENGTH + 2, pattern: KINDS_PATTERN });
}

/** A time, or a duration before now. */
export function momentSchema(description: string): JsonSchema {
  return {
    anyOf: [
      { type: "string", format: "date-time" },
      { type: "string", pattern: `^(?:${AGO})$` },
    ],
    description,
  };
}

/** A duration of at most 30 days. */
export const DELAY_SCHEMA: JsonSchema = { type: "string", pattern: `^(?:${DELAY})$` };
