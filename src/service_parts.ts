import type { Clock } from "./base/clock.ts";
import type { Logger } from "./base/log.ts";
import type { Health } from "./health.ts";
import type { Settings } from "./settings/table.ts";
import type { StatsStore } from "./stats/store.ts";

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
