import type { DiagLogger } from "@opentelemetry/api";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";
import { ThrottledLog } from "../base/throttled_log.ts";

/** Options whose values may contain a password. */
const SECRET = /(?:ENDPOINT|HEADERS)$/;

/** A log for the SDK: warnings and errors, at most one a second, without values that may contain a password. */
export function sdkLog({ logger, clock, otlp }: {
  readonly logger: Logger;
  readonly clock: Clock;
  readonly otlp: ReadonlyMap<string, string>;
}): DiagLogger {
  const log = new ThrottledLog(logger, { clock });
  const secrets = [...otlp].flatMap(([option, value]) =>
    SECRET.test(option) && value.trim() !== "" ? [value.trim()] : []
  );
  const warn = (message: string) => {
    const text = secrets.reduce((left, secret) => left.replaceAll(secret, "(value not shown)"), message);
    log.warning("sdk", `OTLP export: ${text}`);
  };
  const ignore = () => {};
  return { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
}

/** Errors of the SDK refer to responses and sockets, which cannot be sent to another thread. */
export function plainError(error: unknown): Error {
  const plain = new Error(errorText(error));
  if (error instanceof Error) {
    if (error.stack !== undefined) plain.stack = error.stack;
    if (error.cause instanceof Error) plain.cause = new Error(error.cause.message);
  }
  return plain;
}
