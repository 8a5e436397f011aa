import { setImmediate } from "node:timers";
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
  readonly #post: (questions: readonly PlaceQuestion[]) => void;
  readonly #places = new Map<string, KnownPlace>();
  /** Keys without an answer, with the end of the window; those of the next message. */
  readonly #asked = new Map<string, number>();
  #questions: PlaceQuestion[] = [];

  constructor(cells: BigInt64Array, post: (questions: readonly PlaceQuestion[]) => void) {
    this.#cells = cells;
    this.#post = post;
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
    if (this.#questions.push({ key, windowEnd }) === 1) setImmediate(() => this.#ask());
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

  #ask(): void {
    const questions = this.#questions;
    this.#questions = [];
    this.#post(questions);
  }
}
