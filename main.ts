/**
 * Weir: a rate limit decision service. This file puts the parts together and is the only one that
 * knows them all.
 */
import config from "./deno.json" with { type: "json" };
import { type Clock, systemClock } from "./src/base/clock.ts";
import type { Logger } from "./src/base/log.ts";
import { aborted, settledWithin, unlessAborted } from "./src/base/wait.ts";
import { check } from "./src/cli/check.ts";
import { client } from "./src/cli/client.ts";
import { runCommand } from "./src/cli/commands.ts";
import { commandsText, help, serveUsage } from "./src/cli/help.ts";
import type { Output } from "./src/cli/output.ts";
import { checkRuntime } from "./src/cli/runtime_check.ts";
import { Health } from "./src/health.ts";
import { cacheKind, openCache } from "./src/open_cache.ts";
import type { HttpListener } from "./src/http/listen.ts";
import { openGrpc } from "./src/open_grpc.ts";
import { addressOf, openDebug, openHttp } from "./src/open_http.ts";
import { openPullMetrics } from "./src/open_pull_metrics.ts";
import { type OpenRules, openRules } from "./src/open_rules.ts";
import { openService } from "./src/open_service.ts";
import { openTracing } from "./src/open_tracing.ts";
import { openWebhooks } from "./src/open_webhooks.ts";
import type { ServiceParts } from "./src/service_parts.ts";
import {
  type Environment,
  readSettings,
  type Settings,
  SettingsError,
  type SettingsReading,
} from "./src/settings/read_settings.ts";
import { startSinks } from "./src/stats/sinks.ts";
import { StatsStore } from "./src/stats/store.ts";
import { createLogger, standardOutput } from "./src/telemetry/logger.ts";
import { ProcessFigures } from "./src/telemetry/process_figures.ts";
import { guardProcess } from "./src/telemetry/process_guard.ts";
import type { WebhookLine } from "./src/webhooks/webhook_thread.ts";

/** Longest time that running calls get to end when the service stops. */
const DRAIN_MS = 10_000;
/** How long the listeners wait for a cache that is about to connect, so that first calls find it. */
const CACHE_HEAD_START_MS = 250;
/** The same for the store of the webhook service, which may have to be made. */
const WEBHOOKS_HEAD_START_MS = 5_000;

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
  /** Starts the worker of the webhook service; our own when absent. */
  readonly startWebhookWorker?: () => WebhookLine;
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
    health.set("start", false, "the ports are not open yet");
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
    const tracedCache = tracing.cache(cache.cache, cacheKind(settings));
    const opened = openService(parts, { ...cache, cache: tracedCache });
    const { service, counters } = opened;
    const pull = await openPullMetrics({ ...parts, rules: () => service.rules });
    own(pull, "metrics", parts, stack);
    const decide = tracing.decide((request, caller) => service.shouldRateLimit(request, caller));
    const webhooks = openWebhooks(parts, {
      version: config.version,
      tracing,
      decide,
      counters,
      startWorker: options.startWebhookWorker,
    });
    stack.defer(() => webhooks.close(0));
    own(webhooks.listener, "administration", parts, stack);
    let rules: OpenRules | undefined;
    const debug = openDebug(parts, opened, () => rules?.version() ?? "", webhooks.debugRoutes);
    own(debug, "debug", parts, stack);
    const loading = rules = await openRules(parts, service);
    stack.defer(() => loading.close());
    options.onReload?.(loading.reload);
    if (!settings.FORCE_START_WITHOUT_INITIAL_CONFIG) await unlessAborted(loading.firstRules, end);
    await settledWithin(cache.ready, CACHE_HEAD_START_MS, clock);
    await settledWithin(webhooks.ready, WEBHOOKS_HEAD_START_MS, clock);
    end.throwIfAborted();
    const http = await openHttp(parts, tracing, decide, webhooks.routes);
    stack.defer(() => http.close(DRAIN_MS));
    // The last to open: its unix socket takes the place of one that serves, so nothing may fail after it.
    const grpc = await openGrpc(parts, tracing, decide);
    stack.defer(() => grpc.close(DRAIN_MS));
    stats.addGauge("ratelimit.process.grpc_connections", () => grpc.connections);
    logger.warning(`Listening for gRPC on '${grpc.address}'`);
    logger.warning(`Listening for HTTP on '${addressOf(http)}'`);
    health.set("start", true);
    const stopped = stopOn(end, parts, () => http.drain(), async () => {
      await Promise.all([grpc.close(DRAIN_MS), http.close(DRAIN_MS), webhooks.close(DRAIN_MS)]);
      await stack.disposeAsync();
      gaveUp.signal.throwIfAborted();
    });
    return { addresses: { grpc: grpc.address, http: addressOf(http), debug: addressOf(debug) }, stopped };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

/** Says where a port is, and closes it at the end; nothing to do for one that is not asked for. */
function own(
  listener: HttpListener | undefined,
  what: string,
  { logger }: ServiceParts,
  stack: AsyncDisposableStack,
): void {
  if (listener === undefined) return;
  stack.defer(() => listener.close(0));
  logger.warning(`Listening for ${what} on '${addressOf(listener)}'`);
}

/** Health turns bad at once; after the delay that load balancers need, everything ends in its order. */
async function stopOn(
  signal: AbortSignal,
  parts: ServiceParts,
  drain: () => void,
  stop: () => Promise<void>,
): Promise<void> {
  await aborted(signal);
  parts.health.set("sigterm", false, "the service is stopping");
  drain();
  parts.logger.warning("Stopping");
  const { promise, resolve } = Promise.withResolvers<void>();
  parts.clock.after(parts.settings.SHUTDOWN_DELAY, resolve);
  await promise;
  await stop();
  parts.logger.warning("Stopped");
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
    case "explain":
    case "simulate":
    case "endpoints":
    case "triggers":
    case "event-keys":
    case "events":
    case "deliveries":
    case "executions":
    case "audit":
    case "webhooks":
    case "store":
      return await runCommand(args, { environment, output });
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
