const DEFAULT_MAX_WAITING = 2_048;

/** How many spans may wait: the bound of the SDK, which holds for what the deciding thread keeps as well. */
export function maxWaitingSpans(): number {
  return positiveVariable("OTEL_BSP_MAX_QUEUE_SIZE") ?? DEFAULT_MAX_WAITING;
}

/** The number that a standard variable of the SDK names; absent where it names none above 0, as for the SDK. */
export function positiveVariable(name: string): number | undefined {
  const value = Number(Deno.env.get(name)?.trim() || Number.NaN);
  return value > 0 ? value : undefined;
}
