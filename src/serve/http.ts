import { createDebugHandler } from "../http/routes/debug.ts";
import { explainRoute } from "../http/routes/explain_route.ts";
import { healthRoutes } from "../http/routes/healthcheck.ts";
import { type HttpPort, listenHttp } from "../http/server/http_port.ts";
import type { HttpsLayer } from "../http/server/https_layer.ts";
import { ownSiteGuard } from "../http/server/request_guards.ts";
import { rateLimitRoute } from "../http/routes/rate_limit_route.ts";
import { quotasRoute } from "../http/routes/quotas_route.ts";
import { settingsRoute } from "../http/routes/settings_route.ts";
import { createRouter, type Route } from "../http/server/router.ts";
import type { OpenAdministration } from "./administration.ts";
import { addListenerMetrics, connectionMetrics, listenerReport } from "./listener_metrics.ts";
import { openUi, type OpenUiOptions } from "./ui.ts";
import type { OpenWebhooks } from "./webhooks.ts";
import type { QuotaViews } from "./quota_views.ts";
import type { LiveCounters } from "../ratelimit/forecast/live_counters.ts";
import type { RateLimitService } from "../ratelimit/decision/service.ts";
import { rulesText } from "../ratelimit/rules/rules_text.ts";
import { addressOf } from "./lifecycle.ts";
import type { ServiceParts } from "./parts.ts";
import { openWatchedTls } from "./watched_tls.ts";
import type { Address } from "../settings/address_parsers.ts";
import type { EffectiveSetting } from "../settings/effective_settings.ts";
import { statsText } from "../stats/store.ts";
import type { Decide } from "../telemetry/tracing_decision.ts";
import type { Tracing } from "../telemetry/tracing.ts";

/** The HTTP port, and the separate one of the triggers. */
interface OpenHttp extends ListeningPort {
  readonly triggers: ListeningPort | undefined;
  drain(): void;
  close(graceMs: number): Promise<void>;
}

interface ListeningPort {
  readonly hostname: string;
  readonly port: number;
}

/**
 * Serves the HTTP port: decisions, health and further routes; and the triggers, where they have their own address.
 * Throws when it cannot use the files of TLS or listen.
 */
export async function openHttp(
  parts: ServiceParts,
  tracing: Pick<Tracing, "route" | "logFields">,
  decide: Decide,
  { routes, triggerRoutes }: Pick<OpenWebhooks, "routes" | "triggerRoutes">,
): Promise<OpenHttp> {
  const { settings, clock, health, stats } = parts;
  const onMalformed = () => void stats.service.serviceError++;
  const routeFor = (own: Decide) => rateLimitRoute({ decide: own, clock, onMalformed });
  const json = settings.HTTP_JSON ? [tracing.route(routeFor, decide)] : [];
  const opened: HttpPort[] = [];
  const replaceConnections = () => opened.forEach((one) => one.replaceConnections());
  const secured = settings.HTTP_SERVER_USE_TLS ? await openTls(parts, replaceConnections) : undefined;
  try {
    const open = (name: string, address: Address, served: readonly Route[]) => {
      const port = openPort(parts, {
        ...address,
        name,
        routes: served,
        tls: secured?.tls,
        logFields: tracing.logFields,
      });
      opened.push(port);
      return port;
    };
    const { TRIGGER_ADDR: triggerAddress, HOST: host, PORT: port } = settings;
    const http = open("http", { host, port }, [...json, ...healthRoutes(health), ...routes]);
    const triggers = triggerAddress === undefined
      ? undefined
      : open("trigger", triggerAddress, triggerRoutes);
    return {
      hostname: http.hostname,
      port: http.port,
      triggers,
      drain: () => opened.forEach((one) => one.drain()),
      close: async (graceMs) =>
        void await Promise.all([secured?.close(), ...opened.map((one) => one.close(graceMs))]),
    };
  } catch (error) {
    await Promise.all([secured?.close(), ...opened.map((one) => one.close(0))]);
    throw error;
  }
}

interface OpenPortOptions extends Address {
  readonly name: string;
  readonly logFields: Tracing["logFields"];
  readonly routes: readonly Route[];
  readonly tls: HttpsLayer | undefined;
}

/** Opens a port for untrusted clients. */
function openPort(parts: ServiceParts, options: OpenPortOptions): HttpPort {
  const { name, host, port, routes, tls, logFields } = options;
  const { settings, stats, logger, clock } = parts;
  const ofOwnSite = ownSiteGuard({ links: true });
  const guarded = routes.map((route) => ({ ...route, handle: ofOwnSite(route.handle) }));
  const opened = listenHttp(createRouter(guarded, { logger, clock, logFields }), {
    ...listenerReport(parts, name),
    hostname: host,
    port,
    tls,
    isShared: settings.LISTEN_SHARED,
    maxConnections: settings.HTTP_MAX_CONNECTIONS === 0 ? Infinity : settings.HTTP_MAX_CONNECTIONS,
  });
  stats.addMetrics(connectionMetrics(name), {
    counters: { connections_refused: () => opened.accepting.refused },
    gauges: { connections: () => opened.accepting.connections },
  });
  addListenerMetrics(parts, name, opened.accepting);
  return opened;
}

async function openTls(parts: ServiceParts, onRenewed: () => void) {
  const { HttpsLayer } = await import("../http/server/https_layer.ts");
  const { HTTP_SERVER_TLS_CERT: cert = "", HTTP_SERVER_TLS_KEY: key = "" } = parts.settings;
  return await openWatchedTls(parts, {
    name: "http",
    files: { cert, key },
    names: { cert: "HTTP_SERVER_TLS_CERT", key: "HTTP_SERVER_TLS_KEY" },
    create: (pair) => new HttpsLayer(pair),
    onRenewed,
  });
}

/** Options of `openDebug`. */
export interface OpenDebugOptions {
  readonly loading: OpenUiOptions["loading"];
  readonly history: OpenUiOptions["history"];
  readonly webhooks: OpenAdministration;
  /** The settings for operators. */
  readonly effective: readonly EffectiveSetting[];
  readonly quotas: Pick<QuotaViews, "list">;
  /** Brings the statistics up to date; absent where they always are. */
  readonly refresh: (() => Promise<void>) | undefined;
}

/** Serves the debug port. */
export function openDebug(
  parts: ServiceParts,
  { service, counters }: { readonly service: RateLimitService; readonly counters: LiveCounters },
  { effective, loading, history, webhooks, quotas, refresh }: OpenDebugOptions,
): HttpPort {
  const { settings, logger, clock, health, stats } = parts;
  const { DEBUG_TOKEN: token } = settings;
  const { administrators } = webhooks;
  const explain = explainRoute({ explainer: counters, debugToken: token, administrators });
  const handler = createDebugHandler({
    rlconfig: () => rulesText(service.rules, loading()?.version()),
    stats: async () => {
      await refresh?.();
      return statsText(stats);
    },
    health,
    logger,
    clock,
    token,
    allowedHosts: [settings.DEBUG_HOST, ...settings.DEBUG_ALLOWED_HOSTS],
    routes: [
      explain,
      settingsRoute({ settings: effective, debugToken: token, administrators }),
      quotasRoute({
        quotas: (filter) => quotas.list(filter),
        debugToken: token,
        administrators,
      }),
      ...openUi(parts, { service, loading, history, administrators }),
      ...webhooks.debugRoutes,
    ],
  });
  const { DEBUG_HOST: hostname, DEBUG_PORT: port } = settings;
  const opened = listenHttp(handler, {
    ...listenerReport(parts, "debug"),
    hostname,
    port,
    isShared: settings.LISTEN_SHARED,
  });
  addListenerMetrics(parts, "debug", opened.accepting);
  if (token === undefined && !isLoopback(opened.hostname)) {
    const text = "The debug port is open to other machines without a token; set DEBUG_TOKEN or DEBUG_HOST";
    logger.warning(text, { address: addressOf(opened) });
  }
  return opened;
}

function isLoopback(address: string): boolean {
  return address === "::1" || address.startsWith("127.");
}
