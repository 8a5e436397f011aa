import { type Clock, systemClock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { Health } from "../base/health.ts";
import type { Settings } from "../settings/table.ts";
import { StatsStore } from "../stats/store.ts";

/** What every part of a service is made with. */
export interface ServiceParts {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly health: Health;
  readonly stats: StatsStore;
}

/** What a service may be started with in addition to its settings. */
export interface PartsOptions
  extends Pick<ServiceParts, "logger">, Partial<Omit<ServiceParts, "settings" | "logger">> {}

/** The parts as they are when nothing is open yet. */
export function makeParts(settings: Settings, options: PartsOptions): ServiceParts {
  const { logger, clock = systemClock, random = Math.random } = options;
  const { health = new Health(), stats = new StatsStore(settings.STATS_MAX_KEYS) } = options;
  health.set("sigterm", true);
  health.set("start", false, "the ports are not open yet");
  return { settings, logger, clock, random, health, stats };
}
