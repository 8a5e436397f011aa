import { type Clock, systemClock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { Health } from "../base/health.ts";
import type { Settings } from "../settings/table.ts";
import { StatsStore } from "../stats/store.ts";

/** What every part of a service works with. */
export interface ServiceParts {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly health: Health;
  readonly stats: StatsStore;
}

/** The parts that a caller may provide. */
export interface PartsOptions
  extends Pick<ServiceParts, "logger">, Partial<Omit<ServiceParts, "settings" | "logger">> {}

/** The parts of a service that is not open yet. */
export function makeParts(settings: Settings, options: PartsOptions): ServiceParts {
  const { logger, clock = systemClock, random = Math.random } = options;
  const { health = new Health(), stats = new StatsStore(settings.STATS_MAX_KEYS) } = options;
  health.set("sigterm", true);
  health.set("start", false, "the ports are not open yet");
  return {
    settings: withInstance(settings),
    logger,
    clock,
    random,
    health,
    stats,
  };
}

/** All threads, and both spans and metrics, are of one instance. */
function withInstance(settings: Settings): Settings {
  const { TRACING_SERVICE_INSTANCE_ID: id = crypto.randomUUID() } = settings;
  return { ...settings, TRACING_SERVICE_INSTANCE_ID: id };
}
