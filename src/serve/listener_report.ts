import type { AcceptGuardOptions } from "../base/accept_guard.ts";
import type { ServiceParts } from "./parts.ts";

/** Makes a listener's state a component of health; `name` is also the name in its log lines. */
export function listenerReport(
  { health, logger, clock }: Pick<ServiceParts, "health" | "logger" | "clock">,
  name: string,
): AcceptGuardOptions {
  const onState = (problem: string | undefined) =>
    health.set(`${name}_port`, problem === undefined, problem ?? "");
  return { name, logger, clock, onState };
}

/** Counts how often accepting failed, and shows whether it fails now, under the listener's name. */
export function addListenerMetrics(
  { stats }: Pick<ServiceParts, "stats">,
  name: string,
  listener: { readonly failures: number; readonly isFailing: boolean },
): void {
  stats.addCounter(`ratelimit.process.${name}_accept_failures`, () => listener.failures);
  stats.addGauge(`ratelimit.process.${name}_accept_failing`, () => listener.isFailing ? 1 : 0);
}
