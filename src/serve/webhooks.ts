import { dirname, resolve } from "node:path";
import { Administrators } from "../http/routes/administrators.ts";
import { counterRoutes, type Counters, type PeekedQuotas } from "../http/routes/counters_route.ts";
import type { DebugRoute } from "../http/routes/debug.ts";
import { type HttpPort, listenHttp } from "../http/server/http_port.ts";
import { openApiRoute } from "../http/routes/openapi_route.ts";
import { createRouter, type Route } from "../http/server/router.ts";
import { ownSiteGuard } from "../http/server/request_guards.ts";
import {
  absentTriggerRoute,
  administrationRoute,
  eventRoute,
  triggerRoute,
  type WebhookRouteOptions,
} from "../http/routes/webhook_routes.ts";
import { whoamiRoute } from "../http/routes/whoami_route.ts";
import { addListenerMetrics, listenerReport } from "./listener_metrics.ts";
import type { ServiceParts } from "./parts.ts";
import type { Settings } from "../settings/table.ts";
import type { Decide } from "../telemetry/tracing_decision.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import { WebhookStatistics } from "./webhook_statistics.ts";
import { isPostgresAddress } from "../base/postgres_address.ts";
import type { LimitCall } from "../webhooks/model/limit_call.ts";
import type { StoreSettings, WebhookOptions } from "../webhooks/service/message.ts";
import {
  createWebhookWorker,
  type WebhookWorkerHandle,
  WebhookWorkerSupervisor,
} from "../webhooks/service/supervisor.ts";

/** Options of the webhook service. */
export interface OpenWebhooksOptions {
  readonly tracing: Pick<Tracing, "route" | "work" | "workLogger">;
  readonly decide: Decide;
  readonly administrators: Administrators;
  /** Part of the administration, also where the webhook service is off. */
  readonly counters: Counters;
  readonly quotas: PeekedQuotas;
  /** Starts the worker that serves webhooks; `createWebhookWorker` when absent. */
  readonly createWorker?: (() => WebhookWorkerHandle) | undefined;
}

/** The webhook service and the administration, to the rest of the process. */
export interface OpenWebhooks {
  /** For the HTTP port. */
  readonly routes: readonly Route[];
  /** For `TRIGGER_ADDR`, if set: triggers and posting events, which the HTTP port then lacks. */
  readonly triggerRoutes: readonly Route[];
  /** For the debug port. */
  readonly debugRoutes: readonly DebugRoute[];
  /** The listener of the administration, if it has its own address. */
  readonly listener: HttpPort | undefined;
  /** Starts the worker of the service. Calls wait for it for a while. */
  start(): void;
  /** Refuses new calls, gives running work this long, and stops. */
  close(graceMs: number): Promise<void>;
}

/** The worker starts at the latest now, even if the rest waits, such as for its first rules. */
const LATEST_START_MS = 1_000;
/** No attempt outlives its delivery. */
const DELIVERY_MS = 24 * 60 * 60_000;
/** The longest timeout of PostgreSQL. */
const LONGEST_STATEMENT_MS = 2 ** 31 - 1;

/**
 * Opens the webhook service, where the settings name its store, and the administration. Throws when `ADMIN_ADDR`
 * cannot be bound. The service itself is started later.
 */
export function openWebhooks(parts: ServiceParts, options: OpenWebhooksOptions): OpenWebhooks {
  const { settings: { WEBHOOK_STORE: place, ADMIN_ADDR }, logger, clock } = parts;
  const { administrators } = options;
  if (!administrators.isEnabled) {
    logger.warning("ADMIN_TOKEN is not set; the administration API is disabled");
  }
  const counters = counterRoutes({ ...options, clock, logger });
  const isSeparate = ADMIN_ADDR !== undefined;
  const service = place === undefined ? undefined : openService(place, parts, options);
  // Like the administration it does not exist without a token.
  const openApi = administrators.isEnabled ? [openApiRoute(parts.version)] : [];
  const further = [whoamiRoute({ administrators }), ...counters, ...openApi];
  const administration = [...service?.administration ?? [], ...further];
  const listener = isSeparate ? openAdministration(administration, parts) : undefined;
  const worker = service?.worker;
  if (worker !== undefined) parts.events?.start((batch) => worker.report(batch));
  const cancelStart = clock.after(LATEST_START_MS, () => worker?.start());
  return {
    routes: [...service?.routes ?? [], ...(isSeparate ? [] : further)],
    triggerRoutes: service?.triggerRoutes ?? [],
    debugRoutes: administration.map(shownOnDebugPort),
    listener,
    start() {
      cancelStart();
      worker?.start();
    },
    async close(graceMs) {
      cancelStart();
      await parts.events?.close();
      await Promise.all([worker?.stop(graceMs), listener?.close(graceMs)]);
    },
  };
}

interface OpenService {
  readonly routes: readonly Route[];
  readonly triggerRoutes: readonly Route[];
  readonly worker: WebhookWorkerSupervisor;
  /** For the debug port, and for `ADMIN_ADDR`. */
  readonly administration: readonly Route[];
}

function openService(place: string, parts: ServiceParts, options: OpenWebhooksOptions): OpenService {
  const { settings, health, stats, logger, clock } = parts;
  warnOfFolder(place, parts);
  const statistics = new WebhookStatistics(stats);
  const worker = new WebhookWorkerSupervisor({
    ...parts,
    logger: options.tracing.workLogger(logger),
    options: workerOptions(parts, storeSettings(place, parts)),
    limit: limitBy(options.decide),
    onHealth: (healthy, reason) => {
      health.set("webhooks", healthy, reason);
      health.degrade("webhooks", healthy && reason !== "" ? reason.split("\n") : []);
    },
    onMetrics: (metrics, isNew) => statistics.take(metrics, isNew),
    onSpan: (span) => options.tracing.work(span),
    createWorker: options.createWorker ?? createWebhookWorker,
  });
  const onTrigger: WebhookRouteOptions["onTrigger"] = (answer) => statistics.noteTrigger(answer);
  const routing: WebhookRouteOptions = {
    calls: worker,
    maxBodyBytes: settings.WEBHOOK_MAX_BODY_BYTES,
    administrators: options.administrators,
    clock,
    onTrigger,
  };
  const trigger = triggerRoute(routing);
  const triggers = options.tracing.route(() => trigger, options.decide);
  const events = (readable: boolean, postable: boolean) => eventRoute(routing, { readable, postable });
  const isSeparate = settings.ADMIN_ADDR !== undefined;
  // Without administrators all of the administration is 404.
  const rest = administrationRoute(
    isSeparate ? { ...routing, administrators: new Administrators() } : routing,
  );
  const hasTriggerPort = settings.TRIGGER_ADDR !== undefined;
  return {
    worker,
    administration: [events(true, true), administrationRoute(routing)],
    routes: [
      hasTriggerPort ? absentTriggerRoute() : triggers,
      events(!isSeparate, !hasTriggerPort),
      rest,
    ],
    triggerRoutes: hasTriggerPort ? [triggers, events(false, true)] : [],
  };
}

/** These paths have their own token, or require none. */
function shownOnDebugPort(route: Route): DebugRoute {
  return { ...route, help: helpOf(route.path), open: true };
}

function helpOf(path: string): string {
  if (path === "/openapi.json") return "the OpenAPI document of the HTTP APIs";
  if (path === "/api/v1/whoami") return "the name and the role of an administration token";
  return path.startsWith("/api/v1/counters/")
    ? "the counters of a request; POST, requires an administration token"
    : "the administration of webhooks";
}

function openAdministration(routes: readonly Route[], parts: ServiceParts): HttpPort {
  const { settings, logger, clock } = parts;
  const { host = "", port = 0 } = settings.ADMIN_ADDR ?? {};
  const report = listenerReport(parts, "administration");
  const ofOwnSite = ownSiteGuard({ links: true });
  const guarded = routes.map((route) => ({ ...route, handle: ofOwnSite(route.handle) }));
  const opened = listenHttp(createRouter(guarded, { logger, clock }), {
    ...report,
    hostname: host,
    port,
    isShared: settings.LISTEN_SHARED,
  });
  addListenerMetrics(parts, "administration", opened.accepting);
  return opened;
}

function warnOfFolder(place: string, { settings, logger }: ServiceParts): void {
  const problem = isPostgresAddress(place) ? undefined : storeFolderProblem(place, settings);
  if (problem !== undefined) logger.warning(problem);
}

/**
 * Why a database file is in a bad place; nothing where it is not. The runtime opens and closes each file that changes in
 * a watched folder, and a process that closes a file loses its locks on it: another process can then open the store at
 * the same time, which SQLite answers with errors at best.
 */
export function storeFolderProblem(path: string, settings: Settings): string | undefined {
  const folder = dirname(resolve(path));
  if (!watchedFolders(settings).some((watched) => resolve(watched) === folder)) return undefined;
  return `WEBHOOK_STORE "${path}" is in a folder that is watched for changes, where it loses its locks; ` +
    "move it to a separate folder";
}

function watchedFolders(settings: Settings): string[] {
  const { RUNTIME_ROOT: root, RUNTIME_SUBDIRECTORY: below, RUNTIME_APPDIRECTORY: rules } = settings;
  const files = [
    settings.GRPC_SERVER_TLS_CERT,
    settings.GRPC_SERVER_TLS_KEY,
    settings.HTTP_SERVER_TLS_CERT,
    settings.HTTP_SERVER_TLS_KEY,
  ];
  const folders = [dirname(resolve(root)), root, resolve(root, below), resolve(root, below, rules)];
  for (const file of files) if (file !== undefined && file !== "") folders.push(dirname(resolve(file)));
  if (settings.WORKFLOW_DIRECTORY !== undefined) folders.push(settings.WORKFLOW_DIRECTORY);
  return folders;
}

function workerOptions(
  { settings, version }: Pick<ServiceParts, "settings" | "version">,
  store: StoreSettings,
): WebhookOptions {
  return {
    store,
    encryptionKeys: settings.WEBHOOK_ENCRYPTION_KEY ?? [],
    encryptionKeyFile: settings.WEBHOOK_ENCRYPTION_KEY_FILE,
    timeoutMs: Math.min(settings.WEBHOOK_TIMEOUT, DELIVERY_MS),
    connectTimeoutMs: settings.WEBHOOK_CONNECT_TIMEOUT,
    retentionMs: settings.WEBHOOK_RETENTION,
    disableAfterMs: settings.WEBHOOK_DISABLE_AFTER,
    // 0 for none.
    maxStoreBytes: settings.WEBHOOK_STORE_MAX_BYTES || undefined,
    maxBacklog: settings.WEBHOOK_MAX_BACKLOG || undefined,
    maxInFlight: settings.WEBHOOK_MAX_IN_FLIGHT,
    allowCidrs: settings.WEBHOOK_ALLOW_CIDRS,
    proxy: settings.WEBHOOK_PROXY,
    caFile: settings.WEBHOOK_CA_FILE,
    workflowDirectory: settings.WORKFLOW_DIRECTORY,
    workflowEnv: Object.fromEntries(settings.WORKFLOW_ENV.map((name) => [name, Deno.env.get(name)])),
    workflowAllowCidrs: settings.WORKFLOW_ALLOW_CIDRS,
    maxRunning: settings.WORKFLOW_MAX_RUNNING,
    publicUrl: settings.TRIGGER_PUBLIC_URL,
    maxBodyBytes: settings.WEBHOOK_MAX_BODY_BYTES,
    isTraced: settings.TRACING_ENABLED,
    version,
  };
}

function storeSettings(place: string, { settings, secretFiles }: ServiceParts): StoreSettings {
  if (!isPostgresAddress(place)) return { kind: "file", path: place };
  return {
    kind: "postgres",
    address: place,
    addressFile: secretFiles?.get("WEBHOOK_STORE"),
    poolSize: settings.WEBHOOK_STORE_POOL_SIZE,
    connectTimeoutMs: settings.WEBHOOK_STORE_CONNECT_TIMEOUT,
    // The server counts whole ones.
    statementTimeoutMs: Math.min(Math.ceil(settings.WEBHOOK_STORE_STATEMENT_TIMEOUT), LONGEST_STATEMENT_MS),
    lockTimeoutMs: Math.min(Math.ceil(settings.WEBHOOK_STORE_LOCK_TIMEOUT), LONGEST_STATEMENT_MS),
  };
}

/** A worker waits for its answer. */
const CALLER = { cancelled: false };

/** Asks the decision service for the webhook service: one hit for each descriptor. */
function limitBy(decide: Decide): LimitCall {
  return async (domain, descriptors) => {
    const asked = descriptors.map((descriptor) => ({
      entries: descriptor.map(([key, value]) => ({ key, value })),
    }));
    const { overallCode, statuses } = await decide({ domain, descriptors: asked, hitsAddend: 0 }, CALLER);
    if (overallCode === "OK") return { code: "OK" };
    const waits = statuses.filter(({ code }) => code === "OVER_LIMIT").map((one) =>
      one.secondsUntilReset ?? 1
    );
    return { code: "OVER_LIMIT", resetMs: Math.max(1, ...waits) * 1_000 };
  };
}
