import { releaseDeliveryClaims, voidDeliveryClaims } from "./deliveries.ts";
import { releaseExecutionClaims, voidExecutionClaims } from "./executions.ts";
import type { Work } from "./work.ts";
import type { DeliveryStore } from "./store.ts";

/** Takes back claims of deliveries and executions; answers how many. */
export function* voidClaims(options: Parameters<DeliveryStore["voidClaims"]>[0]): Work<number> {
  return (yield* voidDeliveryClaims(options)) + (yield* voidExecutionClaims(options));
}

/** Takes back claims of one's own, of deliveries and executions. */
export function* releaseClaims(claimIds: readonly string[], now: number): Work<void> {
  yield* releaseDeliveryClaims(claimIds, now);
  yield* releaseExecutionClaims(claimIds, now);
}
