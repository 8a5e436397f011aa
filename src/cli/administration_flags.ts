import { parseDuration } from "../base/duration.ts";
import { type JsonValue, parseJson } from "../base/exact_json.ts";
import { parseMoment, timeText } from "../base/rfc3339.ts";
import type { CommandFlag } from "./command.ts";
import { FlagError } from "./flags.ts";
import { headerOf } from "./header_text.ts";

/** A flag whose value becomes a part of a call. */
export interface CallFlag extends CommandFlag {
  readonly into: "query" | "body" | "header";
  /** Name of the parameter, header or field; a field inside of another one stands behind a period. */
  readonly field: string;
  /**
   * What its texts stand for; one text unless it is repeated. Without it the text is sent as it is. Throws an error
   * whose message says what would be right.
   */
  readonly read?: ((texts: readonly string[], now: number) => JsonValue) | undefined;
  /** Of a flag without a value: what is sent when it is said; true or false, as it was said, when absent. */
  readonly is?: false | null | undefined;
  /** Whether its value names a file (`-`: standard input) that holds the text. */
  readonly isFile?: boolean | undefined;
  readonly isRequired?: boolean | undefined;
  /** What is sent when it is not given. */
  readonly otherwise?: ((now: number) => JsonValue) | undefined;
}

type FlagOptions = Omit<CallFlag, "into" | "field" | "value" | "doc">;

/** A flag with a value that becomes a field of the body. */
export function bodyFlag(field: string, value: string, doc: string, options: FlagOptions = {}): CallFlag {
  return { into: "body", field, value, doc, ...options };
}

/** A flag without a value that becomes a field of the body. */
export function saidFlag(field: string, doc: string, options: Pick<CallFlag, "is"> = {}): CallFlag {
  return { into: "body", field, doc, ...options };
}

/** A flag that narrows a list. */
export function filterFlag(field: string, value: string, doc: string, options: FlagOptions = {}): CallFlag {
  return { into: "query", field, value, doc, ...options };
}

/** A whole number. */
export function readWhole([text = ""]: readonly string[]): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (Number.isSafeInteger(value)) return value;
  throw new FlagError("a whole number would be right");
}

/** A duration as whole milliseconds. */
export function readMilliseconds([text = ""]: readonly string[]): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms >= 1) return Math.round(ms);
  throw new FlagError("a duration such as 500ms or 10s would be right");
}

/** A duration, as it was written. */
export function readDurationText([text = ""]: readonly string[]): string {
  if (parseDuration(text) !== undefined) return text;
  throw new FlagError("a duration such as 30m or 24h would be right");
}

/** A time in RFC 3339, or how long ago it was. */
export function readMoment([text = ""]: readonly string[], now: number): string {
  const time = parseMoment(text, now);
  if (time !== undefined) return timeText(time);
  throw new FlagError(
    "a time such as 2026-01-31T12:00:00Z, or how long ago it was, such as 24h, would be right",
  );
}

/** Each text as it is. */
export function readTexts(texts: readonly string[]): readonly string[] {
  return texts;
}

/** A value of JSON; its numbers keep every digit. */
export function readJson([text = ""]: readonly string[]): JsonValue {
  try {
    return parseJson(text);
  } catch {
    // What the parser says would show a part of the text.
    throw new FlagError("JSON would be right");
  }
}

/** Headers as `Name: value`, one a text. */
export function readHeaders(texts: readonly string[]): Record<string, string> {
  const headers = texts.map((text) => {
    const header = headerOf(text);
    if (header !== undefined) return header;
    throw new FlagError('"Name: value" would be right');
  });
  if (new Set(headers.map(([name]) => name.toLowerCase())).size < headers.length) {
    throw new FlagError("each header once would be right");
  }
  return Object.fromEntries(headers);
}

/** Headers of a file, one `Name: value` a line. */
export function readHeaderLines([text = ""]: readonly string[]): Record<string, string> {
  return readHeaders(text.split("\n").filter((line) => line.trim() !== ""));
}

/** Descriptors, each as `key=value[,key=value...]`. */
export function readDescriptors(texts: readonly string[]): readonly Record<string, string>[] {
  return texts.map((text) =>
    Object.fromEntries(
      text.split(",").map((pair) => {
        const at = pair.indexOf("=");
        if (at > 0) return [pair.slice(0, at), pair.slice(at + 1)];
        throw new FlagError("key=value[,key=value...] would be right");
      }),
    )
  );
}
