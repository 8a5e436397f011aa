import { familyPattern, settingEntries } from "./table.ts";

/** How the vendor words of other names became neutral ones; the first that fits holds. */
const RENAMED: readonly (readonly [RegExp, string])[] = [
  [/^REDIS_/, "KV_"],
  [/^MEMCACHE_/, "MC_"],
  [/^USE_DOG_STATSD/, "USE_TAGGED_PUSH_STATS"],
  [/^DOG_STATSD_/, "TAGGED_PUSH_STATS_"],
  [/^USE_STATSD$/, "USE_PUSH_STATS"],
  [/^STATSD_/, "PUSH_STATS_"],
  [/^USE_PROMETHEUS$/, "USE_PULL_METRICS"],
  [/^PROMETHEUS_/, "PULL_METRICS_"],
];

/**
 * Our name for a variable of envoyproxy/ratelimit. Undefined where we have no setting of that name, so that
 * variables which only look alike (a cluster's own `REDIS_PORT`, say) go unnoticed.
 */
export function ourNameFor(variable: string): string | undefined {
  const renaming = RENAMED.find(([pattern]) => pattern.test(variable));
  if (renaming === undefined) return undefined;
  const ours = variable.replace(...renaming);
  const isSetting = settingEntries().some(([name]) => name === ours || familyPattern(name)?.test(ours));
  return isSetting ? ours : undefined;
}
