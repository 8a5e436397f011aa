/** Knows numbers that JavaScript would round by the text they came with. */
interface RawJson {
  readonly rawJSON?: (text: string) => unknown;
}

/** Reads JSON; a number that would lose digits keeps them for `exactText`, where the browser can do that. */
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

/** JSON as people read it. */
export function exactText(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? "";
}
