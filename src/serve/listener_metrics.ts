import type { AcceptGuardOptions } from "../net/accept_guard.ts";
import { counter, gauge, type MetricGroup } from "../base/metrics.ts";
import { PROCESS_PREFIX } from "../telemetry/process_metrics.ts";
import type { ServiceParts } from "./parts.ts";

const ACCEPT_METRICS = {
  accept_failures: counter(
    "failures",
    "Connections that could not be accepted, for example because no file descriptor was free.",
  ),
  accept_failing: gauge("0 or 1", "1 while the listener cannot accept connections.", { combined: "max" }),
};
const CONNECTION_METRICS = {
  connections: gauge("connections", "Open connections of the listener."),
  connections_refused: counter(
    "connections",
    "Connections closed because the listener had reached its maximum.",
  ),
};
const TLS_METRICS = {
  tls_reloaded: counter("reloads", "Certificates of the listener that were reloaded.", { combined: "max" }),
  tls_reload_failed: counter("reloads", "Certificates that were rejected; the previous ones remain in use.", {
    combined: "max",
  }),
};

/** The metrics that every listener has. */
export function acceptMetrics(listener: string): MetricGroup<typeof ACCEPT_METRICS> {
  return { prefix: prefixOf(listener), metrics: ACCEPT_METRICS };
}

/** The metrics of a listener that limits its connections. */
export function connectionMetrics(listener: string): MetricGroup<typeof CONNECTION_METRICS> {
  return { prefix: prefixOf(listener), metrics: CONNECTION_METRICS };
}

/** The metrics of a listener with TLS. */
export function tlsMetrics(listener: string): MetricGroup<typeof TLS_METRICS> {
  return { prefix: prefixOf(listener), metrics: TLS_METRICS };
}

/** The metrics of gRPC with TLS in addition. */
export const GRPC_TLS_METRICS = {
  prefix: prefixOf("grpc"),
  metrics: {
    tls_refused: counter(
      "connections",
      "Connections refused because of the client certificate or a failed handshake.",
    ),
  },
} satisfies MetricGroup;

function prefixOf(listener: string): string {
  return `${PROCESS_PREFIX}${listener}_`;
}

/** Makes the state of a listener a component of health; its log lines have the same name. */
export function listenerReport(
  { health, logger, clock }: Pick<ServiceParts, "health" | "logger" | "clock">,
  name: string,
): AcceptGuardOptions {
  const onState = (problem: string | undefined) =>
    health.set(`${name}_port`, problem === undefined, problem ?? "");
  return { name, logger, clock, onState };
}

/** Adds the metrics of accepting under the name of the listener. */
export function addListenerMetrics(
  { stats }: Pick<ServiceParts, "stats">,
  name: string,
  accepting: { readonly failures: number; readonly isFailing: boolean },
): void {
  stats.addMetrics(acceptMetrics(name), {
    counters: { accept_failures: () => accepting.failures },
    gauges: { accept_failing: () => accepting.isFailing ? 1 : 0 },
  });
}
