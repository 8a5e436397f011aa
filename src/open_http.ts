import { WatchedPair } from "./base/watched_pair.ts";
import { createDebugHandler, type DebugRoute } from "./http/debug.ts";
import { type Explainer, explainRoute } from "./http/explain_route.ts";
import { healthRoutes } from "./http/healthcheck.ts";
import { type HttpListener, listenHttp, type ListenHttpOptions } from "./http/listen.ts";
import { rateLimitRoute } from "./http/rate_limit_route.ts";
import { RenewableListener } from "./http/renewable_listener.ts";
import { createRouter, type HttpHandler, type Route } from "./http/router.ts";
import { openUi, type OpenUiOptions } from "./open_ui.ts";
import { rulesText } from "./ratelimit/rules_text.ts";
import type { ServiceParts } from "./service_parts.ts";
import { statsText } from "./stats/store.ts";
import type { Decide } from "./telemetry/tracing_decision.ts";
import type { Tracing } from "./telemetry/tracing.ts";

/**
 * Serves the HTTP port: decisions, health and further routes; a promise where the files of TLS are read before. Throws when
 * they cannot be used, or the address cannot be had.
 */
export async function openHttp(
  parts: ServiceParts,
  tracing: Pick<Tracing, "route">,
  decide: Decide,
  routes: readonly Route[] = [],
): Promise<HttpListener> {
  const { settings, logger, clock, health, stats } = parts;
  const onMalformed = () => void stats.service.serviceError++;
  const routeFor = (own: Decide) => rateLimitRoute({ decide: own, clock, onMalformed });
  const route = tracing.route(routeFor, decide);
  const handler = createRouter([route, ...healthRoutes(health), ...routes], { logger, clock });
  const options = { hostname: settings.HOST, port: settings.PORT, logger, clock };
  return settings.HTTP_SERVER_USE_TLS
    ? await openHttps(handler, parts, options)
    : listenHttp(handler, options);
}

async function openHttps(
  handler: HttpHandler,
  { settings, stats, logger, clock }: ServiceParts,
  options: ListenHttpOptions,
): Promise<HttpListener> {
  let listener: RenewableListener | undefined;
  const pair = await WatchedPair.open({
    files: { cert: settings.HTTP_SERVER_TLS_CERT ?? "", key: settings.HTTP_SERVER_TLS_KEY ?? "" },
    names: { cert: "HTTP_SERVER_TLS_CERT", key: "HTTP_SERVER_TLS_KEY" },
    clock,
    logger,
    onPair: ({ cert, key }) => listener?.renew({ cert, key }),
  });
  try {
    const { cert, key } = pair.current;
    const opened = listener = new RenewableListener(handler, { ...options, tls: { cert, key } });
    stats.addCounter("ratelimit.process.http_tls_reloaded", () => pair.figures.reloaded);
    stats.addCounter("ratelimit.process.http_tls_reload_failed", () => pair.figures.failed);
    const close = async (graceMs: number) => void await Promise.all([pair.close(), opened.close(graceMs)]);
    return { hostname: opened.hostname, port: opened.port, drain: () => opened.drain(), close };
  } catch (error) {
    await pair.close();
    throw error;
  }
}

/** What the debug port shows of the decisions. */
export interface ShownService {
  readonly service: OpenUiOptions["service"];
  readonly counters: Explainer;
}

/** What the debug port is opened with beside. */
export interface OpenDebugOptions extends Pick<OpenUiOptions, "version" | "loading"> {
  /** What has further paths. */
  readonly webhooks: { readonly debugRoutes: readonly DebugRoute[] };
}

/** Serves the debug port. */
export function openDebug(
  parts: ServiceParts,
  { service, counters }: ShownService,
  { version, loading, webhooks }: OpenDebugOptions,
): HttpListener {
  const { settings, logger, clock, health, stats } = parts;
  const { ADMIN_TOKEN: adminToken, DEBUG_TOKEN: token } = settings;
  const explain = explainRoute({ explainer: counters, debugToken: token, adminToken });
  const handler = createDebugHandler({
    rlconfig: () => rulesText(service.rules, loading()?.version()),
    stats: () => statsText(stats),
    health,
    logger,
    clock,
    token,
    routes: [explain, ...openUi(parts, { version, service, loading }), ...webhooks.debugRoutes],
  });
  return listenHttp(handler, { hostname: settings.DEBUG_HOST, port: settings.DEBUG_PORT, logger, clock });
}

/** Where it listens, as `host:port`. */
export function addressOf({ hostname, port }: HttpListener): string {
  return hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}
