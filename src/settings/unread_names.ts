import { editDistance } from "../base/edit_distance.ts";
import { fileVariable, suppliedVariable } from "./secret_files.ts";
import { type Environment, isSet } from "./setting.ts";
import { familyPattern, settingEntries } from "./table.ts";

/** How vendor words in names of envoyproxy/ratelimit became neutral ones. */
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
const NAMES: ReadonlySet<string> = new Set(settingEntries().map(([name]) => name));
/** The settings, and the variables that name files for them. */
const VARIABLES = [...NAMES].flatMap((name) => [name, fileVariable(name) ?? []].flat());
const FAMILIES = [...NAMES].flatMap((name) => familyPattern(name) ?? []);
/** Shorter settings allow one wrong letter, others two: few names of other programs are that similar. */
const LONG_NAME = 8;

/** Warnings about variables that are not settings, but were probably meant as one. */
export function unreadWarnings(env: Environment): string[] {
  return Object.keys(env).sort().flatMap((variable) => {
    if (!isSet(env, variable) || isSetting(variable)) return [];
    const renamed = ourNameFor(variable);
    if (renamed !== undefined) return [`${variable} is not read: set ${renamed} instead`];
    const [, plain = ""] = /^(.*_.*)_FILE$/.exec(variable) ?? [];
    if (isSetting(plain)) return [`${variable} is not a setting; only secrets can be read from a file`];
    const similar = similarSetting(variable);
    return similar === undefined ? [] : [`${variable} is not a setting; did you mean ${similar}?`];
  });
}

function isSetting(variable: string): boolean {
  return NAMES.has(variable) || suppliedVariable(variable) !== undefined ||
    FAMILIES.some((pattern) => pattern.test(variable));
}

/**
 * Our name for a variable of envoyproxy/ratelimit; undefined where we have none, as for a cluster's own
 * `REDIS_PORT`.
 */
function ourNameFor(variable: string): string | undefined {
  const renaming = RENAMED.find(([pattern]) => pattern.test(variable));
  const ours = renaming === undefined ? undefined : variable.replace(...renaming);
  return ours !== undefined && isSetting(ours) ? ours : undefined;
}

/**
 * The setting that a variable misspells. Only names with an underscore are compared, because `HOST` and `PORT` are
 * close to names of the system, such as `HOME`.
 */
function similarSetting(variable: string): string | undefined {
  const candidates = VARIABLES.flatMap((name) => {
    const most = name.length < LONG_NAME ? 1 : 2;
    if (!name.includes("_") || name[0] !== variable[0]) return [];
    if (Math.abs(name.length - variable.length) > most) return [];
    const distance = editDistance(variable, name);
    return distance > most ? [] : [{ name, distance }];
  });
  return candidates.sort((a, b) => a.distance - b.distance)[0]?.name;
}
