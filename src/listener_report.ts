import type { AcceptGuardOptions } from "./base/accept_guard.ts";
import type { ServiceParts } from "./service_parts.ts";

/** Makes a listener's state a component of health; `name` is also the name in its log lines. */
export function listenerReport(
  { health, logger, clock }: Pick<ServiceParts, "health" | "logger" | "clock">,
  name: string,
): AcceptGuardOptions {
  const onState = (problem: string | undefined) =>
    health.set(`${name}_port`, problem === undefined, problem ?? "");
  return { name, logger, clock, onState };
}
