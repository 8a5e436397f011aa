import { systemClock } from "../base/clock.ts";
import type { RulesProvider } from "../config/provider.ts";
import { type LastLoad, startRules } from "../config/rules_loader.ts";
import { createWorkerFileProvider } from "../config/worker_file_provider.ts";
import { problemText } from "../base/problem.ts";
import type { Rules } from "../ratelimit/rules.ts";
import type { RateLimitService } from "../ratelimit/service.ts";
import type { ServiceParts } from "./parts.ts";

/** How loading went. */
export interface RulesStatus {
  /** When the rules in force came, in milliseconds since the epoch; absent before the first. */
  readonly loadedAt: number | undefined;
  /** Why the last load failed; absent where it did not. */
  readonly error: string | undefined;
}

/** Rules that are loaded and kept up to date. */
export interface OpenRules {
  /** Settles when the first good configuration is in. */
  readonly firstRules: Promise<void>;
  /** What the configuration server calls the rules in force; empty for files, and before the first. */
  readonly version: () => string;
  readonly status: () => RulesStatus;
  /** Loads again, whether something changed or not. */
  readonly reload: () => void;
  /** Every good configuration goes to this service, beginning with one that is in. */
  decideBy(service: Pick<RateLimitService, "setRules">): void;
  close(): Promise<void>;
}

/** Starts loading the rules from where the settings say, before there is a service that decides by them. */
export async function openRules(parts: ServiceParts): Promise<OpenRules> {
  const { settings, logger, clock, health, stats } = parts;
  const provider = settings.CONFIG_TYPE === "GRPC_XDS_SOTW" ? await xdsProvider(parts) : fileProvider(parts);
  let current = "";
  let inForce: Rules | undefined;
  let decider: Pick<RateLimitService, "setRules"> | undefined;
  let loadedAt: number | undefined;
  const loader = startRules({
    provider,
    mergeDomains: settings.MERGE_DOMAIN_CONFIG,
    onRules(rules, version) {
      inForce = rules;
      decider?.setRules(rules);
      current = version;
      loadedAt = clock.now();
    },
    counters: {
      loadSucceeded: () => void stats.service.configLoadSuccess++,
      loadFailed: () => void stats.service.configLoadError++,
    },
    health: settings.HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED ? health : undefined,
    logger,
    clock,
  });
  return {
    firstRules: loader.firstRules,
    version: () => current,
    status: () => ({ loadedAt, error: errorOf(loader.lastLoad()) }),
    reload: () => provider.reload(),
    decideBy(service) {
      decider = service;
      if (inForce !== undefined) service.setRules(inForce);
    },
    close: () => loader.close(),
  };
}

/** The first problems of a load that failed, a line each. */
function errorOf(load: LastLoad | undefined): string | undefined {
  if (load === undefined || load.ok) return undefined;
  const errors = load.problems.filter(({ severity }) => severity === "error").map(problemText);
  const more = errors.length - MAX_SHOWN;
  return [...errors.slice(0, MAX_SHOWN), ...(more > 0 ? [`and ${more} more`] : [])].join("\n") || UNKNOWN;
}

const MAX_SHOWN = 10;
const UNKNOWN = "the configuration cannot be read";

function fileProvider({ settings, logger }: ServiceParts): RulesProvider {
  return createWorkerFileProvider({
    root: settings.RUNTIME_ROOT,
    subdirectory: settings.RUNTIME_SUBDIRECTORY,
    appDirectory: settings.RUNTIME_APPDIRECTORY,
    ignoreDotFiles: settings.RUNTIME_IGNOREDOTFILES,
    watchRoot: settings.RUNTIME_WATCH_ROOT,
    mergeDomains: settings.MERGE_DOMAIN_CONFIG,
    // A worker lives in the time of the machine, whatever the time of the decisions is.
    clock: systemClock,
    logger,
  });
}

async function xdsProvider({ settings, logger, clock, random }: ServiceParts): Promise<RulesProvider> {
  // A package is loaded only by who uses it.
  const { createXdsProvider } = await import("../config/xds_provider.ts");
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
