import type { Clock } from "../base/clock.ts";
import { counterRoutes, type Counters } from "../http/counters_route.ts";
import type { DebugRoute } from "../http/debug.ts";
import { type HttpListener, listenHttp } from "../http/listen.ts";
import { createRouter, type Route } from "../http/router.ts";
import { ownSiteGuard } from "../http/request_guards.ts";
import {
  absentTriggerRoute,
  administrationRoute,
  type EventMethods,
  eventRoute,
  triggerRoute,
  type WebhookRouteOptions,
} from "../http/webhook_routes.ts";
import { addListenerMetrics, listenerReport } from "./listener_report.ts";
import type { ServiceParts } from "./parts.ts";
import type { Settings } from "../settings/table.ts";
import { storeFolderProblem } from "./store_folder.ts";
import type { Decide } from "../telemetry/tracing_decision.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import { WebhookStatistics } from "./webhook_statistics.ts";
import { isPostgresAddress } from "../base/postgres_address.ts";
import type { LimitCall } from "../webhooks/model/limit_call.ts";
import type { StoreSettings, WebhookOptions } from "../webhooks/service/message.ts";
import { type WebhookLine, WebhookThread } from "../webhooks/service/supervisor.ts";

/** What the webhook service is opened with. */
export interface OpenWebhooksOptions {
  /** Of Weir, for the user agent. */
  readonly version: string;
  readonly tracing: Pick<Tracing, "route" | "work">;
  readonly decide: Decide;
  /** What the administration looks at beside, also where the webhook service is off. */
  readonly counters: Counters;
  /** Starts a worker; one with the webhook service when absent. */
  readonly startWorker?: (() => WebhookLine) | undefined;
}

/** The webhook service, as far as the process has to know it. */
export interface OpenWebhooks {
  /** For the HTTP port. */
  readonly routes: readonly Route[];
  /** For `TRIGGER_ADDR`, where it is set: triggers and posting events, which the HTTP port then lacks. */
  readonly triggerRoutes: readonly Route[];
  /** For the debug port. */
  readonly debugRoutes: readonly DebugRoute[];
  /** The address of the administration, where it has one of its own. */
  readonly listener: HttpListener | undefined;
  /** Starts the thread of the service. Calls that come before it is ready wait for it for a while. */
  start(): void;
  /** Lets nothing more in, gives work that is under way so long, and ends. */
  close(graceMs: number): Promise<void>;
}

/** The service does not wait for longer than this for the rest, such as for rules that nobody has sent yet. */
const LATEST_START_MS = 1_000;
/** No attempt outlives its delivery. */
const DELIVERY_MS = 24 * 60 * 60_000;
/** The longest timeout of PostgreSQL. */
const LONGEST_STATEMENT_MS = 2 ** 31 - 1;
/** A shorter token may be guessed. */
const GOOD_TOKEN_LENGTH = 32;

/**
 * Opens the webhook service, where the settings name its store, and the administration. Throws when `ADMIN_ADDR`
 * cannot be had. The service itself is still to be started.
 */
export function openWebhooks(parts: ServiceParts, options: OpenWebhooksOptions): OpenWebhooks {
  const { settings, health, stats, logger, clock } = parts;
  const { WEBHOOK_STORE: place, ADMIN_TOKEN: adminToken } = settings;
  const further = counterRoutes({ counters: options.counters, adminToken, clock, logger });
  if (place === undefined) return withoutService(further, parts);
  warnOfToken(parts);
  warnOfFolder(place, parts);
  const statistics = new WebhookStatistics(stats);
  const thread = new WebhookThread({
    ...parts,
    options: workerOptions(settings, { store: storeSettings(place, settings), version: options.version }),
    limit: limitBy(options.decide),
    onHealth: (healthy, reason) => {
      health.set("webhooks", healthy, reason);
      health.note("webhooks", healthy ? reason : "");
    },
    onFigures: (figures, isNew) => statistics.take(figures, isNew),
    onSpan: (span) => options.tracing.work(span),
    startWorker: options.startWorker,
  });
  const onTrigger: WebhookRouteOptions["onTrigger"] = (answer) => statistics.noteTrigger(answer);
  const routing = {
    calls: thread,
    maxBodyBytes: settings.WEBHOOK_MAX_BODY_BYTES,
    adminToken,
    clock,
    onTrigger,
  };
  const administration = [
    eventRoute(routing, { readable: true, postable: true }),
    administrationRoute(routing),
    ...further,
  ];
  const triggers = options.tracing.route(() => triggerRoute(routing), options.decide);
  const isApart = settings.ADMIN_ADDR !== undefined;
  // Without its token all of the administration is 404.
  const rest = isApart
    ? [administrationRoute({ ...routing, adminToken: undefined })]
    : [administrationRoute(routing), ...further];
  const events = (methods: EventMethods) => eventRoute(routing, methods);
  const listener = isApart ? openAdministration(administration, parts) : undefined;
  const starting = startOnce(() => thread.start(), clock);
  return {
    ...(settings.TRIGGER_ADDR === undefined
      ? { routes: [triggers, events({ readable: !isApart, postable: true }), ...rest], triggerRoutes: [] }
      : {
        routes: [
          absentTriggerRoute(),
          events({ readable: !isApart, postable: false }),
          ...rest,
        ],
        triggerRoutes: [triggers, events({ readable: false, postable: true })],
      }),
    debugRoutes: administration.map(shownOnDebugPort),
    listener,
    start: starting.start,
    async close(graceMs) {
      starting.cancel();
      await Promise.all([thread.stop(graceMs), listener?.close(graceMs)]);
    },
  };
}

/** Starts when it is told to, and by itself when the rest of the service waits for something. */
function startOnce(run: () => void, clock: Clock): { start(): void; cancel(): void } {
  let isStarted = false;
  const start = () => {
    cancel();
    if (isStarted) return;
    isStarted = true;
    run();
  };
  const cancel = clock.after(LATEST_START_MS, start);
  return { start, cancel };
}

/** The administration of what else there is: it wants its token, as the whole group does. */
function withoutService(administration: readonly Route[], parts: ServiceParts): OpenWebhooks {
  const { ADMIN_TOKEN: token, ADMIN_ADDR: address } = parts.settings;
  const given = token === undefined ? [] : administration;
  if (token !== undefined) warnOfToken(parts);
  const isApart = given.length > 0 && address !== undefined;
  const listener = isApart ? openAdministration(given, parts) : undefined;
  return {
    routes: isApart ? [] : given,
    triggerRoutes: [],
    debugRoutes: given.map(shownOnDebugPort),
    listener,
    start: () => {},
    close: async (graceMs) => await listener?.close(graceMs),
  };
}

/** These paths want a token of their own. */
function shownOnDebugPort(route: Route): DebugRoute {
  const isCounters = route.path.startsWith("/api/v1/counters/");
  const help = isCounters
    ? "the counters of a request; POST, requires ADMIN_TOKEN"
    : "the administration of webhooks";
  return { ...route, help, open: true };
}

function openAdministration(routes: readonly Route[], parts: ServiceParts): HttpListener {
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

function warnOfToken({ settings: { ADMIN_TOKEN: token }, logger }: ServiceParts): void {
  if (token === undefined) {
    return logger.warning("ADMIN_TOKEN is not set: the administration of webhooks is off");
  }
  if (token.length >= GOOD_TOKEN_LENGTH) return;
  logger.warning(`ADMIN_TOKEN is short: ${GOOD_TOKEN_LENGTH} characters or more would be right`);
}

function warnOfFolder(place: string, { settings, logger }: ServiceParts): void {
  const problem = isPostgresAddress(place) ? undefined : storeFolderProblem(place, settings);
  if (problem !== undefined) logger.warning(problem);
}

function workerOptions(
  settings: Settings,
  { store, version }: { readonly store: StoreSettings; readonly version: string },
): WebhookOptions {
  return {
    store,
    encryptionKeys: settings.WEBHOOK_ENCRYPTION_KEY ?? [],
    encryptionKeyFile: settings.WEBHOOK_ENCRYPTION_KEY_FILE,
    timeoutMs: Math.min(settings.WEBHOOK_TIMEOUT, DELIVERY_MS),
    connectTimeoutMs: settings.WEBHOOK_CONNECT_TIMEOUT,
    retentionMs: settings.WEBHOOK_RETENTION,
    maxInFlight: settings.WEBHOOK_MAX_IN_FLIGHT,
    allowCidrs: settings.WEBHOOK_ALLOW_CIDRS,
    proxy: settings.WEBHOOK_PROXY,
    caFile: settings.WEBHOOK_CA_FILE,
    workflowDirectory: settings.WORKFLOW_DIRECTORY,
    workflowEnv: Object.fromEntries(settings.WORKFLOW_ENV.map((name) => [name, Deno.env.get(name)])),
    workflowAllowCidrs: settings.WORKFLOW_ALLOW_CIDRS,
    maxRunning: settings.WORKFLOW_MAX_RUNNING,
    isTraced: settings.TRACING_ENABLED,
    version,
  };
}

function storeSettings(place: string, settings: Settings): StoreSettings {
  if (!isPostgresAddress(place)) return { kind: "file", path: place };
  return {
    kind: "postgres",
    address: place,
    poolSize: settings.WEBHOOK_STORE_POOL_SIZE,
    connectTimeoutMs: settings.WEBHOOK_STORE_CONNECT_TIMEOUT,
    // The server counts whole ones.
    statementTimeoutMs: Math.min(Math.ceil(settings.WEBHOOK_STORE_STATEMENT_TIMEOUT), LONGEST_STATEMENT_MS),
    lockTimeoutMs: Math.min(Math.ceil(settings.WEBHOOK_STORE_LOCK_TIMEOUT), LONGEST_STATEMENT_MS),
  };
}

/** Nobody leaves: a worker waits for what it asked. */
const CALLER = { gone: false };

/** The decision service as the webhook service asks it: one hit for each descriptor. */
function limitBy(decide: Decide): LimitCall {
  return async (domain, descriptors) => {
    const asked = descriptors.map((descriptor) => ({
      entries: Object.entries(descriptor).map(([key, value]) => ({ key, value })),
    }));
    const { overallCode, statuses } = await decide({ domain, descriptors: asked, hitsAddend: 0 }, CALLER);
    if (overallCode === "OK") return { code: "OK" };
    const waits = statuses.filter(({ code }) => code === "OVER_LIMIT").map((one) =>
      one.secondsUntilReset ?? 1
    );
    return { code: "OVER_LIMIT", resetMs: Math.max(1, ...waits) * 1_000 };
  };
}
