import { ApiProblem } from "./api.ts";

const NUMBER_KEY = /^(?:0|[1-9]\d*)$/;

/** Words separated by commas, spaces or line ends. */
export function wordsIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== "");
}

/** Lines of `Name: value` as an object; undefined without any. */
export function headersIn(text: string): Record<string, string> | undefined {
  const headers = new Map<string, string>();
  for (const line of linesIn(text)) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).trim();
    if (name === "" || headers.has(name)) {
      throw new ApiProblem(`Invalid header "${line}": expected Name: value, each name once`, {
        field: "headers",
      });
    }
    headers.set(name, line.slice(colon + 1).trim());
  }
  return headers.size === 0 ? undefined : Object.fromEntries(headers);
}

/** One descriptor per line: `key=value,key=value`, or a JSON object where a value has a comma. */
export function descriptorsIn(text: string, field: string): Record<string, string>[] {
  return linesIn(text).map((line) => {
    if (line.startsWith('{"')) return textsIn(line, field);
    const entries = new Map<string, string>();
    for (const entry of line.split(",")) {
      const [key = "", ...value] = entry.split("=");
      if (key.trim() === "" || entries.has(key.trim())) {
        throw new ApiProblem(`Invalid descriptor "${line}": expected key=value, each key once`, { field });
      }
      entries.set(key.trim(), value.join("=").trim());
    }
    return descriptorOf(line, [...entries], field);
  });
}

/** Refuses keys whose order an object does not keep: it decides which rule matches. */
function descriptorOf(
  line: string,
  entries: readonly (readonly [string, string])[],
  field: string,
): Record<string, string> {
  const number = entries.length > 1 && entries.find(([key]) => NUMBER_KEY.test(key));
  if (!number) return Object.fromEntries(entries);
  const text = `Invalid descriptor "${line}": the page cannot keep the place of the key "${number[0]}"; ` +
    "use weir triggers edit";
  throw new ApiProblem(text, { field });
}

/** The inverse of `descriptorsIn`. */
export function descriptorsText(descriptors: readonly Readonly<Record<string, unknown>>[]): string {
  return descriptors.map((one) => {
    const line = Object.entries(one).map(([key, value]) => `${key}=${value}`).join(",");
    return isSame(line, one) ? line : JSON.stringify(one);
  }).join("\n");
}

/** A positive integer; undefined for an empty text. */
export function wholeIn(text: string, field: string): number | undefined {
  if (text.trim() === "") return undefined;
  if (/^\s*\d{1,9}\s*$/.test(text)) return Number(text);
  throw new ApiProblem(`Invalid number "${text}": expected an integer`, { field });
}

/** A rate such as `10/second`; null for an empty text. */
export function rateIn(text: string, field: string): { unit: string; requestsPerUnit: number } | null {
  if (text.trim() === "") return null;
  const [, number, unit = ""] = /^\s*(\d{1,15})\s*\/\s*([a-z]+)\s*$/.exec(text) ?? [];
  if (number !== undefined) return { unit, requestsPerUnit: Number(number) };
  throw new ApiProblem(`Invalid rate "${text}": expected a number and a unit such as 10/second`, { field });
}

/** Returns the text if it is a JSON object: numbers keep their digits. */
export function objectIn(text: string, field: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "";
    throw new ApiProblem(`Invalid JSON: ${reason}`, { field });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return text;
  throw new ApiProblem("Invalid JSON: expected an object", { field });
}

/** A local time as RFC 3339. */
export function momentIn(text: string, field: string): string {
  const at = Date.parse(text);
  if (Number.isFinite(at)) return new Date(at).toISOString();
  throw new ApiProblem(`Invalid time "${text}": expected a date and a time`, { field });
}

function isSame(line: string, descriptor: Readonly<Record<string, unknown>>): boolean {
  try {
    return JSON.stringify(descriptorsIn(line, "")) === JSON.stringify([descriptor]);
  } catch {
    return false;
  }
}

function textsIn(line: string, field: string): Record<string, string> {
  const entries = Object.entries(JSON.parse(objectIn(line, field)) as Record<string, unknown>);
  const texts = entries.map(([key, value]) => {
    if (typeof value === "string") return [key, value] as const;
    throw new ApiProblem(`Invalid descriptor "${line}": expected strings`, { field });
  });
  return descriptorOf(line, texts, field);
}

function linesIn(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
}
