/**
 * Weir: a rate limit decision service. This file puts the parts together and is the only one that
 * knows them all.
 */
import config from "./deno.json" with { type: "json" };
import { type Clock, systemClock } from "./src/base/clock.ts";
import { LineWriter } from "./src/base/line_writer.ts";
import type { Logger } from "./src/base/log.ts";
import { captureConsole, standardOutput, standardSinks } from "./src/base/standard_streams.ts";
import { stopRequests } from "./src/base/stop_requests.ts";
import { aborted, settledWithin, unlessAborted } from "./src/base/wait.ts";
import type { Output } from "./src/cli/output.ts";
import { checkRuntime } from "./src/cli/runtime_check.ts";
import { Health } from "./src/health.ts";
import type { HttpListener } from "./src/http/listen.ts";
import { openRules } from "./src/open_rules.ts";
import { openTracing } from "./src/open_tracing.ts";
import type { OpenWebhooks, OpenWebhooksOptions } from "./src/open_webhooks.ts";
import type { ServiceParts } from "./src/service_parts.ts";
import {
  type Environment,
  readSettings,
  type Settings,
  SettingsError,
} from "./src/settings/read_settings.ts";
import { StatsStore } from "./src/stats/store.ts";
import { createLogger } from "./src/telemetry/logger.ts";
import { ProcessFigures } from "./src/telemetry/process_figures.ts";
import { guardProcess } from "./src/telemetry/process_guard.ts";
import { versionText } from "./src/version.ts";
import type { WebhookLine } from "./src/webhooks/webhook_thread.ts";

const { version } = config;
/** Longest time that running calls get to end when the service stops. */
const DRAIN_MS = 10_000;
/** How long the listeners wait for a cache that is about to connect, so that first calls find it. */
const CACHE_HEAD_START_MS = 250;
/** How long the end waits for a log that is not read. */
const LAST_LINES_MS = 500;

/** A part that is not there. */
const NOTHING = { close: () => Promise.resolve() } as const;

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
  const stack = new AsyncDisposableStack();
  try {
    const parts = partsOf(settings, options, stack);
    const { logger, clock, health } = parts;
    const sinks = owned(openSinks(parts), stack);
    const beginning = owned(openTracing({ ...parts, version }), stack);
    // Begins a thread of its own, which gets ready while the rest of this one is loaded.
    const rules = owned(openRules(parts), stack);
    const loaded = await loadRest(settings);
    const { addressOf } = loaded;
    const owner = { stack, addressOf };
    await sinks;
    await loaded.checkPorts(parts);
    const gaveUp = new AbortController();
    const end = AbortSignal.any([signal, gaveUp.signal]);
    const onGivenUp = (text: string) => gaveUp.abort(new Error(text));
    const tracing = await beginning;
    const cache = await loaded.openCache({ ...parts, onGivenUp });
    stack.defer(() => cache.close());
    const tracedCache = tracing.cache(cache.cache, loaded.cacheKind(settings));
    const opened = loaded.openService(parts, { ...cache, cache: tracedCache });
    const { service, counters } = opened;
    const pull = await loaded.openPullMetrics({ ...parts, rules: () => service.rules });
    own(pull.listener, "metrics", parts, owner);
    const decide = tracing.decide((request, caller) => service.shouldRateLimit(request, caller));
    const startWorker = options.startWebhookWorker;
    const webhooks = await openAdministration(parts, { version, tracing, decide, counters, startWorker });
    stack.defer(() => webhooks.close(0));
    own(webhooks.listener, "administration", parts, owner);
    const loading = await rules;
    loading.decideBy(service);
    const debug = loaded.openDebug(parts, opened, { version, loading: () => loading, webhooks });
    own(debug, "debug", parts, owner);
    options.onReload?.(loading.reload);
    const needed = settings.FORCE_START_WITHOUT_INITIAL_CONFIG ? [] : [loading.firstRules];
    await unlessAborted(Promise.all([...needed, pull.load()]).then(() => {}), end);
    await settledWithin(cache.ready, CACHE_HEAD_START_MS, clock);
    end.throwIfAborted();
    const http = await loaded.openHttp(parts, tracing, decide, webhooks);
    stack.defer(() => http.close(DRAIN_MS));
    // The last to open: its unix socket takes the place of one that serves, so nothing may fail after it.
    const grpc = await loaded.openGrpc(parts, tracing, decide);
    stack.defer(() => grpc.close(DRAIN_MS));
    logger.warning(`Listening for gRPC on '${grpc.address}'`);
    logger.warning(`Listening for HTTP on '${addressOf(http)}'`);
    if (http.triggers !== undefined) {
      logger.warning(`Listening for triggers on '${addressOf(http.triggers)}'`);
    }
    health.set("start", true);
    // Their threads would take time from the start of this one, and their first calls wait for them.
    webhooks.start();
    tracing.start();
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

/** What every part works with, as it is when nothing is open yet. */
function partsOf(settings: Settings, options: ServeOptions, stack: AsyncDisposableStack): ServiceParts {
  const { logger, clock = systemClock, random = Math.random } = options;
  const { health = new Health(), stats = new StatsStore(settings.STATS_MAX_KEYS) } = options;
  health.set("sigterm", true);
  health.set("start", false, "the ports are not open yet");
  const figures = new ProcessFigures({ clock });
  stack.defer(() => figures.close());
  stats.addFigures("ratelimit.process", figures);
  return { settings, logger, clock, random, health, stats };
}

/** Opens sinks for the statistics, where any are to be sent. */
async function openSinks({ settings, stats, ...options }: ServiceParts): Promise<{ close(): Promise<void> }> {
  if (settings.DISABLE_STATS) return NOTHING;
  const { startSinks } = await import("./src/stats/sinks.ts");
  return startSinks(settings, stats, { ...options, stdout: standardSinks.stdout });
}

/**
 * What every service needs and no thread has to wait for. Nothing is imported for the first time once the ports are
 * open: it would fail while no file descriptor is left.
 */
async function loadRest(settings: Settings) {
  const [ports, cache, service, pull, http, grpc] = await Promise.all([
    import("./src/shared_ports.ts"),
    import("./src/open_cache.ts"),
    import("./src/open_service.ts"),
    import("./src/open_pull_metrics.ts"),
    import("./src/open_http.ts"),
    import("./src/open_grpc.ts").then(async (module) => {
      await module.loadGrpc(settings);
      return module;
    }),
  ]);
  return { ...ports, ...cache, ...service, ...pull, ...http, ...grpc };
}

/** Opens the webhook service and the administration, where the settings ask for one of them. */
async function openAdministration(parts: ServiceParts, options: OpenWebhooksOptions): Promise<OpenWebhooks> {
  const { WEBHOOK_STORE: place, ADMIN_TOKEN: token } = parts.settings;
  if (place === undefined && token === undefined) {
    return {
      ...NOTHING,
      routes: [],
      triggerRoutes: [],
      debugRoutes: [],
      listener: undefined,
      start: () => {},
    };
  }
  const { openWebhooks } = await import("./src/open_webhooks.ts");
  return openWebhooks(parts, options);
}

/** Closes at the end what is being opened; whoever waits for it learns when that fails. */
function owned<Part extends { close(): Promise<void> }>(
  opening: Promise<Part>,
  stack: AsyncDisposableStack,
): Promise<Part> {
  const opened = opening.catch(() => undefined);
  stack.defer(async () => await (await opened)?.close());
  return opening;
}

/** Says where a port is, and closes it at the end; nothing to do for one that is not asked for. */
function own(
  listener: HttpListener | undefined,
  what: string,
  { logger }: ServiceParts,
  { stack, addressOf }: {
    readonly stack: AsyncDisposableStack;
    readonly addressOf: (listener: HttpListener) => string;
  },
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
  // What belongs to one command is loaded by it alone.
  switch (command) {
    case "serve":
      return rest.length === 0
        ? await runService(environment, options.onReady ?? (() => {}))
        : (await import("./src/cli/help.ts")).serveUsage(rest, output) ?? 0;
    case "client":
      return await (await import("./src/cli/client.ts")).client(rest, output);
    case "check":
    case "explain":
    case "simulate":
    case "health":
    case "endpoints":
    case "triggers":
    case "event-keys":
    case "events":
    case "deliveries":
    case "executions":
    case "audit":
    case "webhooks":
    case "store":
      return await (await import("./src/cli/commands.ts")).runCommand(args, { environment, output });
    case "version":
    case "-version":
    case "--version":
      output.stdout(versionText(version));
      return 0;
    case "help":
    case "-h":
    case "-help":
    case "--help":
      return await (await import("./src/cli/help.ts")).help(rest, { version, output });
    default: {
      const { commandsText } = await import("./src/cli/help.ts");
      output.stderr(`Cannot run command "${command}": it is unknown\n\n${commandsText(version)}`);
      return 2;
    }
  }
}

/** Runs the service with a log that never holds it up, and gives the last lines a moment to be written. */
async function runService(environment: Environment, onReady: (running: Running) => void): Promise<number> {
  let logger: Logger | undefined;
  const onRoom = (dropped: number) => logger?.error("Log lines were dropped", { dropped });
  const lines = new LineWriter({ sink: standardSinks.stderr, clock: systemClock, onRoom });
  const write = (line: string) => lines.write(line);
  try {
    const { settings, warnings } = readSettings(environment);
    logger = createLogger({
      level: settings.LOG_LEVEL,
      format: settings.LOG_FORMAT,
      clock: systemClock,
      write,
    });
    const verdict = checkRuntime(Deno.version.deno, settings.ALLOW_UNSAFE_DENO);
    if (verdict?.refuse === true) {
      write(verdict.text);
      return 1;
    }
    if (verdict !== undefined) logger.warning(verdict.text);
    for (const warning of warnings) logger.warning(warning);
    return await serveUntilSignal(settings, { logger, lines, onReady });
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    for (const line of [...error.warnings, ...error.problems]) write(line);
    return 1;
  } finally {
    await flush(lines);
  }
}

/** Waits until the lines are written, but not for a log that takes none. */
async function flush(lines: LineWriter): Promise<void> {
  await settledWithin(lines.drained(), LAST_LINES_MS, systemClock);
}

/** What a service runs with beside its settings. */
interface RunParts {
  readonly logger: Logger;
  readonly lines: LineWriter;
  readonly onReady: (running: Running) => void;
}

async function serveUntilSignal(
  settings: Settings,
  { logger, lines, onReady }: RunParts,
): Promise<number> {
  const health = new Health();
  const stats = new StatsStore(settings.STATS_MAX_KEYS);
  captureConsole(logger);
  const { errors } = guardProcess({
    logger,
    clock: systemClock,
    onUnexpected: () => health.set("process", false, "an unexpected error reached the process level"),
  });
  stats.addCounter("ratelimit.process.socket_errors", () => errors.socketErrors);
  stats.addCounter("ratelimit.process.unexpected_errors", () => errors.unexpectedErrors);
  stats.addCounter("ratelimit.process.log_lines_dropped", () => lines.dropped);
  const stop = new AbortController();
  const onSignal = stopRequests({
    clock: systemClock,
    onFirst: () => stop.abort(),
    onAgain: () => {
      logger.warning("Ending at once: told a second time to stop");
      void flush(lines).then(() => Deno.exit(1));
    },
  });
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

if (import.meta.main) {
  // Whatever ends the program before it knows its exit code is a failure.
  Deno.exitCode = 1;
  Deno.exit(await main(Deno.args));
}
