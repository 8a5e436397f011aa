import { systemClock } from "./base/clock.ts";
import { startRules } from "./config/rules_loader.ts";
import { createWorkerFileProvider } from "./config/worker_file_provider.ts";
import type { RateLimitService } from "./ratelimit/service.ts";
import type { ServiceParts } from "./service_parts.ts";

/** Rules that are loaded and kept up to date. */
export interface OpenRules {
  /** Settles when the first good configuration is in. */
  readonly firstRules: Promise<void>;
  /** Loads again, whether something changed or not. */
  readonly reload: () => void;
  close(): Promise<void>;
}

/** Starts loading the rules from where the settings say; every good configuration goes to the service. */
export function openRules(
  { settings, logger, clock, health, stats }: ServiceParts,
  service: Pick<RateLimitService, "setRules">,
): OpenRules {
  const provider = createWorkerFileProvider({
    root: settings.RUNTIME_ROOT,
    subdirectory: settings.RUNTIME_SUBDIRECTORY,
    appDirectory: settings.RUNTIME_APPDIRECTORY,
    ignoreDotFiles: settings.RUNTIME_IGNOREDOTFILES,
    watchRoot: settings.RUNTIME_WATCH_ROOT,
    // A worker lives in the time of the machine, whatever the time of the decisions is.
    clock: systemClock,
    logger,
  });
  const { firstRules, close } = startRules({
    provider,
    mergeDomains: settings.MERGE_DOMAIN_CONFIG,
    onRules: (rules) => service.setRules(rules),
    counters: {
      loadSucceeded: () => void stats.service.configLoadSuccess++,
      loadFailed: () => void stats.service.configLoadError++,
    },
    health: settings.HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED ? health : undefined,
    logger,
    clock,
  });
  return { firstRules, reload: () => provider.reload(), close };
}
