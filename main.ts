/**
 * Weir: a rate limit decision service and a workflow webhook service. This file runs the commands, and opens and closes
 * the parts of the service in one visible order.
 */
import config from "./deno.json" with { type: "json" };
import { systemClock } from "./src/base/clock.ts";
import { Health } from "./src/base/health.ts";
import { LineWriter } from "./src/base/line_writer.ts";
import type { Logger } from "./src/base/log.ts";
import { captureConsole, standardOutput, standardSinks } from "./src/base/standard_streams.ts";
import { stopRequests } from "./src/base/stop_requests.ts";
import { versionText } from "./src/base/version.ts";
import { heldUntilAborted, settledWithin, unlessAborted } from "./src/base/wait.ts";
import { checkRuntime } from "./src/cli/runtime_check.ts";
import { EarlyRuleWorker } from "./src/config/rule_worker.ts";
import type { Rules } from "./src/ratelimit/rules/rules.ts";
import { addressOf, NOT_OPENED, OpenedParts, portOf, stopOn } from "./src/serve/lifecycle.ts";
import { makeReportingParts, type PartsOptions, type ServiceParts } from "./src/serve/parts.ts";
import { openOtlp } from "./src/serve/otlp.ts";
import type { ApplyRules } from "./src/serve/rules.ts";
import { openTracing } from "./src/serve/tracing.ts";
import { reportState } from "./src/serve/systemd_notification.ts";
import type { DecidingWorkerHandle } from "./src/serve/workers/message.ts";
import {
  type Environment,
  readSettings,
  type Settings,
  SettingsError,
} from "./src/settings/read_settings.ts";
import type { SpanExport } from "./src/telemetry/otlp_exporter.ts";
import { hasSettings } from "./src/settings/unread_names.ts";
import type { EffectiveSetting } from "./src/settings/effective_settings.ts";
import { StatsStore } from "./src/stats/store.ts";
import { createLogger } from "./src/telemetry/logger.ts";
import { PROCESS_ERROR_METRICS, PROCESS_METRICS, ProcessMetrics } from "./src/telemetry/process_metrics.ts";
import { closeInspector } from "./src/telemetry/inspector_guard.ts";
import { guardProcess } from "./src/telemetry/process_guard.ts";
import type { Tracing } from "./src/telemetry/tracing.ts";
import type { WebhookWorkerHandle } from "./src/webhooks/service/supervisor.ts";

const { version } = config;
/** The grace of running calls when the service stops. */
const DRAIN_MS = 10_000;
/** The exit code of an invalid value, as for commands. */
const INVALID_SETTINGS_EXIT = 2;
/** Longest wait of an exit for a log that is not read. */
const LAST_LINES_MS = 500;

/** The addresses of a running service. */
interface Addresses {
  /** `host:port`, or `unix:path`. */
  readonly grpc: string;
  readonly http: string;
  readonly debug: string;
}

/** A running service. */
export interface Running {
  readonly addresses: Addresses;
  /** The rules in force. */
  readonly rules: () => Rules | undefined;
  /** Settles when the service has stopped, after its signal was aborted. */
  readonly stopped: Promise<void>;
}

/** Options of `serve`. */
interface ServeOptions extends PartsOptions {
  /** Starts the worker of the webhook service; the product's when absent. */
  readonly createWebhookWorker?: () => WebhookWorkerHandle;
  /** Starts a further thread that decides gRPC calls; the product's when absent. */
  readonly createDecidingWorker?: () => DecidingWorkerHandle;
  /** The settings for operators; none are shown when absent. */
  readonly effective?: readonly EffectiveSetting[];
  /** Called with a function that reloads the configuration. */
  readonly onReload?: (reload: () => void) => void;
}

/**
 * Starts the service and settles when every port is open. Aborting the signal stops it; while it waits for its first
 * configuration, this throws then.
 */
export async function serve(
  settings: Settings,
  signal: AbortSignal,
  options: ServeOptions,
): Promise<Running> {
  const parts = await makeReportingParts(settings, { ...options, version });
  const { logger, clock, health } = parts;
  const opened = new OpenedParts(parts);
  try {
    opened.defer(reportProcess(parts));
    const ruleWorker = openRuleWorker(parts, opened);
    const sinks = opened.opening(openSinks(parts));
    const otlpOpening = opened.opening(openOtlp(parts));
    const tracingOpening = opened.opening(otlpOpening.then((otlp) => openTracing(parts, otlp?.spans)));
    const loaded = await loadParts(settings);
    const rulesOpening = opened.opening(loaded.openRules(parts, ruleWorker));
    opened.defer(loaded.watchHealth(parts));
    await sinks;
    await loaded.checkPorts(parts);
    const gaveUp = new AbortController();
    const end = heldUntilAborted(signal, gaveUp.signal);
    const tracing = await tracingOpening;
    const { spans } = await otlpOpening ?? {};
    const decisions = await openDecisions(parts, loaded, opened, { ...options, tracing, spans, gaveUp });
    const { cache, service, decide, counters, workers, refresh, quotas } = decisions;
    const reading = { rules: () => service.rules, refresh, effective: options.effective ?? [] };
    opened.listener(await loaded.openPullMetrics(parts, reading), "metrics");
    await opened.opening(loaded.openMetricsExport(parts, reading, await otlpOpening));
    const administered = { tracing, decide, counters, quotas, createWorker: options.createWebhookWorker };
    const webhooks = await loaded.openAdministration(parts, administered);
    opened.defer(() => webhooks.close(0));
    opened.listener(webhooks.listener, "administration");
    const rules = await rulesOpening;
    const applying = rules.decideBy(loaded.checkingScripts(parts, cache, decisions.applyRules));
    const history = loaded.openHistory(parts, service);
    opened.defer(history.start());
    const shown = { ...reading, loading: () => rules, history, webhooks, quotas };
    const debug = loaded.openDebug(parts, { service, counters }, shown);
    opened.listener(debug, "debug");
    options.onReload?.(rules.reload);
    const needed = settings.FORCE_START_WITHOUT_INITIAL_CONFIG ? [] : [rules.firstRules];
    await unlessAborted(Promise.all([applying, ...needed]), end);
    await settledWithin(cache.ready, loaded.CACHE_HEAD_START_MS, clock);
    end.throwIfAborted();
    const http = await loaded.openHttp(parts, tracing, decide, webhooks);
    opened.defer(() => http.close(DRAIN_MS));
    // The last to open: its unix socket replaces one in use, so nothing may fail after it.
    const grpc = await loaded.openGrpc(parts, { tracing, decide, service, shares: cache.shares });
    opened.defer(() => grpc.close(DRAIN_MS));
    quotas.own = grpc.quotas;
    await workers?.listen(portOf(grpc));
    logListening(logger, grpc, http);
    health.set("start", true);
    await reportState("READY=1", parts);
    // Their workers would delay the first calls.
    webhooks.start();
    (await otlpOpening)?.start();
    const close = async () => {
      await Promise.all([grpc, http, webhooks, workers].map((one) => one?.close(DRAIN_MS)));
      await opened.close();
      gaveUp.signal.throwIfAborted();
    };
    const stopped = stopOn(end, parts, { drain: () => http.drain(), close });
    const addresses = { grpc: grpc.address, http: addressOf(http), debug: addressOf(debug) };
    return { addresses, rules: reading.rules, stopped };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

function logListening(
  logger: Logger,
  grpc: { readonly address: string },
  http: Parameters<typeof addressOf>[0] & { readonly triggers?: Parameters<typeof addressOf>[0] | undefined },
): void {
  logger.info(`Listening for gRPC on '${grpc.address}'`, {}, "warning");
  logger.info(`Listening for HTTP on '${addressOf(http)}'`, {}, "warning");
  if (http.triggers === undefined) return;
  logger.info(`Listening for triggers on '${addressOf(http.triggers)}'`, {}, "warning");
}

/** Options of `openDecisions`. */
interface DecisionsOptions {
  readonly tracing: Tracing;
  readonly spans: SpanExport | undefined;
  /** Aborted when the settings end the attempts to connect to the cache. */
  readonly gaveUp: AbortController;
  readonly createDecidingWorker?: (() => DecidingWorkerHandle) | undefined;
}

/** Opens the counters, the service that decides by them, and the other threads that decide. */
async function openDecisions(
  parts: ServiceParts,
  loaded: Awaited<ReturnType<typeof loadParts>>,
  opened: OpenedParts,
  { tracing, spans, gaveUp, createDecidingWorker }: DecisionsOptions,
) {
  const onGivenUp = (text: string) => gaveUp.abort(new Error(text));
  const cache = await loaded.openCache({ ...parts, onGivenUp });
  opened.defer(() => cache.close());
  loaded.warnOfHeap(parts);
  const traced = { ...cache, cache: tracing.cache(cache.cache, loaded.cacheKind(parts.settings)) };
  const { service, forget } = loaded.openService(parts, traced);
  opened.defer(() => service.close());
  if (parts.settings.BACKEND_TYPE !== "memory") {
    opened.defer(loaded.watchDecisions(parts, () => service.tally.total));
  }
  const { DecidingWorkers } = loaded;
  const workers = DecidingWorkers &&
    new DecidingWorkers(parts, service, { spans, createWorker: createDecidingWorker });
  opened.defer(() => workers?.close(0));
  const counters = loaded.openCounters(parts, { cache: traced, service }, async (keys) => {
    forget(keys);
    await workers?.forget(keys);
  });
  const applyRules: ApplyRules = workers === undefined
    ? (rules) => service.setRules(rules)
    : (rules, texts) => workers.setRules(texts).then(() => service.setRules(rules));
  const decide = tracing.decide((request, caller) => service.shouldRateLimit(request, caller));
  const refresh = workers === undefined ? undefined : () => workers.refresh();
  const quotas = new loaded.QuotaViews(parts, service, workers);
  return { cache: traced, service, decide, counters, workers, applyRules, refresh, quotas };
}

/** Starts the worker of rule files where there are any: it loads its modules while this thread loads the rest. */
function openRuleWorker({ settings }: ServiceParts, opened: OpenedParts): EarlyRuleWorker {
  const worker = new EarlyRuleWorker();
  opened.defer(() => worker.close());
  if (settings.CONFIG_TYPE === "FILE") worker.start();
  return worker;
}

/** Opens the statistics sinks where any are enabled; their modules are loaded only then. */
async function openSinks({ settings, stats, ...options }: ServiceParts): Promise<{ close(): Promise<void> }> {
  if (settings.DISABLE_STATS) return NOT_OPENED;
  const { startSinks } = await import("./src/stats/sinks.ts");
  return startSinks(settings, stats, { ...options, stdout: standardSinks.stdout });
}

/** Loads what every service requires before its ports open: a later import would fail without a free file descriptor. */
async function loadParts(settings: Settings) {
  const [ports, rules, cache, service, pull, http, ui, grpc, ...others] = await Promise.all([
    import("./src/serve/shared_ports.ts"),
    import("./src/serve/rules.ts"),
    import("./src/serve/cache.ts"),
    import("./src/serve/decisions.ts"),
    import("./src/serve/metrics.ts"),
    import("./src/serve/http.ts"),
    import("./src/serve/ui.ts"),
    import("./src/serve/grpc.ts"),
    import("./src/serve/quota_views.ts"),
    import("./src/serve/script_check.ts"),
    import("./src/serve/administration.ts"),
    import("./src/serve/health_watch.ts"),
    settings.WORKERS > 1 ? import("./src/serve/workers/deciding_workers.ts") : undefined,
  ]);
  await grpc.loadGrpc(settings);
  const [quotas, scripts, administration, healthWatch, workers] = others;
  return {
    ...ports,
    ...rules,
    ...cache,
    ...service,
    ...pull,
    ...http,
    ...ui,
    ...grpc,
    ...quotas,
    ...scripts,
    ...administration,
    ...healthWatch,
    ...workers,
  };
}

/** Adds the metrics of the process; returns a function that ends them. */
function reportProcess({ clock, stats }: ServiceParts): () => void {
  const metrics = new ProcessMetrics({ clock });
  stats.addMetrics(PROCESS_METRICS, metrics);
  return () => metrics.close();
}

/** Options of `main`. */
interface MainOptions {
  readonly environment?: Environment;
  /** Called when every port is open. */
  readonly onReady?: (running: Running) => void;
}

/** Runs a command and returns its exit code. */
export async function main(args: readonly string[], options: MainOptions = {}): Promise<number> {
  const environment = options.environment ?? Deno.env.toObject();
  const [command = "serve", ...rest] = args;
  // The name alone prints what to do.
  const isNamed = args.length > 0 || hasSettings(environment);
  if (command === "serve" && rest.length === 0 && isNamed) {
    return await runService(environment, options.onReady ?? (() => {}));
  }
  if (rest.length === 0 && ["version", "-v", "-version", "--version"].includes(command)) {
    standardOutput.stdout(versionText(version));
    return 0;
  }
  // Loaded here, so that the service starts without the commands.
  const { runCommand } = await import("./src/cli/commands.ts");
  return await runCommand(args, { environment, output: standardOutput, version });
}

/** Runs the service with a log that never blocks it, and waits a moment for the last lines. */
async function runService(environment: Environment, onReady: (running: Running) => void): Promise<number> {
  let logger: Logger | undefined;
  const onRoom = (dropped: number) => logger?.error("Log lines were dropped", { dropped });
  const lines = new LineWriter({ sink: standardSinks.stderr, clock: systemClock, onRoom });
  const write = (line: string) => lines.write(line);
  try {
    const { settings, warnings, notes, sources, secretFiles, effective } = readSettings(environment);
    const { LOG_LEVEL: level, LOG_FORMAT: format } = settings;
    logger = createLogger({ level, format, clock: systemClock, write });
    if (Deno.build.os !== "windows") {
      Deno.addSignalListener("SIGUSR1", closeInspector({ clock: systemClock, logger }));
    }
    const verdict = checkRuntime(Deno.version.deno, settings);
    if (verdict?.refuse === true) {
      write(verdict.text);
      return 1;
    }
    if (verdict !== undefined) logger.warning(verdict.text);
    for (const warning of warnings) logger.warning(warning);
    for (const note of notes) logger.info(note, {}, "warning");
    for (const [setting, variable] of sources) logger.info(`${setting} is set from ${variable}`);
    return await serveUntilSignal(settings, logger, { effective, secretFiles, lines, onReady });
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    for (const line of [...error.notes, ...error.warnings, ...error.problems]) write(line);
    return INVALID_SETTINGS_EXIT;
  } finally {
    await flush(lines);
  }
}

/** Waits until the lines are written, with a timeout. */
async function flush(lines: LineWriter): Promise<void> {
  await settledWithin(lines.drained(), LAST_LINES_MS, systemClock);
}

async function serveUntilSignal(
  settings: Settings,
  logger: Logger,
  { effective, secretFiles, lines, onReady }: Required<Pick<ServeOptions, "effective" | "secretFiles">> & {
    readonly lines: LineWriter;
    readonly onReady: (running: Running) => void;
  },
): Promise<number> {
  const health = new Health();
  const stats = new StatsStore(settings.STATS_MAX_KEYS);
  captureConsole(logger);
  const { errors } = guardProcess({
    logger,
    clock: systemClock,
    onUnexpected: () => health.set("process", false, "an unexpected error reached the process level"),
  });
  const counters = {
    socket_errors: () => errors.socketErrors,
    unexpected_errors: () => errors.unexpectedErrors,
    log_lines_dropped: () => lines.dropped,
  };
  stats.addMetrics(PROCESS_ERROR_METRICS, { counters, gauges: {} });
  const stop = new AbortController();
  const onSignal = stopRequests({
    clock: systemClock,
    onFirst: () => stop.abort(),
    onAgain: () => {
      logger.warning("Exiting immediately: second signal to stop");
      void flush(lines).then(() => Deno.exit(1));
    },
  });
  for (const name of ["SIGTERM", "SIGINT"] as const) Deno.addSignalListener(name, onSignal);
  let reload = () => {};
  if (Deno.build.os !== "windows") Deno.addSignalListener("SIGHUP", () => reload());
  try {
    const onReload = (given: () => void) => void (reload = given);
    const running = await serve(settings, stop.signal, {
      effective,
      secretFiles,
      logger,
      health,
      stats,
      onReload,
    });
    // The log goes first, so that its lines are not inside the text of the caller.
    await flush(lines);
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
  // An end of the program before it sets its exit code is a failure.
  Deno.exitCode = 1;
  Deno.exit(await main(Deno.args));
}
