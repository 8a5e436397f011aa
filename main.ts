/**
 * Weir: a rate limit decision service. This file puts the parts together and is the only one that
 * knows them all.
 */
import config from "./deno.json" with { type: "json" };
import { type Clock, systemClock } from "./src/base/clock.ts";
import { aborted, settledWithin, unlessAborted } from "./src/base/wait.ts";
import { OverLimitCache } from "./src/cache/local_cache.ts";
import { check } from "./src/cli/check.ts";
import { client } from "./src/cli/client.ts";
import { commandsText, help, serveUsage } from "./src/cli/help.ts";
import type { Output } from "./src/cli/output.ts";
import { checkRuntime } from "./src/cli/runtime_check.ts";
import { startRules } from "./src/config/rules_loader.ts";
import { createWorkerFileProvider } from "./src/config/worker_file_provider.ts";
import type { ListenTarget } from "./src/grpc/listener.ts";
import type { GrpcEngine } from "./src/grpc/engine.ts";
import { type GrpcService, withCallFigures } from "./src/grpc/grpc_service.ts";
import { createHealthService } from "./src/grpc/health_service.ts";
import { createRateLimitGrpcService, type Decide } from "./src/grpc/rate_limit_service.ts";
import { startNative } from "./src/grpc/native/native_engine.ts";
import { createReflectionServices } from "./src/grpc/reflection_service.ts";
import { Health } from "./src/health.ts";
import { createDebugHandler } from "./src/http/debug.ts";
import { healthRoutes } from "./src/http/healthcheck.ts";
import { type HttpListener, listenHttp } from "./src/http/listen.ts";
import { rateLimitRoute } from "./src/http/rate_limit_route.ts";
import { createRouter } from "./src/http/router.ts";
import { cacheKind, type OpenCache, openCache } from "./src/open_cache.ts";
import { openPullMetrics } from "./src/open_pull_metrics.ts";
import { openTracing } from "./src/open_tracing.ts";
import type { Policy } from "./src/ratelimit/policy.ts";
import { rulesText } from "./src/ratelimit/rules_text.ts";
import { RateLimitService } from "./src/ratelimit/service.ts";
import {
  type Environment,
  readSettings,
  type Settings,
  SettingsError,
  type SettingsReading,
} from "./src/settings/read_settings.ts";
import { serverCalls } from "./src/stats/server_calls.ts";
import { startSinks } from "./src/stats/sinks.ts";
import { StatsStore, statsText } from "./src/stats/store.ts";
import type { Logger } from "./src/base/log.ts";
import { createLogger, standardOutput } from "./src/telemetry/logger.ts";
import { ProcessFigures } from "./src/telemetry/process_figures.ts";
import { guardProcess } from "./src/telemetry/process_guard.ts";
import type { Tracing } from "./src/telemetry/tracing.ts";
import { ThrottledLog } from "./src/telemetry/throttled_log.ts";

/** Longest time that running calls get to end when the service stops. */
const DRAIN_MS = 10_000;
/** How long the listeners wait for a cache that is about to connect, so that first calls find it. */
const CACHE_HEAD_START_MS = 250;

/** Where a running service is to be found. */
export interface Addresses {
  /** `host:port`, or `unix:path`. */
  readonly grpc: string;
  readonly http: string;
  readonly debug: string;
}

/** A running service. */
export interface Running {
  readonly addresses: Addresses;
  /** Settles when the service has stopped, after its signal was aborted. */
  readonly stopped: Promise<void>;
}

/** What a service is started with beside its settings. */
export interface ServeOptions {
  readonly logger: Logger;
  readonly health?: Health;
  readonly stats?: StatsStore;
  readonly clock?: Clock;
  /** A number from 0 to below 1. */
  readonly random?: () => number;
  /** Calls the function it is given whenever the configuration is to be read again. */
  readonly onReload?: (reload: () => void) => void;
}

/**
 * Starts the service and settles when every port is open. Aborting the signal stops it, also while
 * it still waits for its first configuration; then this throws.
 */
export async function serve(
  settings: Settings,
  signal: AbortSignal,
  options: ServeOptions,
): Promise<Running> {
  const { logger, clock = systemClock, random = Math.random } = options;
  const stack = new AsyncDisposableStack();
  try {
    const health = options.health ?? new Health();
    health.set("sigterm", true);
    const stats = options.stats ?? new StatsStore(settings.STATS_MAX_KEYS);
    const figures = new ProcessFigures({ clock });
    stack.defer(() => figures.close());
    stats.addFigures("ratelimit.process", figures);
    const sinks = startSinks(settings, stats, { clock, random, logger, write: standardOutput.stdout });
    stack.defer(() => sinks.close());
    const parts = { settings, logger, clock, random, health, stats };
    const gaveUp = new AbortController();
    const end = AbortSignal.any([signal, gaveUp.signal]);
    const onGivenUp = (text: string) => gaveUp.abort(new Error(text));
    const tracing = await openTracing({ ...parts, version: config.version });
    stack.defer(() => tracing.close());
    const cache = await openCache({ ...parts, onGivenUp });
    stack.defer(() => cache.close());
    const service = openService(parts, { ...cache, cache: tracing.cache(cache.cache, cacheKind(settings)) });
    const pull = await openPullMetrics({ ...parts, rules: () => service.rules });
    if (pull !== undefined) {
      stack.defer(() => pull.close(0));
      logger.warning(`Listening for metrics on '${addressOf(pull)}'`);
    }
    const debug = openDebug(parts, service);
    stack.defer(() => debug.close(0));
    logger.warning(`Listening for debug on '${addressOf(debug)}'`);
    const rules = openRules(parts, service);
    stack.defer(() => rules.close());
    options.onReload?.(rules.reload);
    if (!settings.FORCE_START_WITHOUT_INITIAL_CONFIG) await unlessAborted(rules.firstRules, end);
    await settledWithin(cache.ready, CACHE_HEAD_START_MS, clock);
    end.throwIfAborted();
    const grpc = await openGrpc(parts, service, tracing);
    stack.defer(() => grpc.close(DRAIN_MS));
    stats.addGauge("ratelimit.process.grpc_connections", () => grpc.connections);
    logger.warning(`Listening for gRPC on '${grpc.address}'`);
    const http = openHttp(parts, service, tracing);
    logger.warning(`Listening for HTTP on '${addressOf(http)}'`);
    const stopped = stopOn(end, parts, async () => {
      await Promise.all([grpc.close(DRAIN_MS), http.close(DRAIN_MS)]);
      await stack.disposeAsync();
      gaveUp.signal.throwIfAborted();
    });
    return { addresses: { grpc: grpc.address, http: addressOf(http), debug: addressOf(debug) }, stopped };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

/** What the parts of the service are made with. */
interface Parts {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: () => number;
  readonly health: Health;
  readonly stats: StatsStore;
}

/** How decisions are made, as the settings say. */
export function policyOf(settings: Settings): Policy {
  return {
    cacheKeyPrefix: settings.CACHE_KEY_PREFIX,
    expirationJitterMaxSeconds: settings.EXPIRATION_JITTER_MAX_SECONDS,
    nearLimitRatio: settings.NEAR_LIMIT_RATIO,
    shadowMode: settings.SHADOW_MODE,
    quotaMode: settings.QUOTA_MODE,
    stopIncrementWhenOverLimit: settings.STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT,
    onCacheFailure: settings.CACHE_ON_FAILURE,
    responseHeaders: settings.LIMIT_RESPONSE_HEADERS_ENABLED
      ? {
        limit: settings.LIMIT_LIMIT_HEADER,
        remaining: settings.LIMIT_REMAINING_HEADER,
        reset: settings.LIMIT_RESET_HEADER,
      }
      : undefined,
    dynamicMetadata: settings.RESPONSE_DYNAMIC_METADATA,
  };
}

function openService(
  { settings, clock, random, stats }: Parts,
  { cache, fallback }: OpenCache,
): RateLimitService {
  const bytes = settings.LOCAL_CACHE_SIZE_IN_BYTES;
  const localCache = bytes > 0 ? new OverLimitCache(bytes) : undefined;
  if (localCache !== undefined) stats.addFigures("ratelimit.localcache", localCache.figures);
  const policy = policyOf(settings);
  return new RateLimitService({ cache, fallback, localCache, stats, policy, clock, random });
}

function openRules({ settings, logger, clock, health, stats }: Parts, service: RateLimitService): {
  firstRules: Promise<void>;
  reload: () => void;
  close(): Promise<void>;
} {
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

async function openGrpc(parts: Parts, service: RateLimitService, tracing: Tracing): Promise<GrpcEngine> {
  const { settings, logger, clock, random, health, stats } = parts;
  const refusals = new ThrottledLog(logger, { clock });
  const decisions = createRateLimitGrpcService(decideOf(service, tracing), {
    onRefused: ({ code, message, cause }) => {
      const isTold = cause instanceof Error && cause.message === message;
      refusals.warning(code, "gRPC call refused", { code, message, ...(isTold ? {} : { cause }) });
    },
  });
  const services: GrpcService[] = [tracing.grpcService(decisions), createHealthService(health)];
  services.push(...createReflectionServices(() => services));
  const target: ListenTarget = settings.GRPC_UDS === undefined
    ? { kind: "tcp", host: settings.GRPC_HOST, port: settings.GRPC_PORT }
    : { kind: "unix", path: settings.GRPC_UDS, mode: settings.GRPC_UDS_MODE };
  // A package is loaded only by who uses it.
  const start = settings.GRPC_ENGINE === "native"
    ? startNative
    : (await import("./src/grpc/grpc_js_engine.ts")).startGrpcJs;
  const figuresOf = serverCalls(stats);
  return await start({
    services: services.map((one) => withCallFigures(one, figuresOf)),
    target,
    maxConnectionAgeMs: settings.GRPC_MAX_CONNECTION_AGE,
    maxConnectionAgeGraceMs: settings.GRPC_MAX_CONNECTION_AGE_GRACE,
    logger,
    clock,
    random,
  });
}

/** The decision of the service, within a span of its own where calls are traced. */
function decideOf(service: RateLimitService, tracing: Tracing): Decide {
  return tracing.decide((request, caller) => service.shouldRateLimit(request, caller));
}

function openHttp(
  { settings, logger, clock, health }: Parts,
  service: RateLimitService,
  tracing: Tracing,
): HttpListener {
  const routeFor = (decide: Decide) => rateLimitRoute({ decide, clock });
  const route = tracing.route(routeFor, decideOf(service, tracing));
  const handler = createRouter([route, ...healthRoutes(health)], { logger, clock });
  return listenHttp(handler, { hostname: settings.HOST, port: settings.PORT, logger, clock });
}

function openDebug(
  { settings, logger, clock, health, stats }: Parts,
  service: RateLimitService,
): HttpListener {
  const handler = createDebugHandler({
    rlconfig: () => rulesText(service.rules),
    stats: () => statsText(stats),
    health,
    logger,
    clock,
  });
  return listenHttp(handler, { hostname: settings.DEBUG_HOST, port: settings.DEBUG_PORT, logger, clock });
}

/** Health turns bad at once; after the delay that load balancers need, everything ends in its order. */
async function stopOn(signal: AbortSignal, parts: Parts, stop: () => Promise<void>): Promise<void> {
  await aborted(signal);
  parts.health.set("sigterm", false, "the service is stopping");
  parts.logger.warning("Stopping");
  const { promise, resolve } = Promise.withResolvers<void>();
  parts.clock.after(parts.settings.SHUTDOWN_DELAY, resolve);
  await promise;
  await stop();
  parts.logger.warning("Stopped");
}

function addressOf({ hostname, port }: HttpListener): string {
  return hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}

/** What a command is run with in place of the process's own. */
export interface MainOptions {
  readonly environment?: Environment;
  /** Told of the service when every port is open. */
  readonly onReady?: (running: Running) => void;
}

/** Runs a command and answers its exit code. */
export async function main(args: readonly string[], options: MainOptions = {}): Promise<number> {
  const environment = options.environment ?? Deno.env.toObject();
  const [command = "serve", ...rest] = args;
  const output: Output = standardOutput;
  switch (command) {
    case "serve":
      return serveUsage(rest, output) ?? await runService(environment, options.onReady ?? (() => {}), output);
    case "client":
      return await client(rest, output);
    case "check":
      return await check(rest, output);
    case "version":
    case "-version":
    case "--version":
      output.stdout(`weir ${config.version} (deno ${Deno.version.deno})`);
      return 0;
    case "help":
    case "-h":
    case "-help":
    case "--help":
      return await help(rest, { version: config.version, output });
    default:
      output.stderr(`Cannot run command "${command}": it is unknown\n\n${commandsText(config.version)}`);
      return 2;
  }
}

async function runService(
  environment: Environment,
  onReady: (running: Running) => void,
  output: Output,
): Promise<number> {
  let reading: SettingsReading;
  try {
    reading = readSettings(environment);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    for (const problem of error.problems) output.stderr(problem);
    return 1;
  }
  const { settings, warnings } = reading;
  const logger = createLogger({ level: settings.LOG_LEVEL, format: settings.LOG_FORMAT, clock: systemClock });
  const verdict = checkRuntime(Deno.version.deno, settings.ALLOW_UNSAFE_DENO);
  if (verdict?.refuse === true) {
    output.stderr(verdict.text);
    return 1;
  }
  if (verdict !== undefined) logger.warning(verdict.text);
  for (const warning of warnings) logger.warning(warning);
  return await serveUntilSignal(settings, logger, onReady);
}

async function serveUntilSignal(
  settings: Settings,
  logger: Logger,
  onReady: (running: Running) => void,
): Promise<number> {
  const health = new Health();
  const stats = new StatsStore(settings.STATS_MAX_KEYS);
  const { errors } = guardProcess({
    logger,
    clock: systemClock,
    onUnexpected: () => health.set("process", false, "an unexpected error reached the process level"),
  });
  stats.addCounter("ratelimit.process.socket_errors", () => errors.socketErrors);
  stats.addCounter("ratelimit.process.unexpected_errors", () => errors.unexpectedErrors);
  const stop = new AbortController();
  const onSignal = () => {
    if (!stop.signal.aborted) return stop.abort();
    logger.warning("Ending at once: told a second time to stop");
    Deno.exit(1);
  };
  for (const name of ["SIGTERM", "SIGINT"] as const) Deno.addSignalListener(name, onSignal);
  let reload = () => {};
  if (Deno.build.os !== "windows") Deno.addSignalListener("SIGHUP", () => reload());
  try {
    const onReload = (given: () => void) => void (reload = given);
    const running = await serve(settings, stop.signal, { logger, health, stats, onReload });
    onReady(running);
    await running.stopped;
    return 0;
  } catch (error) {
    if (stop.signal.aborted) return 0;
    logger.error("Cannot start the service", { error });
    return 1;
  }
}

if (import.meta.main) Deno.exit(await main(Deno.args));
