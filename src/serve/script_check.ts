import { errorText } from "../base/error_text.ts";
import { bucketLimit } from "../ratelimit/algorithms/bucket.ts";
import type { ConditionalLimit } from "../ratelimit/algorithms/conditional_limit.ts";
import { sliceLimit } from "../ratelimit/algorithms/slices.ts";
import type { AnyHit } from "../ratelimit/decision/counter_cache.ts";
import type { RateLimit, Rules } from "../ratelimit/rules/rules.ts";
import { countsOf, takeHits } from "../ratelimit/decision/take_hits.ts";
import type { OpenCache } from "./cache.ts";
import type { ServiceParts } from "./parts.ts";
import type { ApplyRules } from "./rules.ts";

/** A limit of each kind that frees itself within seconds. */
const LIMITS = {
  slices: sliceLimit(1_000, 1_000),
  bucket: bucketLimit({ burst: 1_000, hitsPerUnit: 1_000, unitSeconds: 1 }),
  leases: { kind: "leases", limit: 1_000, leaseUs: 1_000_000 },
} as const;
/** Windows that are taken together, each of which has its kind of limit. */
const JOINT = { limits: [LIMITS.slices, LIMITS.bucket] };
const EXPIRES_IN_SECONDS = 2;
/** Errors that a server does not get over by itself. */
const REFUSED = /\b(?:NOPERM|NOSCRIPT|ERR) /;
const MAX_SHOWN = 5;

/**
 * Applies rules, and reports when the key-value cache refuses a script that they require, for example because its user
 * may not run scripts. Each kind of limit is tried once, in the cache that counts it.
 */
export function checkingScripts(
  { settings, logger }: Pick<ServiceParts, "settings" | "logger">,
  { cache, ready }: Pick<OpenCache, "cache" | "ready">,
  apply: ApplyRules,
): ApplyRules {
  if (settings.BACKEND_TYPE !== "kv") return apply;
  const tried = new Set<string>();
  const tryOne = async (name: string, hits: readonly AnyHit[], limits: readonly RateLimit[]) => {
    try {
      countsOf(await takeHits(cache, hits));
    } catch (error) {
      const reason = errorText(error);
      if (!REFUSED.test(reason)) return void tried.delete(name);
      const names = limits.slice(0, MAX_SHOWN).map(({ rule }) => rule?.fullKey ?? "");
      const rules = [...names, ...(limits.length > MAX_SHOWN ? ["…"] : [])].join(", ");
      logger.error("The key-value cache refuses a script; rules that require it fail", { rules, reason });
    }
  };
  /** The latest rules, until the cache can be asked. */
  let unchecked: Rules | undefined;
  const check = async () => {
    await ready;
    const limits = unchecked?.limits ?? [];
    unchecked = undefined;
    const groups = Map.groupBy(limits, (limit) => {
      const kind = scriptOf(limit, settings);
      return kind === undefined ? undefined : `${kind}_${limit.unit === "SECOND" ? "second" : "other"}`;
    });
    await Promise.all([...groups].map(async ([name, limits]) => {
      const [limit] = limits;
      const kind = limit === undefined ? undefined : scriptOf(limit, settings);
      if (name === undefined || kind === undefined || tried.has(name)) return;
      tried.add(name);
      const shared = { addend: 1, expiresInSeconds: EXPIRES_IN_SECONDS, perSecond: limit?.unit === "SECOND" };
      const [prefix, check] = [settings.CACHE_KEY_PREFIX, `script_check_${name}`];
      const key = prefix + check;
      const hits = kind === "joint"
        ? JOINT.limits.map((limit, index) => ({
          ...shared,
          key: `${prefix}{${check}}_${index}`,
          limit,
          joint: JOINT,
        }))
        : kind === "leases"
        ? [{ ...shared, key, limit: LIMITS[kind], holder: "" }]
        : [{ ...shared, key, limit: LIMITS[kind] }];
      await tryOne(name, hits, limits);
    }));
  };
  return (rules, texts) => {
    const isWaiting = unchecked !== undefined;
    unchecked = rules;
    if (!isWaiting) void check();
    return apply(rules, texts);
  };
}

/** The script that a limit requires, if any. */
function scriptOf(
  { windows, conditional }: RateLimit,
  { STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: stops }: ServiceParts["settings"],
): ConditionalLimit["kind"] | "joint" | undefined {
  if (windows === undefined) return conditional?.limit.kind;
  return windows.isConditional || stops ? "joint" : undefined;
}
