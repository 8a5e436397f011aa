import { CalendarWindows, isMonthOrYear } from "../algorithms/calendar_windows.ts";
import { cacheKey } from "../rules/cache_key.ts";
import { keyEntries, nameText } from "../rules/key_entries.ts";
import type { AnyHit, ConditionalHit, Hit } from "./counter_cache.ts";
import { UNITS } from "../units.ts";
import { matchLimit } from "../rules/match_rules.ts";
import type { ConditionalRule, LimitWindows, RateLimit, Rules, RuleTable } from "../rules/rules.ts";
import type { Policy } from "./policy.ts";
import type { Descriptor, Entry, LimitOverride, RateLimitRequest } from "../request.ts";
import { metricKey } from "../rules/stat_path.ts";
import { windowOf } from "./window.ts";

/** The plan of one descriptor. */
export interface PlannedDescriptor {
  /** Undefined if there is none, or if it is replaced. */
  readonly limit: RateLimit | undefined;
  /** As they are in keys and names; empty without a limit. */
  readonly entries: readonly Entry[];
  readonly metricKey: string;
  readonly hits: number;
  readonly negative: boolean;
  /** Undefined without a limit or if it is unlimited. */
  readonly hit: AnyHit | undefined;
  /** Those of a limit with several windows, each with its own hit; this one has those of the first. */
  readonly windows: readonly PlannedDescriptor[] | undefined;
}

/** The limits and counters of a request, one item per descriptor. */
export interface Plan {
  readonly request: RateLimitRequest;
  readonly domainKnown: boolean;
  readonly descriptors: readonly PlannedDescriptor[];
  /** In the same order, with all windows in place of their descriptor: what has a hit, and a count. */
  readonly counted: readonly PlannedDescriptor[];
}

/** Inputs of a plan: seconds since the epoch, and a random number from 0 to below 1. */
export interface PlanContext {
  readonly nowSeconds: number;
  readonly random: () => number;
  readonly policy: Policy;
}

/** Finds the limits and counters of a valid request. */
export function planHits(rules: Rules, request: RateLimitRequest, context: PlanContext): Plan {
  const table = rules.domains.get(request.domain);
  const limits: (RateLimit | undefined)[] = [];
  for (const descriptor of request.descriptors) {
    limits.push(table === undefined ? undefined : limitOf(descriptor, table, context.policy));
  }
  dropReplaced(limits);
  const descriptors: PlannedDescriptor[] = [];
  for (const descriptor of request.descriptors) {
    descriptors.push(planDescriptor(request, descriptor, limits[descriptors.length], context));
  }
  return { request, domainKnown: table !== undefined, descriptors, counted: countedOf(descriptors) };
}

function countedOf(descriptors: readonly PlannedDescriptor[]): readonly PlannedDescriptor[] {
  for (const { windows } of descriptors) {
    if (windows !== undefined) return descriptors.flatMap((one) => one.windows ?? [one]);
  }
  return descriptors;
}

/** A call is over its limit only when all of its quota descriptors are. */
export function isQuota(planned: PlannedDescriptor, policy: Policy): boolean {
  return policy.quotaMode || planned.limit?.quotaMode === true;
}

function limitOf(descriptor: Descriptor, table: RuleTable, policy: Policy): RateLimit | undefined {
  return descriptor.limit === undefined
    ? matchLimit(table, descriptor.entries)
    : overrideLimit(descriptor.limit, policy);
}

/** Caches and the duration of the protocol hold no longer window; all of its length begin in 1970. */
const MAX_OVERRIDE_SECONDS = 10_000 * UNITS.YEAR.seconds;

function overrideLimit(
  { requestsPerUnit, unit, unitMultiplier = 1 }: LimitOverride,
  { calendarMonths }: Policy,
): RateLimit | undefined {
  if (unit === undefined) return undefined;
  const calendar = calendarMonths && isMonthOrYear(unit, unitMultiplier) ? UTC_WINDOWS[unit] : undefined;
  return {
    requestsPerUnit,
    unit,
    windowSeconds: calendar?.longestSeconds ??
      Math.min(UNITS[unit].seconds * unitMultiplier, MAX_OVERRIDE_SECONDS),
    calendar,
    conditional: undefined,
    unlimited: false,
    name: "",
    replaces: [],
    shadowMode: false,
    quotaMode: false,
    onCacheFailure: undefined,
    metadata: undefined,
    events: undefined,
    current: { name: "", requestsPerUnit, unit },
    rule: undefined,
    windows: undefined,
  };
}

const UTC_WINDOWS = {
  MONTH: new CalendarWindows("MONTH", 1, "UTC"),
  YEAR: new CalendarWindows("YEAR", 1, "UTC"),
};

function dropReplaced(limits: (RateLimit | undefined)[]): void {
  let replaced: Set<string> | undefined;
  for (const limit of limits) {
    if (limit === undefined || limit.replaces.length === 0) continue;
    for (const name of limit.replaces) (replaced ??= new Set()).add(name);
  }
  if (replaced === undefined) return;
  for (const [index, limit] of limits.entries()) {
    if (limit === undefined || limit.unlimited || limit.name === "") continue;
    if (replaced.has(limit.name)) limits[index] = undefined;
  }
}

function planDescriptor(
  request: RateLimitRequest,
  descriptor: Descriptor,
  limit: RateLimit | undefined,
  context: PlanContext,
): PlannedDescriptor {
  const hits = hitsOf(request, descriptor);
  const negative = descriptor.isNegativeHits === true;
  if (limit === undefined) {
    return { limit, entries: NO_ENTRIES, metricKey: "", hits, negative, hit: undefined, windows: undefined };
  }
  const { domain } = request;
  const entries = keyEntries(descriptor.entries, limit.rule?.counterName.varying);
  const key = metricKey(limit, domain, entries, context.policy.requestLimitValues);
  const source = { domain, descriptor, entries, addend: negative ? -hits : hits };
  if (limit.windows !== undefined) {
    const planned = { limit, entries, metricKey: key, hits, negative, hit: undefined, windows: undefined };
    return planWindows(planned, limit.windows, source, context);
  }
  const hit = limit.unlimited ? undefined : hitOf(source, limit, "", context);
  return { limit, entries, metricKey: key, hits, negative, hit, windows: undefined };
}

function planWindows(
  planned: PlannedDescriptor,
  { limits, keyLengths, isConditional, joint }: LimitWindows,
  source: HitSource,
  context: PlanContext,
): PlannedDescriptor {
  const isJoint = isConditional || context.policy.stopIncrementWhenOverLimit;
  const windows = limits.map((limit, index): PlannedDescriptor => {
    const hit = hitOf(source, limit, keyLengths[index] ?? "", context);
    return { ...planned, limit, hit: isJoint ? { ...hit, joint } : hit };
  });
  return { ...planned, hit: windows[0]?.hit, windows };
}

const NO_ENTRIES: readonly Entry[] = [];
/** A larger number is not exact, and no limit is that high. */
const MAX_HITS = 2 ** 53;

function hitsOf({ hitsAddend }: RateLimitRequest, descriptor: Descriptor): number {
  return Math.min(descriptor.hitsAddend ?? Math.max(1, hitsAddend), MAX_HITS);
}

interface HitSource {
  readonly domain: string;
  readonly descriptor: Descriptor;
  readonly entries: readonly Entry[];
  readonly addend: number;
}

/** The hit of a limit; its key ends in the length of the window, if it has several, and the start or the algorithm. */
function hitOf(source: HitSource, limit: RateLimit, keyLength: string, context: PlanContext): AnyHit {
  return limit.conditional === undefined
    ? fixedHit(source, limit, keyLength, context)
    : conditionalHit(source, limit, limit.conditional, keyLength, context);
}

function fixedHit(
  { domain, entries, addend }: HitSource,
  limit: RateLimit,
  keyLength: string,
  context: PlanContext,
): Hit {
  const { nowSeconds, policy } = context;
  const { start, end } = windowOf(limit, nowSeconds);
  const keptSeconds = limit.calendar === undefined ? limit.windowSeconds : end - nowSeconds;
  return {
    key: cacheKey(
      policy.cacheKeyPrefix,
      domain,
      entries,
      limit,
      keyLength === "" ? start : keyLength + start,
    ),
    addend,
    windowEnd: end,
    expiresInSeconds: keptSeconds + jitterOf(context),
    perSecond: limit.unit === "SECOND",
  };
}

function conditionalHit(
  { domain, descriptor, entries, addend }: HitSource,
  limit: RateLimit,
  { limit: conditional, keyEnd, longestSeconds }: ConditionalRule,
  keyLength: string,
  context: PlanContext,
): ConditionalHit {
  const key = cacheKey(context.policy.cacheKeyPrefix, domain, entries, limit, keyLength + keyEnd);
  const expiresInSeconds = longestSeconds + jitterOf(context);
  const perSecond = limit.unit === "SECOND";
  if (conditional.kind !== "leases") return { key, limit: conditional, addend, expiresInSeconds, perSecond };
  const holder = nameText(descriptor.entries.at(-1)?.value ?? "");
  return { key, limit: conditional, addend, expiresInSeconds, perSecond, holder };
}

function jitterOf({ policy, random }: PlanContext): number {
  const jitter = policy.expirationJitterMaxSeconds;
  return jitter > 0 ? Math.floor(random() * jitter) : 0;
}
