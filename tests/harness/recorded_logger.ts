import type { LogFields, Logger } from "../../src/base/log.ts";
import type { LogLevel } from "../../src/telemetry/logger.ts";

/** One line that was logged. */
interface LoggedLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
}

/** A logger that keeps its lines. */
export class RecordedLogger implements Logger {
  readonly lines: LoggedLine[] = [];

  readonly debug = this.#keeper("debug");
  readonly info = this.#keeper("info");
  readonly warning = this.#keeper("warning");
  readonly error = this.#keeper("error");

  #keeper(level: LogLevel): (message: string, fields?: LogFields) => void {
    return (message, fields = {}) => void this.lines.push({ level, message, fields });
  }
}
