import type { LogFields, Logger } from "../../src/base/log.ts";

/** A log that keeps its lines. */
export class RecordedLogger implements Logger {
  /** Level, message and fields of each line. */
  readonly lines: (readonly [level: string, message: string, fields: LogFields | undefined])[] = [];

  debug(message: string, fields?: LogFields): void {
    this.lines.push(["debug", message, fields]);
  }

  info(message: string, fields?: LogFields): void {
    this.lines.push(["info", message, fields]);
  }

  warning(message: string, fields?: LogFields): void {
    this.lines.push(["warning", message, fields]);
  }

  error(message: string, fields?: LogFields): void {
    this.lines.push(["error", message, fields]);
  }
}
