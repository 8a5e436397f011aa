import { createDebugHandler } from "./http/debug.ts";
import { healthRoutes } from "./http/healthcheck.ts";
import { type HttpListener, listenHttp } from "./http/listen.ts";
import { rateLimitRoute } from "./http/rate_limit_route.ts";
import { createRouter } from "./http/router.ts";
import { rulesText } from "./ratelimit/rules_text.ts";
import type { RateLimitService } from "./ratelimit/service.ts";
import type { ServiceParts } from "./service_parts.ts";
import { statsText } from "./stats/store.ts";
import type { Decide } from "./telemetry/tracing_decision.ts";
import type { Tracing } from "./telemetry/tracing.ts";

/** Serves the HTTP port: decisions and health. */
export function openHttp(
  { settings, logger, clock, health }: ServiceParts,
  tracing: Pick<Tracing, "route">,
  decide: Decide,
): HttpListener {
  const routeFor = (own: Decide) => rateLimitRoute({ decide: own, clock });
  const route = tracing.route(routeFor, decide);
  const handler = createRouter([route, ...healthRoutes(health)], { logger, clock });
  return listenHttp(handler, { hostname: settings.HOST, port: settings.PORT, logger, clock });
}

/** Serves the debug port. */
export function openDebug(
  { settings, logger, clock, health, stats }: ServiceParts,
  service: Pick<RateLimitService, "rules">,
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

/** Where it listens, as `host:port`. */
export function addressOf({ hostname, port }: HttpListener): string {
  return hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}
