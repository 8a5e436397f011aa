import { counter, gauge, type MetricGroup } from "../base/metrics.ts";
import { shownText } from "../base/byte_text.ts";
import { ThrottledLog } from "../base/throttled_log.ts";
import { createQuotaGrpcService } from "../grpc/quota_service.ts";
import type { GrpcService } from "../grpc/grpc_service.ts";
import { QuotaHub, type QuotaUsageSink } from "../quota/quota_hub.ts";
import type { QuotaShares } from "../quota/quota_shares.ts";
import { recordReported } from "../ratelimit/decision/reported_hits.ts";
import type { RateLimitService } from "../ratelimit/decision/service.ts";
import { NO_RULES, type Rules } from "../ratelimit/rules/rules.ts";
import { quotasRefused } from "../settings/rule_support.ts";
import type { ServiceParts } from "./parts.ts";

/** Metrics of the quotas that clients enforce. */
export const QUOTA_METRICS = {
  prefix: "ratelimit.quota.",
  metrics: {
    streams: gauge("streams", "Open streams of clients that report their requests."),
    streams_refused: counter(
      "streams",
      "Streams that were refused: above `QUOTA_MAX_STREAMS`, without a valid domain, or with memcached.",
    ),
    buckets: gauge("buckets", "Buckets of all clients."),
    reports: counter("messages", "Reports of clients."),
    reports_skipped: counter(
      "messages",
      "Reports that were skipped, because too many of the stream were waiting.",
    ),
    assignments: counter("assignments", "Quotas that were sent, and the order to forget a bucket."),
    bad_buckets: counter("reports", "Reports of buckets that were skipped: no pairs, too many, or too long."),
    surplus_buckets: counter(
      "reports",
      "Reports of buckets above a maximum, which `QUOTA_OVERFLOW` decides.",
    ),
    impossible_buckets: counter("reports", "Reports of buckets whose rule limits requests in flight."),
    exchanges_failed: counter(
      "exchanges",
      "Exchanges with the cache that failed, after which `on_cache_failure` decides once the part of the instance is not sure.",
    ),
  },
} satisfies MetricGroup;

const LOG_MS = 60_000;
const NO_COUNTS = {
  refused: 0,
  reports: 0,
  skipped: 0,
  assignments: 0,
  bad: 0,
  surplus: 0,
  impossible: 0,
  exchangesFailed: 0,
};

/** The service of quotas. */
interface OpenQuotas {
  readonly service: GrpcService;
  readonly hub: QuotaHub | undefined;
  close(): void;
}

/** Opens the service of quotas over the rules of the service that decides; without `shares` it refuses each stream. */
export function openQuotas(
  parts: ServiceParts,
  decisions: RateLimitService,
  shares: QuotaShares | undefined,
): OpenQuotas {
  const { settings, logger, clock, stats } = parts;
  const log = new ThrottledLog(logger, { clock, intervalMs: LOG_MS });
  const counts = { ...NO_COUNTS };
  const usage = usageSink(parts, decisions, { counts, log });
  const hub = shares === undefined ? undefined : new QuotaHub({
    clock,
    rules: decisions.rules ?? NO_RULES,
    shares: watchedShares(shares, (error) => {
      counts.exchangesFailed++;
      log.warning("exchange", "Cannot share quotas with other instances", { error });
    }),
    maxStreams: settings.QUOTA_MAX_STREAMS,
    maxBucketsPerStream: settings.QUOTA_MAX_BUCKETS_PER_STREAM,
    maxBuckets: settings.QUOTA_MAX_BUCKETS,
    overflow: settings.QUOTA_OVERFLOW,
    shadowMode: settings.SHADOW_MODE,
    onCacheFailure: settings.CACHE_ON_FAILURE,
    usage,
  });
  const stopRules = decisions.onRules((rules: Rules) => void hub?.setRules(rules));
  stats.addMetrics(QUOTA_METRICS, {
    counters: {
      streams_refused: () => counts.refused,
      reports: () => counts.reports,
      reports_skipped: () => counts.skipped,
      assignments: () => counts.assignments,
      bad_buckets: () => counts.bad,
      surplus_buckets: () => counts.surplus,
      impossible_buckets: () => counts.impossible,
      exchanges_failed: () => counts.exchangesFailed,
    },
    gauges: { streams: () => hub?.counts.streams ?? 0, buckets: () => hub?.counts.buckets ?? 0 },
  });
  const unavailable = quotasRefused(settings.BACKEND_TYPE) ?? "";
  const service = createQuotaGrpcService({
    streams: hub ?? { unavailable },
    onRefused: (reason) => {
      counts.refused++;
      log.warning("refused", "A stream of quotas was refused", { reason });
    },
    onReport: () => void counts.reports++,
    onAssignment: () => void counts.assignments++,
    onMalformed: () => void stats.service.serviceError++,
    onSkipped: () => {
      counts.skipped++;
      log.warning("skipped", "A report of quotas was skipped: too many of its stream are waiting");
    },
  });
  const close = () => {
    stopRules();
    hub?.close();
  };
  return { service, hub, close };
}

/** The shares, with a call for each exchange that fails. */
function watchedShares(shares: QuotaShares, failed: (error: unknown) => void): QuotaShares {
  return {
    exchange: (need) => {
      const grant = shares.exchange(need);
      if (!("then" in grant)) return grant;
      return grant.catch((error: unknown) => {
        failed(error);
        throw error;
      });
    },
    leave: (key, isPerSecond) => shares.leave(key, isPerSecond),
  };
}

/** Counts reported requests as decided ones. */
function usageSink(
  { stats, limitEvents, clock }: ServiceParts,
  decisions: RateLimitService,
  { counts, log }: { readonly counts: Record<Refusal, number>; readonly log: ThrottledLog },
): QuotaUsageSink {
  return {
    used: ({ match, domain, leased }, allowed, denied, shadow) => {
      if (match === undefined) return;
      recordReported({ ...match, domain, key: leased.quota.key, allowed, denied, shadow }, {
        stats,
        tally: decisions.tally,
        counts: decisions.ruleCounts,
        limitEvents,
        now: clock.now(),
      });
    },
    refused: (reason, { domain, name }, bucket) => {
      counts[reason]++;
      log.warning(reason, REFUSALS[reason], {
        domain: shownText(domain),
        client: name === undefined ? undefined : shownText(name),
        rule: bucket?.match?.limit.rule?.fullKey,
      });
    },
  };
}

type Refusal = Parameters<QuotaUsageSink["refused"]>[0];

const REFUSALS: Readonly<Record<Refusal, string>> = {
  bad: "A bucket of a quota was skipped: it needs 1 to 8 pairs with keys, and an id of at most 1024 bytes",
  surplus: "There are too many buckets of quotas; QUOTA_OVERFLOW decides those above the maximum",
  impossible: "A rule with the algorithm concurrency cannot be a quota; its on_cache_failure decides",
};
