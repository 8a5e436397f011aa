import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { ThrottledLog } from "../base/throttled_log.ts";

/** Socket errors that a peer causes and a library did not handle. */
const SOCKET_ERROR_CODES = new Set([
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTCONN",
  "EPIPE",
  "ETIMEDOUT",
  "ERR_HTTP2_INVALID_STREAM",
  "ERR_HTTP2_STREAM_ERROR",
  "ERR_HTTP2_SESSION_ERROR",
  "ERR_STREAM_DESTROYED",
  "ERR_STREAM_WRITE_AFTER_END",
]);
const SOCKET_ERROR_NAMES = new Set(["BrokenPipe", "ConnectionAborted", "ConnectionReset", "NotConnected"]);
/** Of HTTP/2 streams that the peer reset before the response ended. */
const SOCKET_ERROR_TEXTS = ["The stream has been destroyed", "Stream was destroyed", "Socket closed"];

/** Numbers of uncaught errors. */
interface ProcessErrors {
  socketErrors: number;
  /** All others; each is a defect of this program. */
  unexpectedErrors: number;
}

/** The targets of reports about uncaught errors. */
interface ProcessGuardOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Called for an error that is not of a socket. */
  readonly onUnexpected: (error: unknown) => void;
}

/** Keeps the process running after uncaught errors; logs and counts them. */
export function guardProcess(options: ProcessGuardOptions): { errors: ProcessErrors; release: () => void } {
  const errors: ProcessErrors = { socketErrors: 0, unexpectedErrors: 0 };
  const log = new ThrottledLog(options.logger, { clock: options.clock });
  const report = (error: unknown) => {
    const stack = error instanceof Error ? error.stack : String(error);
    if (isSocketError(error)) {
      errors.socketErrors++;
      log.warning("socket", "A socket failed outside every handler", { stack });
      return;
    }
    errors.unexpectedErrors++;
    log.error("unexpected", "An error reached the process level; please report it", { stack });
    options.onUnexpected(error);
  };
  const onError = (event: ErrorEvent) => {
    event.preventDefault();
    report(event.error);
  };
  const onRejection = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    report(event.reason);
  };
  globalThis.addEventListener("error", onError);
  globalThis.addEventListener("unhandledrejection", onRejection);
  const release = () => {
    globalThis.removeEventListener("error", onError);
    globalThis.removeEventListener("unhandledrejection", onRejection);
  };
  return { errors, release };
}

/** True when a peer caused the error by closing or resetting its connection. */
export function isSocketError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? error.code : undefined;
  if (typeof code === "string" && SOCKET_ERROR_CODES.has(code)) return true;
  return SOCKET_ERROR_NAMES.has(error.name) ||
    SOCKET_ERROR_TEXTS.some((text) => error.message.includes(text));
}
