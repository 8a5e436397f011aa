/** A JSON object whose fields are looked at one by one, because it comes from outside. */
export type Fields = Readonly<Record<string, unknown>>;

/** A value as an object; an empty one where it is none. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Fields : {};
}

/** A field that is a text; empty where it is none. */
export function textOf(fields: Fields, name: string): string {
  const value = fields[name];
  return typeof value === "string" ? value : "";
}

/** A field that is a number; absent where it is none. */
export function numberOf(fields: Fields, name: string): number | undefined {
  const value = fields[name];
  return typeof value === "number" ? value : undefined;
}

/** Whether a field is `true`. */
export function flagOf(fields: Fields, name: string): boolean {
  return fields[name] === true;
}

/** A field that is a list of objects. */
export function recordsOf(fields: Fields, name: string): readonly Fields[] {
  const value = fields[name];
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

/** A field that is a list of texts. */
export function textsOf(fields: Fields, name: string): readonly string[] {
  const value = fields[name];
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

/** A field that is a time in RFC 3339, in milliseconds; absent where it is none. */
export function timeOf(fields: Fields, name: string): number | undefined {
  const at = Date.parse(textOf(fields, name));
  return Number.isFinite(at) ? at : undefined;
}
