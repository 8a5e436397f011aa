import { systemClock } from "./base/clock.ts";
import type { RulesProvider } from "./config/provider.ts";
import { startRules } from "./config/rules_loader.ts";
import { createWorkerFileProvider } from "./config/worker_file_provider.ts";
import type { RateLimitService } from "./ratelimit/service.ts";
import type { ServiceParts } from "./service_parts.ts";

/** Rules that are loaded and kept up to date. */
export interface OpenRules {
  /** Settles when the first good configuration is in. */
  readonly firstRules: Promise<void>;
  /** What the configuration server calls the rules in force; empty for files, and before the first. */
  readonly version: () => string;
  /** Loads again, whether something changed or not. */
  readonly reload: () => void;
  close(): Promise<void>;
}

/** Starts loading the rules from where the settings say; every good configuration goes to the service. */
export async function openRules(
  parts: ServiceParts,
  service: Pick<RateLimitService, "setRules">,
): Promise<OpenRules> {
  const { settings, logger, clock, health, stats } = parts;
  const provider = settings.CONFIG_TYPE === "GRPC_XDS_SOTW" ? await xdsProvider(parts) : fileProvider(parts);
  let current = "";
  const { firstRules, close } = startRules({
    provider,
    mergeDomains: settings.MERGE_DOMAIN_CONFIG,
    onRules(rules, version) {
      service.setRules(rules);
      current = version;
    },
    counters: {
      loadSucceeded: () => void stats.service.configLoadSuccess++,
      loadFailed: () => void stats.service.configLoadError++,
    },
    health: settings.HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED ? health : undefined,
    logger,
    clock,
  });
  return { firstRules, version: () => current, reload: () => provider.reload(), close };
}

function fileProvider({ settings, logger }: ServiceParts): RulesProvider {
  return createWorkerFileProvider({
    root: settings.RUNTIME_ROOT,
    subdirectory: settings.RUNTIME_SUBDIRECTORY,
    appDirectory: settings.RUNTIME_APPDIRECTORY,
    ignoreDotFiles: settings.RUNTIME_IGNOREDOTFILES,
    watchRoot: settings.RUNTIME_WATCH_ROOT,
    // A worker lives in the time of the machine, whatever the time of the decisions is.
    clock: systemClock,
    logger,
  });
}

async function xdsProvider({ settings, logger, clock, random }: ServiceParts): Promise<RulesProvider> {
  // A package is loaded only by who uses it.
  const { createXdsProvider } = await import("./config/xds_provider.ts");
  const tls = {
    cert: settings.CONFIG_GRPC_XDS_CLIENT_TLS_CERT,
    key: settings.CONFIG_GRPC_XDS_CLIENT_TLS_KEY,
    ca: settings.CONFIG_GRPC_XDS_SERVER_TLS_CACERT,
    san: settings.CONFIG_GRPC_XDS_SERVER_TLS_SAN,
  };
  return createXdsProvider({
    target: {
      url: settings.CONFIG_GRPC_XDS_SERVER_URL,
      headers: settings.CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS,
      tls: settings.CONFIG_GRPC_XDS_SERVER_USE_TLS ? tls : undefined,
      maxMessageBytes: settings.XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES ?? DEFAULT_MESSAGE_BYTES,
    },
    node: {
      id: settings.CONFIG_GRPC_XDS_NODE_ID,
      metadata: settings.CONFIG_GRPC_XDS_NODE_METADATA,
    },
    waits: {
      retryMs: settings.CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL,
      initialMs: settings.XDS_CLIENT_BACKOFF_INITIAL_INTERVAL,
      maxMs: settings.XDS_CLIENT_BACKOFF_MAX_INTERVAL,
      spread: settings.XDS_CLIENT_BACKOFF_JITTER ? settings.XDS_CLIENT_BACKOFF_RANDOM_FACTOR : 0,
    },
    clock,
    random,
    logger,
  });
}

/** What clients of gRPC take without being told. */
const DEFAULT_MESSAGE_BYTES = 4 * 1024 * 1024;
