/** Facts beside the message; an `Error` is written with its message, and with its stack on debug level. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Where the program tells its operator what happens. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warning(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}
