import { addStats, NO_STATS } from "../rules/rule_stats.ts";
import type { RateLimit } from "../rules/rules.ts";
import { metricKey } from "../rules/stat_path.ts";
import type { Entry } from "../request.ts";
import type { StatsSink } from "../stats_sink.ts";
import type { DecisionTally } from "./decision_tally.ts";
import type { LimitEventSink } from "./limit_events.ts";
import type { RuleCounts } from "./rule_counts.ts";

/** Requests that a client decided by its share of a limit. */
interface ReportedHits {
  readonly limit: RateLimit;
  readonly domain: string;
  /** In the order of the path of the rule. */
  readonly entries: readonly Entry[];
  /** Of the limit with its values; its end behind the last `_` is not of them. */
  readonly key: string;
  readonly allowed: number;
  readonly denied: number;
  /** The part of the allowed ones that would have been refused, were the rule not in shadow mode. */
  readonly shadow: number;
}

/** Receivers of what was reported. */
interface ReportedHitsOptions {
  readonly stats: Pick<StatsSink, "rule">;
  readonly tally: DecisionTally;
  readonly counts: RuleCounts | undefined;
  readonly limitEvents: LimitEventSink | undefined;
  /** The current time, in milliseconds since the epoch. */
  readonly now: number;
}

/** Counts requests as those that were decided here; near a limit is none, since a client does not tell it. */
export function recordReported(reported: ReportedHits, options: ReportedHitsOptions): void {
  const { limit, domain, entries, key, allowed, denied, shadow } = reported;
  if (limit.unlimited) return;
  const { stats, tally, counts, limitEvents, now } = options;
  const hits = allowed + denied;
  const overLimit = denied + shadow;
  const name = metricKey(limit, domain, entries);
  const counters = stats.rule(name, domain);
  counters.totalHits += hits;
  const ofRule = { ...NO_STATS, overLimit, withinLimit: hits - overLimit, shadowMode: shadow };
  addStats(counters, ofRule);
  counts?.add(
    { limit, entries, metricKey: name, hits, negative: false, hit: undefined, windows: undefined },
    ofRule,
  );
  tally.total += hits;
  tally.overLimit += denied;
  if (overLimit === 0) return;
  const nowSeconds = Math.floor(now / 1_000);
  // Of several windows, what is in the tag, as in keys of decisions.
  const [start, end] = limit.windows === undefined ? [0, key.lastIndexOf("_")] : [1, key.lastIndexOf("}")];
  tally.overLimitKeys.add({ text: key, start, end, hits: overLimit, nowSeconds });
  if (limit.events?.overLimit !== true) return;
  limitEvents?.note([{
    event: "over_limit",
    domain,
    entries,
    limit,
    metricKey: name,
    key,
    windowEnd: undefined,
    hits: overLimit,
    taken: undefined,
    isShadow: shadow > 0,
  }], now);
}
