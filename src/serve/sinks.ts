import { standardSinks } from "../base/standard_streams.ts";
import { NOT_OPENED } from "./lifecycle.ts";
import type { ServiceParts } from "./parts.ts";

/** Opens the sinks of the statistics, where any are to be sent; their modules are loaded only then. */
export async function openSinks(
  { settings, stats, ...options }: ServiceParts,
): Promise<{ close(): Promise<void> }> {
  if (settings.DISABLE_STATS) return NOT_OPENED;
  const { startSinks } = await import("../stats/sinks.ts");
  return startSinks(settings, stats, { ...options, stdout: standardSinks.stdout });
}
