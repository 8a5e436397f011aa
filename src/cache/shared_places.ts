import { atTurnEnd, TurnBatch } from "../base/turn.ts";
import type { CounterPlace, Hit } from "../ratelimit/counter_cache.ts";
import { type CellPlace, SharedCell } from "./shared_cells.ts";

/** A counter whose place is asked for. */
export type PlaceQuestion = Pick<Hit, "key" | "windowEnd">;

/** The place of a counter; absent if it has none. */
export interface PlaceAnswer {
  readonly key: string;
  readonly place: CellPlace | undefined;
}

/** A place, and until when it is kept for the counter. */
interface KnownPlace {
  readonly cell: SharedCell;
  readonly windowEnd: number;
}

/** Places that are kept, and those that are asked for at the same time. */
const MAX_PLACES = 65_536;
const MAX_ASKED = 1_000;

/** The places of counters in the memory that another thread shares with this one. */
export class SharedPlaces {
  readonly #cells: BigInt64Array;
  readonly #places = new Map<string, KnownPlace>();
  /** Keys without an answer, with the end of the window. */
  readonly #asked = new Map<string, number>();
  readonly #questions: TurnBatch<PlaceQuestion>;

  constructor(cells: BigInt64Array, post: (questions: readonly PlaceQuestion[]) => void) {
    this.#cells = cells;
    this.#questions = new TurnBatch(post, { defer: atTurnEnd });
  }

  /** The place of a counter if it is known to stay for the whole window; otherwise it is asked for. */
  placeOf({ key, windowEnd }: Hit): CounterPlace | undefined {
    const known = this.#places.get(key);
    if (known !== undefined && known.windowEnd >= windowEnd && known.cell.count !== undefined) {
      return known.cell;
    }
    this.#places.delete(key);
    if (this.#asked.has(key) || this.#asked.size >= MAX_ASKED) return undefined;
    this.#asked.set(key, windowEnd);
    this.#questions.add({ key, windowEnd });
    return undefined;
  }

  /** Takes the answers to earlier questions. */
  take(answers: readonly PlaceAnswer[]): void {
    for (const { key, place } of answers) {
      const windowEnd = this.#asked.get(key);
      this.#asked.delete(key);
      if (place === undefined || windowEnd === undefined) continue;
      if (this.#places.size >= MAX_PLACES) this.#places.clear();
      this.#places.set(key, { cell: new SharedCell(this.#cells, place), windowEnd });
    }
  }
}
