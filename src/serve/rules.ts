import { join } from "node:path";
import { systemClock } from "../base/clock.ts";
import type { RulesProvider, RuleTexts } from "../config/provider.ts";
import { type AcceptedRules, healthErrors, type LoadResult, startRules } from "../config/rules_loader.ts";
import { createWorkerFileProvider } from "../config/file_provider_supervisor.ts";
import type { EarlyRuleWorker } from "../config/rule_worker.ts";
import {
  eventsUnsent,
  fixedWindowsOnly,
  oneSourcePerDomain,
  separateWindows,
} from "../settings/rule_support.ts";
import { errorTexts } from "../base/problem.ts";
import type { Rules } from "../ratelimit/rules/rules.ts";
import type { Settings } from "../settings/table.ts";
import { OPENING, type ServiceParts } from "./parts.ts";

/** Applies rules; a promise settles once they are in force everywhere. */
export type ApplyRules = (rules: Rules, texts: RuleTexts) => void | Promise<void>;

/** The state of loading. */
export interface RulesStatus {
  /** When the rules were loaded, in milliseconds since the epoch. */
  readonly loadedAt: number | undefined;
  /** Why the last load failed, if it did. */
  readonly error: string | undefined;
  /** The newest first. */
  readonly loads: readonly LoadResult[];
}

/** Rules that are loaded and kept up to date. */
export interface OpenRules {
  /** Settles when the first good configuration is loaded. */
  readonly firstRules: Promise<void>;
  /** The version of the configuration server; empty for files, and before the first. */
  readonly version: () => string;
  readonly status: () => RulesStatus;
  /** Reloads, whether something changed or not. */
  readonly reload: () => void;
  /** Applies every good configuration by this function; settles once the loaded one, if there is one, is in force. */
  decideBy(apply: ApplyRules): Promise<void>;
  close(): Promise<void>;
}

/** Starts loading the rules, before there is a service that decides by them. */
export async function openRules(parts: ServiceParts, worker: EarlyRuleWorker): Promise<OpenRules> {
  const { settings, logger, clock, health, stats } = parts;
  let current = "";
  let inForce: AcceptedRules | undefined;
  const isAwaited = !settings.FORCE_START_WITHOUT_INITIAL_CONFIG;
  /** Reports what the ports are not open for. */
  const waitsFor = (what: string) => {
    if (isAwaited && inForce === undefined) health.set("start", false, `waiting for ${what}`);
  };
  const provider = settings.CONFIG_TYPE === "GRPC_XDS_SOTW"
    ? await xdsProvider(parts, waitsFor)
    : fileProvider(parts, worker);
  let apply: ApplyRules | undefined;
  let loadedAt: number | undefined;
  const loader = startRules({
    provider,
    oneSourcePerDomain: oneSourcePerDomain(settings.MERGE_DOMAIN_CONFIG),
    calendarMonths: settings.USE_CALENDAR_MONTH_RATE_LIMIT,
    keepsTexts: settings.WORKERS > 1,
    async onRules(accepted) {
      if (inForce === undefined && isAwaited) health.set("start", false, OPENING);
      inForce = accepted;
      await apply?.(accepted.rules, accepted.texts);
      current = accepted.version;
      loadedAt = clock.now();
    },
    counters: {
      loadSucceeded: () => void stats.service.configLoadSuccess++,
      loadFailed: () => void stats.service.configLoadError++,
    },
    onConcluded(end) {
      if (end.rules === undefined && !end.hasRules) {
        waitsFor(`valid rules: ${healthErrors(end.problems).join("; ")}`);
      }
      parts.events?.reportRules(sourceOf(settings), end);
    },
    health,
    requiresRules: settings.HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED,
    logger,
    clock,
  });
  waitsFor(FIRST_RULES);
  return {
    firstRules: loader.firstRules,
    version: () => current,
    status: () => {
      const loads = loader.loads();
      const [last] = loads;
      const error = last?.ok === false ? errorTexts(last.problems, MAX_SHOWN).join("\n") : undefined;
      return { loadedAt, loads, error };
    },
    reload: () => provider.reload(),
    async decideBy(given) {
      apply = given;
      if (inForce !== undefined) await apply(inForce.rules, inForce.texts);
    },
    close: () => loader.close(),
  };
}

/** The source of the rules. */
function sourceOf(settings: Settings): string {
  if (settings.CONFIG_TYPE === "GRPC_XDS_SOTW") return settings.CONFIG_GRPC_XDS_SERVER_URL;
  return join(settings.RUNTIME_ROOT, settings.RUNTIME_SUBDIRECTORY, settings.RUNTIME_APPDIRECTORY);
}

/** Errors that the status shows. */
const MAX_SHOWN = 10;

function fileProvider({ settings, logger }: ServiceParts, worker: EarlyRuleWorker): RulesProvider {
  return createWorkerFileProvider({
    root: settings.RUNTIME_ROOT,
    subdirectory: settings.RUNTIME_SUBDIRECTORY,
    appDirectory: settings.RUNTIME_APPDIRECTORY,
    ignoreDotFiles: settings.RUNTIME_IGNOREDOTFILES,
    watchRoot: settings.RUNTIME_WATCH_ROOT,
    oneSourcePerDomain: oneSourcePerDomain(settings.MERGE_DOMAIN_CONFIG),
    fixedWindowsOnly: fixedWindowsOnly(settings.BACKEND_TYPE),
    separateWindows: separateWindows(settings),
    eventsUnsent: eventsUnsent(settings.WEBHOOK_STORE),
    calendarMonths: settings.USE_CALENDAR_MONTH_RATE_LIMIT,
    // The worker uses the clock of the machine, whatever the clock of the decisions is.
    clock: systemClock,
    logger,
    keepsTexts: settings.WORKERS > 1,
    createWorker: () => worker.take(),
  });
}

async function xdsProvider(
  { settings, logger, clock, random, health }: ServiceParts,
  waitsFor: (what: string) => void,
): Promise<RulesProvider> {
  let isUnreachable = false;
  // Loads its package only where it is used.
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
    node: { id: settings.CONFIG_GRPC_XDS_NODE_ID, metadata: settings.CONFIG_GRPC_XDS_NODE_METADATA },
    waits: {
      retryMs: settings.CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL,
      initialMs: settings.XDS_CLIENT_BACKOFF_INITIAL_INTERVAL,
      maxMs: settings.XDS_CLIENT_BACKOFF_MAX_INTERVAL,
      spread: settings.XDS_CLIENT_BACKOFF_JITTER ? settings.XDS_CLIENT_BACKOFF_RANDOM_FACTOR : 0,
    },
    clock,
    random,
    logger,
    onReachable(reason) {
      const wasUnreachable = isUnreachable;
      isUnreachable = reason !== undefined;
      if (reason === undefined) {
        health.degrade(SERVER, []);
        if (wasUnreachable) waitsFor(FIRST_RULES);
        return;
      }
      health.degrade(SERVER, [`no connection: ${reason}; the rules stay as they are`]);
      waitsFor(`the configuration server: ${reason}`);
    },
  });
}

const FIRST_RULES = "the first rules";
/** The component of health that the configuration server is. */
const SERVER = "configuration_server";
/** The default of gRPC clients. */
const DEFAULT_MESSAGE_BYTES = 4 * 1024 * 1024;
