import { ThrottledLog } from "../base/throttled_log.ts";
import type { GrpcEngineOptions } from "./engine.ts";

const INTERVAL_MS = 60_000;

/** Logs calls with unusually long headers, at most once a minute: a proxy may pass on those of its clients. */
export function longHeadersLog(
  { logger, clock }: Pick<GrpcEngineOptions, "logger" | "clock">,
): (bytes: number, peer: string | undefined) => void {
  const log = new ThrottledLog(logger, { clock, intervalMs: INTERVAL_MS });
  return (bytes, peer) =>
    log.warning("headers", "gRPC call with long headers; the headers that Weir does not use are dropped", {
      bytes,
      peer,
    });
}
