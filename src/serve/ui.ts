import type { Administrators } from "../http/administrators.ts";
import type { DebugRoute } from "../http/debug.ts";
import { uiLiveRoute, uiRoutes } from "../http/ui_routes.ts";
import type { OpenRules } from "./rules.ts";
import { limitText } from "../ratelimit/rules_text.ts";
import type { RateLimitService } from "../ratelimit/service.ts";
import type { ServiceParts } from "./parts.ts";
import { readPageFile } from "../ui/page_files.ts";
import { LiveFeed } from "../ui/live_feed.ts";
import { type ConfigurationState, type RuleStatisticsSource, Snapshots } from "../ui/snapshot.ts";

/** Options of the web page, in addition to the parts of the service. */
export interface OpenUiOptions {
  /** Of Weir. */
  readonly version: string;
  readonly service: Pick<RateLimitService, "rules" | "ruleCounts" | "tally">;
  readonly administrators: Administrators;
  /** How loading of the configuration goes; absent until it begins. */
  readonly loading: () => Pick<OpenRules, "version" | "status"> | undefined;
}

/** How many pages may watch concurrently. */
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

function openSnapshots(
  parts: ServiceParts,
  { version, service, loading, administrators }: OpenUiOptions,
): Snapshots {
  const { clock, settings, health, stats } = parts;
  const { tally } = service;
  return new Snapshots({
    clock,
    constants: {
      version,
      startedAt: Math.round(clock.now()),
      administration: !administrators.isEmpty,
      webhooks: settings.WEBHOOK_STORE !== undefined,
      debugToken: settings.DEBUG_TOKEN !== undefined,
    },
    health,
    decisions: () => tally,
    rules: () => shownRules(service),
    topOverLimited: (limit) => tally.overLimitKeys.top(limit, Math.floor(clock.now() / 1_000)),
    configuration: (): ConfigurationState => {
      const { loadedAt, error } = loading()?.status() ?? { loadedAt: undefined, error: undefined };
      return {
        loadedAt: loadedAt === undefined ? null : Math.round(loadedAt),
        version: loading()?.version() ?? "",
        loaded: stats.service.configLoadSuccess,
        failed: stats.service.configLoadError,
        error: error ?? null,
      };
    },
  });
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
        limit: limitText(limit),
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
