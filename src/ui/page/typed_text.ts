import { ApiProblem } from "./api.ts";

/** Words with a comma, a space or a line end between them. */
export function wordsIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== "");
}

/** Lines of `Name: value`, as an object; absent where there are none. */
export function headersIn(text: string): Record<string, string> | undefined {
  const headers = new Map<string, string>();
  for (const line of linesIn(text)) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).trim();
    if (name === "" || headers.has(name)) {
      throw new ApiProblem(`Cannot read "${line}": Name: value is wanted, each name once`, {
        field: "headers",
      });
    }
    headers.set(name, line.slice(colon + 1).trim());
  }
  return headers.size === 0 ? undefined : Object.fromEntries(headers);
}

/** Lines of `key=value,key=value`, or of JSON objects where a text has a comma in it, each one descriptor. */
export function descriptorsIn(text: string, field: string): Record<string, string>[] {
  return linesIn(text).map((line) => {
    if (line.startsWith('{"')) return textsIn(line, field);
    const entries = new Map<string, string>();
    for (const entry of line.split(",")) {
      const [key = "", ...value] = entry.split("=");
      if (key.trim() === "" || entries.has(key.trim())) {
        throw new ApiProblem(`Cannot read "${line}": key=value is wanted, each key once`, { field });
      }
      entries.set(key.trim(), value.join("=").trim());
    }
    return Object.fromEntries(entries);
  });
}

/** Descriptors as the lines that `descriptorsIn` reads. */
export function descriptorsText(descriptors: readonly Readonly<Record<string, unknown>>[]): string {
  return descriptors.map((one) => {
    const line = Object.entries(one).map(([key, value]) => `${key}=${value}`).join(",");
    return isSame(line, one) ? line : JSON.stringify(one);
  }).join("\n");
}

/** A whole number; absent where nothing was typed in. */
export function wholeIn(text: string, field: string): number | undefined {
  if (text.trim() === "") return undefined;
  if (/^\s*\d{1,9}\s*$/.test(text)) return Number(text);
  throw new ApiProblem(`Cannot use "${text}": a whole number is wanted`, { field });
}

/** A JSON object, as the text that it is; its numbers keep their digits. */
export function objectIn(text: string, field: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "";
    throw new ApiProblem(`Cannot read this as JSON: ${reason}`, { field });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return text;
  throw new ApiProblem("Cannot use this JSON: an object is wanted", { field });
}

/** A moment of the reader's time zone, as RFC 3339. */
export function momentIn(text: string, field: string): string {
  const at = Date.parse(text);
  if (Number.isFinite(at)) return new Date(at).toISOString();
  throw new ApiProblem(`Cannot use "${text}": a day and a time are wanted`, { field });
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
  return Object.fromEntries(entries.map(([key, value]) => {
    if (typeof value === "string") return [key, value] as const;
    throw new ApiProblem(`Cannot read "${line}": texts are wanted`, { field });
  }));
}

function linesIn(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
}
