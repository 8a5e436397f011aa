/** Facts beside the message; an `Error` is written with its message, and with its stack on debug level. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Where the program tells its operator what happens. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warning(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/** A line of a worker's log on its way to the main thread. */
export interface PortLine {
  readonly type: "log";
  readonly level: keyof Logger;
  readonly message: string;
  readonly fields: LogFields;
}

/** A logger for a worker: the logger of the main thread knows which lines are wanted, and alone writes. */
export function portLogger(port: { postMessage(line: PortLine): void }): Logger {
  const log = (level: keyof Logger) => (message: string, fields: LogFields = {}) => {
    port.postMessage({ type: "log", level, message, fields });
  };
  return { debug: log("debug"), info: log("info"), warning: log("warning"), error: log("error") };
}
