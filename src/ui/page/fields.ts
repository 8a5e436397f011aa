/** A JSON object from outside: its fields may have any type. */
export type Fields = Readonly<Record<string, unknown>>;

/** A value as an object; empty if it is not one. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Fields : {};
}

/** A string field; empty if it is not one. */
export function textOf(fields: Fields, name: string): string {
  const value = fields[name];
  return typeof value === "string" ? value : "";
}

/** A number field; undefined if it is not one. */
export function numberOf(fields: Fields, name: string): number | undefined {
  const value = fields[name];
  return typeof value === "number" ? value : undefined;
}

/** Returns whether a field is `true`. */
export function flagOf(fields: Fields, name: string): boolean {
  return fields[name] === true;
}

/** A field that is a list of objects. */
export function recordsOf(fields: Fields, name: string): readonly Fields[] {
  const value = fields[name];
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

/** A field that is a list of strings. */
export function textsOf(fields: Fields, name: string): readonly string[] {
  const value = fields[name];
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

/** A field that is a list of numbers. */
export function numbersOf(fields: Fields, name: string): readonly number[] {
  const value = fields[name];
  return Array.isArray(value) ? value.filter((one) => typeof one === "number") : [];
}

/** An RFC 3339 field in milliseconds since the epoch; undefined if it is not one. */
export function timeOf(fields: Fields, name: string): number | undefined {
  const at = Date.parse(textOf(fields, name));
  return Number.isFinite(at) ? at : undefined;
}

/** `JSON.rawJSON`, which TypeScript does not know yet. */
interface RawJson {
  readonly rawJSON?: (text: string) => unknown;
}

/** Parses JSON; numbers keep all digits for `exactText`, if the browser supports it. */
export function parseExact(text: string): unknown {
  const { rawJSON } = JSON as RawJson;
  if (rawJSON === undefined) return JSON.parse(text);
  const revive = (_: string, value: unknown, context?: { readonly source?: string }) => {
    const source = context?.source;
    if (typeof value !== "number" || source === undefined || String(value) === source) return value;
    return rawJSON(source);
  };
  return JSON.parse(text, revive);
}

/** Indented JSON. */
export function exactText(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? "";
}
