import type { Attributes, AttributeValue } from "@opentelemetry/api";

/** The name of an attribute, made ready for many spans. */
export interface AttributeKey {
  /** What stands before the value in OTLP's JSON. */
  readonly before: string;
}

/** Needs no escape in JSON. */
const PLAIN = /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/;

/** Makes a name ready; to be done once for each. */
export function attributeKey(name: string): AttributeKey {
  return { before: `{"key":${JSON.stringify(name)},"value":` };
}

/** An attribute as an item of a list in OTLP's JSON. */
export function attributeText({ before }: AttributeKey, value: AttributeValue | undefined): string {
  return `${before}${valueText(value)}}`;
}

/** Attributes as such a list, without its brackets. */
export function attributesText(attributes: Attributes): string {
  return Object.entries(attributes).map(([name, value]) => attributeText(attributeKey(name), value)).join(
    ",",
  );
}

/** A text as JSON has it, in quotes; half of a character is escaped. */
export function quotedText(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** Whole numbers and others differ for a receiver, and what is none of the types is an empty value. */
function valueText(value: AttributeValue | null | undefined): string {
  switch (typeof value) {
    case "string":
      return `{"stringValue":${quotedText(value)}}`;
    case "number":
      return Number.isInteger(value) ? `{"intValue":${value}}` : `{"doubleValue":${JSON.stringify(value)}}`;
    case "boolean":
      return `{"boolValue":${value}}`;
    default:
      if (!Array.isArray(value)) return "{}";
      return `{"arrayValue":{"values":[${value.map((item) => valueText(item)).join(",")}]}}`;
  }
}
