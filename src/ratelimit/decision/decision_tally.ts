import { TopKeys } from "./top_keys.ts";

/** The share of one thread in the tally of the process. */
export interface TallyDelta {
  readonly total: number;
  readonly overLimit: number;
  readonly keys: readonly { readonly key: string; readonly count: number }[];
}

const TOP_KEYS = { capacity: 256, maxKeyLength: 256, halvingSeconds: 600 };

/** Totals of decisions since the start. */
export class DecisionTally {
  total = 0;
  overLimit = 0;
  /** The keys most often over their limit; older hits lose half their weight every ten minutes. */
  overLimitKeys: TopKeys = new TopKeys(TOP_KEYS);

  /** Returns what was added since the last take, and starts again from zero. */
  take(nowSeconds: number): TallyDelta {
    const { total, overLimit } = this;
    if (total === 0) return { total, overLimit, keys: [] };
    const keys = this.overLimitKeys.top(TOP_KEYS.capacity, nowSeconds);
    if (keys.length > 0) this.overLimitKeys = new TopKeys(TOP_KEYS);
    this.total = 0;
    this.overLimit = 0;
    return { total, overLimit, keys: keys.map(({ key, count }) => ({ key, count })) };
  }

  /** Adds the decisions of another thread. */
  add({ total, overLimit, keys }: TallyDelta, nowSeconds: number): void {
    this.total += total;
    this.overLimit += overLimit;
    for (const { key, count } of keys) {
      this.overLimitKeys.add({ text: key, start: 0, end: key.length, hits: count, nowSeconds });
    }
  }
}
