import { type Clock, steadyClock } from "../base/clock.ts";
import type { CounterPlace, Hit } from "../ratelimit/counter_cache.ts";
import { MemoryCache } from "./memory_cache.ts";
import type { PlaceAnswer, PlaceQuestion } from "./shared_places.ts";
import { type CellPlace, createCells, SharedCell } from "./shared_cells.ts";

/** How often cells are freed at most, when none is left. */
const FREE_INTERVAL_MS = 1_000;

interface SharedCounter {
  readonly cell: SharedCell;
  windowEnd: number;
}

/**
 * Counters of which some are in memory that other threads share, so that these add to them by themselves. A counter is
 * moved there when a thread asks for its place; its key stays among the others, so that it is counted and evicted there.
 */
export class SharedMemoryCache extends MemoryCache {
  readonly cells: BigInt64Array = createCells();
  readonly #clock: Clock;
  readonly #shared = new Map<string, SharedCounter>();
  /** Places that were used before, and the first that was not. */
  readonly #free: CellPlace[] = [];
  #unused = 0;
  #freedAt = -Infinity;

  constructor(options: { readonly maxKeys: number; readonly clock: Clock }) {
    super(options);
    this.#clock = steadyClock(options.clock);
  }

  override add(hits: readonly Hit[]): number[] {
    if (this.#shared.size === 0) return super.add(hits);
    return hits.map((hit) => {
      const cell = this.#cellOf(hit);
      return (cell === undefined ? super.add([hit])[0] : cell.add(hit.addend)) ?? 0;
    });
  }

  override read(hits: readonly Hit[]): number[] {
    return hits.map((hit) => this.#shared.get(hit.key)?.cell.count ?? super.read([hit])[0] ?? 0);
  }

  override remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.#freeCell(key);
    return super.remove(keys);
  }

  /** Only of a counter that is shared: others may be moved. */
  override placeOf(hit: Hit): CounterPlace | undefined {
    return this.#cellOf(hit);
  }

  /** Moves existing counters into shared memory, as long as there is room. */
  share(questions: readonly PlaceQuestion[]): PlaceAnswer[] {
    return questions.map((question) => ({ key: question.key, place: this.#share(question) }));
  }

  #share({ key, windowEnd }: PlaceQuestion): CellPlace | undefined {
    const known = this.#cellOf({ key, windowEnd });
    if (known !== undefined) return known.place;
    const [count = 0] = super.read([{ key, windowEnd, addend: 0, expiresInSeconds: 0, perSecond: false }]);
    const place = count === 0 ? undefined : this.#takePlace();
    if (place === undefined) return undefined;
    const cell = new SharedCell(this.cells, place);
    cell.add(count);
    this.#shared.set(key, { cell, windowEnd });
    return place;
  }

  /** Windows of different lengths may share a key; the longest keeps the cell. */
  #cellOf({ key, windowEnd }: PlaceQuestion): SharedCell | undefined {
    const shared = this.#shared.get(key);
    if (shared === undefined) return undefined;
    shared.windowEnd = Math.max(shared.windowEnd, windowEnd);
    return shared.cell;
  }

  #takePlace(): CellPlace | undefined {
    if (this.#free.length === 0 && this.#unused === this.cells.length) this.#freeOver();
    const place = this.#free.pop();
    if (place !== undefined) return place;
    return this.#unused < this.cells.length ? { index: this.#unused++, generation: 0 } : undefined;
  }

  /** Frees the cells of counters whose window is over. */
  #freeOver(): void {
    const now = this.#clock.elapsed();
    if (now - this.#freedAt < FREE_INTERVAL_MS) return;
    this.#freedAt = now;
    const nowSeconds = this.#clock.now() / 1_000;
    for (const [key, { windowEnd }] of this.#shared) if (windowEnd <= nowSeconds) this.#freeCell(key);
  }

  #freeCell(key: string): void {
    const shared = this.#shared.get(key);
    if (shared === undefined) return;
    this.#shared.delete(key);
    this.#free.push(shared.cell.free());
  }
}
