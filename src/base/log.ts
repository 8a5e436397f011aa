/** Facts of a log line; an `Error` is written with its message, on debug level also with its stack. */
export type LogFields = Readonly<Record<string, unknown>>;

/** The highest `LOG_LEVEL` that shows an `info` line; `warning`, the default, for the start and the stop. */
type ShownUpTo = "info" | "warning";

/** The log of the program. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields, shownUpTo?: ShownUpTo): void;
  warning(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/** A log line of a worker, sent to the main thread. */
export interface PortLine {
  readonly type: "log";
  readonly level: keyof Logger;
  readonly message: string;
  readonly fields: LogFields;
  readonly shownUpTo?: ShownUpTo;
}

/** A logger for a worker; the main thread filters and writes its lines. */
export function portLogger(port: { postMessage(line: PortLine): void }): Logger {
  const log = (level: keyof Logger) => (message: string, fields: LogFields = {}) => {
    port.postMessage({ type: "log", level, message, fields });
  };
  const info: Logger["info"] = (message, fields = {}, shownUpTo = "info") => {
    port.postMessage({ type: "log", level: "info", message, fields, shownUpTo });
  };
  return { debug: log("debug"), info, warning: log("warning"), error: log("error") };
}
