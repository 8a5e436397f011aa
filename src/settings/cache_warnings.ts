import type { Settings } from "./table.ts";

/** What an operator should know about settings of the cache that are valid; `bad` names those that are not. */
export function cacheWarnings(settings: Settings, bad: ReadonlySet<string>): string[] {
  const { BACKEND_TYPE: backend, KV_PERSECOND: hasPerSecond, MC_KEY_DIGEST: digests } = settings;
  if (backend === "mc" && !digests && !bad.has("MC_KEY_DIGEST")) {
    return [
      "MC_KEY_DIGEST is false: a blank, a control character or a long value in one descriptor fails the " +
      "whole call as INVALID_ARGUMENT; MC_KEY_DIGEST=true stores such keys under a digest",
    ];
  }
  if (backend !== "kv") return [];
  return [waitWarning("KV", settings), hasPerSecond ? waitWarning("KV_PERSECOND", settings) : undefined]
    .filter((warning) => warning !== undefined);
}

/** A wait that outlasts the timeout would leave nothing of it for what follows the wait. */
function waitWarning(prefix: "KV" | "KV_PERSECOND", settings: Settings): string | undefined {
  const behavior = settings[`${prefix}_POOL_ON_EMPTY_BEHAVIOR`];
  const waitMs = settings[`${prefix}_POOL_ON_EMPTY_WAIT_DURATION`];
  const timeoutMs = settings[`${prefix}_TIMEOUT`];
  if (behavior === "WAIT" || waitMs < timeoutMs) return undefined;
  return `${prefix}_POOL_ON_EMPTY_WAIT_DURATION is ${waitMs} ms and ${prefix}_TIMEOUT is ${timeoutMs} ms: ` +
    `${behavior} follows after half of the time that a call has left`;
}
