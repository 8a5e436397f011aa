import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { LogFields, Logger } from "../base/log.ts";

/** Levels from the lowest, as in `LOG_LEVEL`. */
const LOG_LEVELS = ["trace", "debug", "info", "warning", "error", "fatal", "panic"] as const;
/** The name of a level. */
export type LogLevel = typeof LOG_LEVELS[number];
/** The lines of a logger, and their format. */
export interface LoggerOptions {
  readonly level: LogLevel;
  readonly format: "text" | "json";
  readonly clock: Clock;
  /** Takes a line without its line break; must neither throw nor block. */
  readonly write: (line: string) => void;
}

/** A logger that writes a line for each entry: `time="…" level=… msg="…"`, or a JSON object. */
export function createLogger(options: LoggerOptions): Logger {
  const { write } = options;
  const threshold = LOG_LEVELS.indexOf(options.level);
  const format = options.format === "json" ? jsonLine : textLine;
  const log = (level: LogLevel, shownUpTo = level) => {
    if (LOG_LEVELS.indexOf(shownUpTo) < threshold) return () => {};
    return (message: string, fields: LogFields = {}) => {
      const line = (plain: Record<string, unknown>) =>
        format(new Date(options.clock.now()), level, message, plain);
      try {
        write(line(plainFields(fields, threshold)));
      } catch (error) {
        // A field that JSON cannot represent, such as a bigint.
        write(line({ unwritable: errorText(error) }));
      }
    };
  };
  const infos = { info: log("info"), warning: log("info", "warning") } as const;
  const info: Logger["info"] = (message, fields, shownUpTo = "info") => infos[shownUpTo](message, fields);
  return { debug: log("debug"), info, warning: log("warning"), error: log("error") };
}

function jsonLine(time: Date, level: LogLevel, message: string, fields: Record<string, unknown>): string {
  return JSON.stringify({ "@timestamp": time.toISOString(), level, "@message": message, ...fields });
}

function textLine(time: Date, level: LogLevel, message: string, fields: Record<string, unknown>): string {
  const extra = Object.entries(fields).map(([name, value]) =>
    ` ${name}=${typeof value === "string" ? JSON.stringify(value) : JSON.stringify(value) ?? "undefined"}`
  );
  const seconds = `${time.toISOString().slice(0, 19)}Z`;
  return `time="${seconds}" level=${level} msg=${JSON.stringify(message)}${extra.join("")}`;
}

function plainFields(fields: LogFields, threshold: number): Record<string, unknown> {
  const plain: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    plain[name] = value instanceof Error
      ? loggedError(value, threshold <= LOG_LEVELS.indexOf("debug"))
      : value;
  }
  return plain;
}

function loggedError(error: Error, withStack: boolean): string {
  if (withStack && error.stack !== undefined) return error.stack;
  const { message, cause } = error;
  return cause instanceof Error && !message.includes(cause.message)
    ? `${message} (${cause.message})`
    : message;
}
