import type { Administrators } from "../http/routes/administrators.ts";
import type { DebugRoute } from "../http/routes/debug.ts";
import { uiLiveRoute, uiRoutes } from "../http/routes/ui_routes.ts";
import type { OpenRules, RulesStatus } from "./rules.ts";
import { problemText } from "../base/problem.ts";
import type { RateLimit } from "../ratelimit/rules/rules.ts";
import { windowsText } from "../ratelimit/rules/rules_text.ts";
import type { RateLimitService } from "../ratelimit/decision/service.ts";
import type { StatsStore } from "../stats/store.ts";
import { BUCKET_BOUNDS_MS } from "../stats/timer.ts";
import type { ServiceParts } from "./parts.ts";
import { readPageFile } from "../ui/page_files.ts";
import { LiveFeed } from "../ui/live_feed.ts";
import { MinuteHistory } from "../ui/minute_history.ts";
import {
  type ConfigurationLoad,
  type ConfigurationState,
  type RuleStatisticsSource,
  Snapshots,
} from "../ui/snapshot.ts";

/** Options of the web page, in addition to the parts of the service. */
export interface OpenUiOptions {
  readonly service: Pick<RateLimitService, "rules" | "ruleCounts" | "tally">;
  readonly administrators: Administrators;
  /** The state of loading the configuration; absent until it begins. */
  readonly loading: () => Pick<OpenRules, "version" | "status"> | undefined;
  readonly history: MinuteHistory;
}

/** Most pages that watch concurrently. */
const MAX_STREAMS = 16;

/** The paths of the web page on the debug port. */
export function openUi(parts: ServiceParts, options: OpenUiOptions): DebugRoute[] {
  const { clock, settings } = parts;
  const snapshots = openSnapshots(parts, options);
  const feed = new LiveFeed({ clock, snapshot: () => snapshots.make(), maxStreams: MAX_STREAMS });
  return [
    ...uiRoutes(readPageFile),
    uiLiveRoute({ feed, debugToken: settings.DEBUG_TOKEN, administrators: options.administrators }),
  ];
}

/** The attempts of deliveries by result; an interrupted one is no failure. */
const ATTEMPTS = /\.webhooks\.attempts\.(?:(acknowledged)|(?!interrupted$).*)$/;

/** The history of the decisions of all threads, and of the attempts of deliveries. */
export function openHistory(
  { clock, stats }: Pick<ServiceParts, "clock" | "stats">,
  { tally }: Pick<RateLimitService, "tally">,
): MinuteHistory {
  const read = () => {
    const { total: decisions, overLimit } = tally;
    const counts = { decisions, overLimit, delivered: 0, failedAttempts: 0 };
    for (const { fullName } of stats.declarations()) {
      const [match, acknowledged] = ATTEMPTS.exec(fullName) ?? [];
      if (match === undefined) continue;
      const name = acknowledged === undefined ? "failedAttempts" : "delivered";
      counts[name] += stats.reader("counter", fullName)?.() ?? 0;
    }
    return counts;
  };
  return new MinuteHistory({ clock, read });
}

function openSnapshots(
  parts: ServiceParts,
  { service, loading, administrators, history }: OpenUiOptions,
): Snapshots {
  const { clock, settings, version, health, stats } = parts;
  const { tally } = service;
  return new Snapshots({
    clock,
    constants: {
      version,
      startedAt: Math.round(clock.now()),
      administration: administrators.isEnabled,
      webhooks: settings.WEBHOOK_STORE !== undefined,
      debugToken: settings.DEBUG_TOKEN !== undefined,
      cache: settings.BACKEND_TYPE,
      boundsMs: BUCKET_BOUNDS_MS,
    },
    health,
    decisions: () => tally,
    history: () => history.make(),
    rules: () => shownRules(service),
    topOverLimited: (limit) => tally.overLimitKeys.top(limit, Math.floor(clock.now() / 1_000)),
    configuration: (): ConfigurationState => {
      const { loadedAt, error, loads } = loading()?.status() ?? NOT_LOADED;
      return {
        loadedAt: loadedAt === undefined ? null : Math.round(loadedAt),
        version: loading()?.version() ?? "",
        loaded: stats.service.configLoadSuccess,
        failed: stats.service.configLoadError,
        error: error ?? null,
        loads: loads.map(shownLoad),
      };
    },
    metrics: () => metricsOf(stats),
    timers: () => timersOf(stats),
  });
}

const NOT_LOADED: RulesStatus = { loadedAt: undefined, error: undefined, loads: [] };

function shownLoad({ problems, at, ...load }: RulesStatus["loads"][number]): ConfigurationLoad {
  // Warnings do not reject a load.
  const shown = load.ok ? problems : problems.filter(({ severity }) => severity === "error");
  return { ...load, at: Math.round(at), problems: shown.map(problemText), problemCount: shown.length };
}

/** Those of rules are with the rules. */
function metricsOf(stats: StatsStore): Record<string, number> {
  const metrics: Record<string, number> = {};
  for (const { fullName, declaration: { kind } } of stats.declarations()) {
    const read = kind === "timer" ? undefined : stats.reader(kind, fullName);
    if (read !== undefined) metrics[fullName] = read();
  }
  return metrics;
}

function timersOf(stats: StatsStore): Record<string, readonly number[]> {
  const timers = [...stats.timers()].map(([name, { buckets }]) => [name, [...buckets]] as const);
  return Object.fromEntries(timers);
}

function positionOf({ rule }: RateLimit): string {
  if (rule === undefined) return "";
  return rule.line === 0 ? rule.file : `${rule.file}:${rule.line}`;
}

function shownRules({ rules, ruleCounts }: OpenUiOptions["service"]): RuleStatisticsSource {
  const limits = rules?.limits ?? [];
  return {
    count: limits.length,
    hits: (index) => ruleCounts?.at(index)?.totalHits ?? 0,
    at(index) {
      const limit = limits[index];
      if (limit === undefined) return undefined;
      const count = ruleCounts?.at(index);
      return {
        name: limit.rule?.fullKey ?? "",
        domain: limit.rule?.domain ?? "",
        entries: limit.rule?.path.map(({ key, value }) => ({ key, value })) ?? [],
        limit: windowsText(limit),
        at: positionOf(limit),
        shadowMode: limit.shadowMode,
        quotaMode: limit.quotaMode,
        hits: count?.totalHits ?? 0,
        overLimit: count?.overLimit ?? 0,
        nearLimit: count?.nearLimit ?? 0,
        withinLimit: count?.withinLimit ?? 0,
      };
    },
  };
}
