import type { CounterPlace } from "../ratelimit/counter_cache.ts";

/** Cells take 8 bytes each. */
const CELLS = 65_536;
/** The upper bits of a cell are its generation, the others the count. */
const GENERATION = 2n ** 47n;
const GENERATIONS = 2 ** 15;
/** A count stays below the next generation; no limit is this high. */
const MAX_COUNT = 2 ** 46;

/** Memory for the cells, which threads share. */
export function createCells(): BigInt64Array {
  return new BigInt64Array(new SharedArrayBuffer(CELLS * BigInt64Array.BYTES_PER_ELEMENT));
}

/** Where a counter is, for other threads. */
export interface CellPlace {
  readonly index: number;
  readonly generation: number;
}

/**
 * A counter in memory that threads share. Once it is freed, or used for another counter, it belongs to a new
 * generation, and those that know it from before can neither read nor change it.
 */
export class SharedCell implements CounterPlace {
  readonly #cells: BigInt64Array;
  readonly #place: CellPlace;
  readonly #base: bigint;

  constructor(cells: BigInt64Array, place: CellPlace) {
    this.#cells = cells;
    this.#place = place;
    this.#base = BigInt(place.generation) * GENERATION;
  }

  /** For other threads. */
  get place(): CellPlace {
    return this.#place;
  }

  /** The count; undefined after the cell was freed. */
  get count(): number | undefined {
    return this.#countOf(Atomics.load(this.#cells, this.#place.index));
  }

  addWithin(limit: number, addend: number): number | undefined {
    return this.#change((count) => count + addend > limit ? undefined : count + addend);
  }

  /** Adds to the counter, which stops at 0; returns the count. */
  add(addend: number): number | undefined {
    return this.#change((count) => Math.min(MAX_COUNT, Math.max(0, count + addend)));
  }

  /** Frees the cell; returns the place of the next counter there. */
  free(): CellPlace {
    const { index, generation } = this.#place;
    const next = { index, generation: (generation + 1) % GENERATIONS };
    Atomics.store(this.#cells, index, BigInt(next.generation) * GENERATION);
    return next;
  }

  /** Changes the count, or leaves it where the next one is undefined; returns the next one. */
  #change(nextOf: (count: number) => number | undefined): number | undefined {
    for (;;) {
      const before = Atomics.load(this.#cells, this.#place.index);
      const count = this.#countOf(before);
      const next = count === undefined ? undefined : nextOf(count);
      if (next === undefined) return undefined;
      const after = this.#base + BigInt(next);
      if (Atomics.compareExchange(this.#cells, this.#place.index, before, after) === before) return next;
    }
  }

  #countOf(value: bigint): number | undefined {
    const count = Number(value - this.#base);
    return count >= 0 && count <= MAX_COUNT ? count : undefined;
  }
}
