import { CalendarWindows } from "../algorithms/calendar_windows.ts";
import { cacheKey } from "../rules/cache_key.ts";
import { keyEntries, nameText } from "../rules/key_entries.ts";
import type { AnyHit, ConditionalHit, Hit } from "./counter_cache.ts";
import { UNITS } from "../units.ts";
import { matchLimit } from "../rules/match_rules.ts";
import type { ConditionalRule, RateLimit, Rules, RuleTable } from "../rules/rules.ts";
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
}

/** The limits and counters of a request, one item per descriptor. */
export interface Plan {
  readonly request: RateLimitRequest;
  readonly domainKnown: boolean;
  readonly descriptors: readonly PlannedDescriptor[];
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
  return { request, domainKnown: table !== undefined, descriptors };
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
  const isMonth = (unit === "MONTH" || unit === "YEAR") && unitMultiplier === 1;
  const calendar = calendarMonths && isMonth ? UTC_WINDOWS[unit] : undefined;
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
    return { limit, entries: NO_ENTRIES, metricKey: "", hits, negative, hit: undefined };
  }
  const { domain } = request;
  const entries = keyEntries(descriptor.entries, limit.rule?.counterName.varying);
  const key = metricKey(limit, domain, entries, context.policy.requestLimitValues);
  if (limit.unlimited) return { limit, entries, metricKey: key, hits, negative, hit: undefined };
  const addend = negative ? -hits : hits;
  const hit = limit.conditional === undefined
    ? fixedHit({ domain, entries, limit, addend }, context)
    : conditionalHit({ domain, entries, limit, addend }, limit.conditional, descriptor, context);
  return { limit, entries, metricKey: key, hits, negative, hit };
}

const NO_ENTRIES: readonly Entry[] = [];
/** A larger number is not exact, and no limit is that high. */
const MAX_HITS = 2 ** 53;

function hitsOf({ hitsAddend }: RateLimitRequest, descriptor: Descriptor): number {
  return Math.min(descriptor.hitsAddend ?? Math.max(1, hitsAddend), MAX_HITS);
}

interface HitSource {
  readonly domain: string;
  readonly entries: readonly Entry[];
  readonly limit: RateLimit;
  readonly addend: number;
}

function fixedHit({ domain, entries, limit, addend }: HitSource, context: PlanContext): Hit {
  const { nowSeconds, policy } = context;
  const { start, end } = windowOf(limit, nowSeconds);
  const keptSeconds = limit.calendar === undefined ? limit.windowSeconds : end - nowSeconds;
  return {
    key: cacheKey(policy.cacheKeyPrefix, domain, entries, limit, start),
    addend,
    windowEnd: end,
    expiresInSeconds: keptSeconds + jitterOf(context),
    perSecond: limit.unit === "SECOND",
  };
}

function conditionalHit(
  { domain, entries, limit, addend }: HitSource,
  { limit: conditional, keyEnd, longestSeconds }: ConditionalRule,
  descriptor: Descriptor,
  context: PlanContext,
): ConditionalHit {
  const key = cacheKey(context.policy.cacheKeyPrefix, domain, entries, limit, keyEnd);
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
