import type { ClaimedDelivery } from "../store/store.ts";

/** An attempt that runs. */
export interface Flight {
  readonly claimed: ClaimedDelivery;
  /** By the clock's `elapsed`. */
  readonly startedAt: number;
  /** Ends it. */
  readonly abort: AbortController;
  /** Settles when it is written back or given up; never rejects. */
  readonly ended: Promise<void>;
  /** Its claim is held until then for sure. */
  leaseUntil: number;
}

/** The attempts that run, over all and by endpoint. */
export class InFlight {
  readonly #flights = new Map<string, Flight>();
  readonly #byEndpoint = new Map<string, number>();

  get size(): number {
    return this.#flights.size;
  }

  get claimIds(): string[] {
    return [...this.#flights.keys()];
  }

  get flights(): Flight[] {
    return [...this.#flights.values()];
  }

  /** How many run of an endpoint. */
  of(endpointId: string): number {
    return this.#byEndpoint.get(endpointId) ?? 0;
  }

  add(flight: Flight): void {
    const { claimId, endpoint } = flight.claimed;
    this.#flights.set(claimId, flight);
    this.#byEndpoint.set(endpoint.id, this.of(endpoint.id) + 1);
  }

  get(claimId: string): Flight | undefined {
    return this.#flights.get(claimId);
  }

  remove({ claimId, endpoint }: ClaimedDelivery): void {
    if (!this.#flights.delete(claimId)) return;
    const left = this.of(endpoint.id) - 1;
    if (left > 0) this.#byEndpoint.set(endpoint.id, left);
    else this.#byEndpoint.delete(endpoint.id);
  }
}
