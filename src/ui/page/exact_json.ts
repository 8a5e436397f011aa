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
