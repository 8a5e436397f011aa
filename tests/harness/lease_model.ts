import { MAX_PLACES_OF_HOLDER } from "../../src/ratelimit/algorithms/leases.ts";
import type { Taken } from "../../src/ratelimit/algorithms/taken.ts";

/** Leases as a list, which is searched from end to end: the simplest that counts them. */
export class LeaseModel {
  limit: number;
  readonly #leaseUs: number;
  #places: { readonly holder: string; readonly untilUs: number }[] = [];

  constructor(limit: number, leaseUs: number) {
    this.limit = limit;
    this.#leaseUs = leaseUs;
  }

  /** Takes as a counter does, by a clock that is not set back. */
  take(nowUs: number, holder: string, hits: number): Taken {
    this.#places = this.#places.filter(({ untilUs }) => untilUs > nowUs);
    const room = () => {
      const held = this.#places.filter((place) => place.holder === holder).length;
      return Math.max(0, Math.min(this.limit - this.#places.length, MAX_PLACES_OF_HOLDER - held));
    };
    const granted = hits < 0 || Math.max(1, hits) <= room();
    for (let left = hits; granted && left > 0; left--) {
      this.#places.push({ holder, untilUs: nowUs + this.#leaseUs });
    }
    for (let left = -hits; left > 0; left--) {
      const newest = this.#places.findLastIndex((place) => place.holder === holder);
      if (newest < 0) break;
      this.#places.splice(newest, 1);
    }
    const freeMs = msUntil(nowUs, this.#places.at(-1)?.untilUs ?? nowUs);
    return {
      granted,
      used: this.#places.length,
      available: room(),
      retryMs: room() > 0 ? 0 : this.#retryMs(nowUs, holder),
      freeMs,
    };
  }

  /** Waits for one end after the other. */
  #retryMs(nowUs: number, holder: string): number {
    if (this.limit === 0) return this.#leaseUs / 1_000;
    for (const { untilUs } of this.#places) {
      const left = this.#places.filter((place) => place.untilUs > untilUs);
      const held = left.filter((place) => place.holder === holder).length;
      if (left.length < this.limit && held < MAX_PLACES_OF_HOLDER) return msUntil(nowUs, untilUs);
    }
    return 0;
  }
}

function msUntil(nowUs: number, untilUs: number): number {
  return Math.ceil((untilUs - nowUs) / 1_000);
}
