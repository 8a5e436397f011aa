import type { ClaimedDelivery } from "./store.ts";

/** An attempt that runs. */
export interface Flight {
  readonly claimed: ClaimedDelivery;
  /** Ends it. */
  readonly abort: AbortController;
  /** Settles when it is written back or given up; never rejects. */
  readonly ended: Promise<void>;
  /** Its claim is held until then for sure. */
  leaseUntil: number;
}

/** How much of an endpoint's work is wanted. */
export interface Want {
  readonly endpointId: string;
  readonly max: number;
}

/** The attempts that run, over all and by endpoint. */
export class InFlight {
  readonly #flights = new Map<string, Flight>();
  readonly #byEndpoint = new Map<string, number>();
  readonly #max: number;
  #turn = 0;

  /** At most `max` over all endpoints. */
  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#flights.size;
  }

  /** How many more may run. */
  get free(): number {
    return Math.max(0, this.#max - this.#flights.size);
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

  /**
   * How many more attempts each endpoint may begin, `most` together. Where not all can have what they could, each gets
   * one in turn, and another one begins the next time.
   */
  wants(
    endpoints: readonly { readonly id: string; readonly concurrency: number }[],
    most: number = this.#max,
  ): Want[] {
    const free = endpoints.map(({ id, concurrency }) => Math.max(0, concurrency - this.of(id)));
    const given = endpoints.map(() => 0);
    let left = Math.min(most, this.free);
    const first = endpoints.length === 0 ? 0 : this.#turn++ % endpoints.length;
    for (let round = 0; left > 0; round++) {
      let isAnyLeft = false;
      for (let step = 0; step < endpoints.length && left > 0; step++) {
        const index = (first + step) % endpoints.length;
        if ((free[index] ?? 0) <= round) continue;
        given[index] = round + 1;
        left--;
        isAnyLeft = true;
      }
      if (!isAnyLeft) break;
    }
    return endpoints.flatMap(({ id }, index) => {
      const max = given[index] ?? 0;
      return max === 0 ? [] : [{ endpointId: id, max }];
    });
  }
}
