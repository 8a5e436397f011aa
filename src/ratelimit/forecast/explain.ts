import { shownText } from "../../base/byte_text.ts";
import { type Walk, type WalkedLevel, walkRules } from "./explain_walk.ts";
import { instantText } from "../decision/window.ts";
import { isConditional } from "../decision/counter_cache.ts";
import { amountOf, type LimitAmount } from "../decision/limit_amount.ts";
import { isQuota, type Plan, type PlanContext, planHits, type PlannedDescriptor } from "../decision/plan.ts";
import { type Descriptor, type Entry, type RateLimitRequest, shownEntry } from "../request.ts";
import type { LimitEvent, Redaction, RuleEvents } from "../rule_events.ts";
import type { RateLimit, Rules } from "../rules/rules.ts";

/** Which rules apply to a request, without counts; serializable as JSON. */
export interface Explanation {
  readonly domain: string;
  readonly domainKnown: boolean;
  /** RFC 3339; selects the windows. */
  readonly at: string;
  readonly descriptors: readonly ExplainedDescriptor[];
}

/** One descriptor and its path to a limit. */
export interface ExplainedDescriptor {
  readonly entries: readonly Entry[];
  /** Empty for an unknown domain or a limit in the request. */
  readonly levels: readonly WalkedLevel[];
  /** `replaced`: the limit of another descriptor replaces this one. */
  readonly outcome: "limited" | "unlimited" | "replaced" | "none";
  readonly why: string;
  readonly limit?: ExplainedLimit;
  readonly replacedBy?: readonly { readonly descriptor: number; readonly rule: string }[];
  readonly cacheKey?: string;
  readonly windowEnds?: string;
  /** Of a limit with several windows, in place of its amount, key and end. */
  readonly windows?: readonly ExplainedWindow[];
}

/** One of several windows. */
interface ExplainedWindow extends LimitAmount {
  readonly cacheKey?: string;
  readonly windowEnds?: string;
}

/** A limit and its source. */
export interface ExplainedLimit extends LimitAmount {
  /** The full key of the rule; undefined for a limit in the request. */
  readonly rule?: string;
  readonly override: boolean;
  readonly unlimited: boolean;
  readonly name?: string;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  readonly replaces: readonly string[];
  /** Absent without events, as is the redaction of their values. */
  readonly events?: readonly LimitEvent[];
  readonly eventsRedact?: Redaction;
}

/** An explanation and the plan of the same request. */
export interface Explained {
  readonly explanation: Explanation;
  readonly plan: Plan;
}

/** Explains a valid request; the limits are those of the plan. */
export function explain(rules: Rules, request: RateLimitRequest, context: PlanContext): Explained {
  const plan = planHits(rules, request, context);
  const table = rules.domains.get(request.domain);
  const walks = request.descriptors.map(({ entries, limit }): Walk => {
    if (limit !== undefined) return { levels: [], limit: undefined, end: "" };
    return table === undefined ? UNKNOWN_DOMAIN : walkRules(table, entries);
  });
  const descriptors = request.descriptors.map((descriptor, index) =>
    explained(descriptor, { plan, walks, index, context })
  );
  const explanation = {
    domain: shownText(request.domain),
    domainKnown: plan.domainKnown,
    at: instantText(context.nowSeconds),
    descriptors,
  };
  return { explanation, plan };
}

const UNKNOWN_DOMAIN: Walk = { levels: [], limit: undefined, end: "unknown domain" };

interface Found {
  readonly plan: Plan;
  readonly walks: readonly Walk[];
  readonly index: number;
  readonly context: PlanContext;
}

function explained(descriptor: Descriptor, found: Found): ExplainedDescriptor {
  const entries = descriptor.entries.map(shownEntry);
  const { plan, walks, index, context } = found;
  const { levels = [], limit: walked, end = "" } = walks[index] ?? {};
  const planned = plan.descriptors[index];
  if (planned?.limit !== undefined) {
    const limit = limitOf(planned.limit, planned, context);
    const isFallback = (planned.limit.rule?.path.length ?? entries.length) < entries.length;
    return {
      entries,
      levels,
      ...limitedBy(planned.limit, isFallback),
      limit,
      ...countersOf(planned, context),
    };
  }
  if (walked === undefined || planned === undefined) return { entries, levels, outcome: "none", why: end };
  return {
    entries,
    levels,
    outcome: "replaced",
    why: "the limit of another descriptor replaces it",
    limit: limitOf(walked, { ...planned, limit: walked }, context),
    replacedBy: replacementsOf(walked, walks),
  };
}

function limitedBy(limit: RateLimit, isFallback: boolean): Pick<ExplainedDescriptor, "outcome" | "why"> {
  if (limit.rule === undefined) {
    return { outcome: "limited", why: "the request has its own limit: no rule applies" };
  }
  return limit.unlimited ? { outcome: "unlimited", why: "its rule is unlimited: nothing is counted" } : {
    outcome: "limited",
    why: isFallback ? "its rule takes the limit of its parent" : "its rule has a limit",
  };
}

function limitOf(
  limit: RateLimit,
  planned: PlannedDescriptor,
  { policy, nowSeconds }: PlanContext,
): ExplainedLimit {
  const { rule, unlimited, name, shadowMode, replaces, events } = limit;
  return {
    ...(rule === undefined ? {} : { rule: rule.fullKey }),
    override: rule === undefined,
    unlimited,
    ...(name === "" ? {} : { name }),
    ...(unlimited || limit.windows !== undefined ? {} : amountOf(limit, nowSeconds)),
    shadowMode,
    quotaMode: isQuota(planned, policy),
    replaces,
    ...(events === undefined ? {} : eventsOf(events)),
  };
}

function eventsOf(
  { overLimit, nearLimit, redact }: RuleEvents,
): Pick<ExplainedLimit, "events" | "eventsRedact"> {
  const events: LimitEvent[] = [];
  if (overLimit) events.push("over_limit");
  if (nearLimit) events.push("near_limit");
  return { events, ...(redact === undefined ? {} : { eventsRedact: redact }) };
}

function countersOf(
  planned: PlannedDescriptor,
  { nowSeconds }: PlanContext,
): Pick<ExplainedDescriptor, "cacheKey" | "windowEnds" | "windows"> {
  if (planned.windows === undefined) return counterOf(planned);
  const windows = planned.windows.flatMap((window): ExplainedWindow[] =>
    window.limit === undefined ? [] : [{ ...amountOf(window.limit, nowSeconds), ...counterOf(window) }]
  );
  return { windows };
}

function counterOf({ hit }: PlannedDescriptor): Pick<ExplainedDescriptor, "cacheKey" | "windowEnds"> {
  if (hit === undefined) return {};
  if (isConditional(hit)) return { cacheKey: hit.key };
  return { cacheKey: hit.key, windowEnds: instantText(hit.windowEnd) };
}

function replacementsOf(
  { name }: RateLimit,
  walks: readonly Walk[],
): NonNullable<ExplainedDescriptor["replacedBy"]> {
  return walks.flatMap(({ limit }, descriptor) =>
    limit?.replaces.includes(name) === true ? [{ descriptor, rule: limit.rule?.fullKey ?? "" }] : []
  );
}
