import { type Clock, systemClock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { Health } from "../base/health.ts";
import type { Settings } from "../settings/table.ts";
import type { LimitEventSink } from "../ratelimit/decision/limit_events.ts";
import { StatsStore } from "../stats/store.ts";
import type { OperationalEvents } from "./operational_events.ts";

/** Why the component `start` fails, unless more is known. */
export const OPENING = "the ports are not open yet";

/** The common surroundings of the parts of a service. */
export interface ServiceParts {
  readonly settings: Settings;
  /** Of Weir. */
  readonly version: string;
  readonly logger: Logger;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly health: Health;
  readonly stats: StatsStore;
  /** The paths of the files that secret settings were read from, by the settings; none when absent. */
  readonly secretFiles?: ReadonlyMap<string, string> | undefined;
  /** Receives what rules with events report; absent to discard it. */
  readonly limitEvents?: LimitEventSink | undefined;
  /** The operational events of the process; absent without a webhook store, and in threads that decide. */
  readonly events?: OperationalEvents | undefined;
}

/** The parts that a caller may provide. */
export interface PartsOptions {
  readonly logger: Logger;
  readonly version?: string | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: (() => number) | undefined;
  readonly health?: Health | undefined;
  readonly stats?: StatsStore | undefined;
  readonly secretFiles?: ReadonlyMap<string, string> | undefined;
}

/** The parts of a service that is not open yet. */
export function makeParts(settings: Settings, options: PartsOptions): ServiceParts {
  const { logger, version = "", clock = systemClock, random = Math.random, secretFiles } = options;
  const { health = new Health(), stats = new StatsStore(settings.STATS_MAX_KEYS) } = options;
  health.set("sigterm", true);
  health.set("start", false, OPENING);
  return {
    settings: withInstance(settings),
    version,
    logger,
    clock,
    random,
    health,
    stats,
    secretFiles,
  };
}

/** The same with operational events, which are loaded only for a webhook store. */
export async function makeReportingParts(settings: Settings, options: PartsOptions): Promise<ServiceParts> {
  const parts = makeParts(settings, options);
  if (settings.WEBHOOK_STORE === undefined) return parts;
  const { OperationalEvents } = await import("./operational_events.ts");
  const events = new OperationalEvents({
    ...parts,
    maxPerSecond: settings.RATE_LIMIT_EVENTS_MAX_PER_SECOND,
    hasThreads: settings.WORKERS > 1,
  });
  return { ...parts, limitEvents: events, events };
}

/** All threads, and both spans and metrics, are of one instance. */
function withInstance(settings: Settings): Settings {
  const { TRACING_SERVICE_INSTANCE_ID: id = crypto.randomUUID() } = settings;
  return { ...settings, TRACING_SERVICE_INSTANCE_ID: id };
}
