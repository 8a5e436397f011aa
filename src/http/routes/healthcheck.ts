import type { ComponentHealth, Health } from "../../base/health.ts";
import type { Route } from "../server/router.ts";

/** The health as the check reads it. */
export type ShownHealth = Pick<Health, "failing" | "degraded">;

const METHODS = ["GET", "HEAD"] as const;

/**
 * `/healthcheck`: 200 `OK`, with a line for each cause to be degraded, or 503 with a line for each failing component.
 * `/livez`: always 200.
 */
export function healthRoutes(health: ShownHealth): [healthcheck: Route, livez: Route] {
  return [
    { path: "/healthcheck", methods: METHODS, handle: () => healthAnswer(health) },
    { path: "/livez", methods: METHODS, handle: () => new Response("OK") },
  ];
}

function healthAnswer(health: ShownHealth): Response {
  const failing = health.failing();
  if (failing.length === 0) {
    const causes = health.degraded().map(healthLine);
    return new Response(causes.length === 0 ? "OK" : `OK\n${causes.join("")}`);
  }
  return new Response(failing.map(healthLine).join(""), { status: 503 });
}

function healthLine({ name, reason }: ComponentHealth): string {
  // Readers rely on one line for each cause.
  return `${name}: ${reason === "" ? "not healthy" : reason.replace(/\s*[\r\n]+\s*/g, " ")}\n`;
}
