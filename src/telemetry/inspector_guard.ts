import { close, url } from "node:inspector/promises";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";

/** Interval and duration of looking for an open inspector after a signal: the runtime opens it in its own time. */
const LOOK_MS = 10;
const LOOKING_MS = 10_000;
/** The address at which a signal opens it. */
const SIGNAL_ADDRESS = "ws://127.0.0.1:9229/";

/** The inspector of the runtime. */
interface Inspector {
  /** Its address; undefined while it is closed. */
  readonly url: () => string | undefined;
  readonly close: () => void;
}

/**
 * Closes the inspector that SIGUSR1 opens in a Deno program, and that may have been opened before this was called.
 * A program that connects to it can run any code in the process, without a password. Returns what to call at each signal.
 */
export function closeInspector(
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  inspector: Inspector = { url, close },
): () => void {
  let until = -Infinity;
  const look = () => {
    // Another address is that of a flag.
    if (inspector.url()?.startsWith(SIGNAL_ADDRESS)) {
      inspector.close();
      logger.warning("Inspector closed: SIGUSR1 opened it; to debug, start with --inspect=127.0.0.1:9230");
    }
    if (clock.elapsed() < until) clock.after(LOOK_MS, look);
    else until = -Infinity;
  };
  const begin = () => {
    const isLooking = until > -Infinity;
    until = clock.elapsed() + LOOKING_MS;
    if (!isLooking) look();
  };
  begin();
  return begin;
}
