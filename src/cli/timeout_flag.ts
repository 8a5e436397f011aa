import { parseDuration } from "../base/duration.ts";
import { FlagError } from "./flags.ts";

const MAX_TIMEOUT_MS = 86_400_000;

/** Milliseconds that the value of a flag such as `--timeout` gives an answer; throws for what no timer can wait. */
export function readTimeout(text: string, flag = "--timeout"): number {
  const timeoutMs = parseDuration(text);
  if (timeoutMs !== undefined && timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS) return timeoutMs;
  throw new FlagError(
    `Cannot use ${flag} "${text}": a duration from 1ms to 24h, such as 10s, would be right`,
  );
}
