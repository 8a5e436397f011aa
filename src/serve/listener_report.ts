import type { AcceptGuardOptions } from "../base/accept_guard.ts";
import { acceptMetrics } from "./listener_metrics.ts";
import type { ServiceParts } from "./parts.ts";

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
