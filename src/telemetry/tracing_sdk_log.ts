import type { DiagLogger } from "@opentelemetry/api";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { ThrottledLog } from "./throttled_log.ts";

/** Where the words of the SDK go. */
export interface SdkLogOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** The values of `OTEL_EXPORTER_OTLP_<OPTION>` by option. */
  readonly otlp: ReadonlyMap<string, string>;
}

/** Options whose values may hold a password. */
const SECRET = /(?:ENDPOINT|HEADERS)$/;

/**
 * Takes what the SDK says of itself: warnings and errors, at most one a second, and never with a value
 * that may hold a password.
 */
export function createSdkLog({ logger, clock, otlp }: SdkLogOptions): DiagLogger {
  const log = new ThrottledLog(logger, { clock });
  const secrets = [...otlp].flatMap(([option, value]) =>
    SECRET.test(option) && value.trim() !== "" ? [value.trim()] : []
  );
  const warn = (message: string) => {
    const text = secrets.reduce((left, secret) => left.replaceAll(secret, "(value not shown)"), message);
    log.warning("tracing", `Tracing: ${text}`);
  };
  const ignore = () => {};
  return { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
}
