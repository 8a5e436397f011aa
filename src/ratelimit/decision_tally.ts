import type { Decision } from "./decision.ts";
import { TopKeys } from "./top_keys.ts";

const CAPACITY = 256;
const MAX_KEY_LENGTH = 256;
const HALVING_SECONDS = 600;

/** What a service decided since it started, in a few numbers and in bounded room. */
export class DecisionTally {
  /** Calls that were decided. */
  total = 0;
  /** Calls of them that were over a limit. */
  overLimit = 0;
  /** The keys that were most over their limits of late: every ten minutes what was counts half. */
  readonly overLimitKeys: TopKeys = new TopKeys({
    capacity: CAPACITY,
    maxKeyLength: MAX_KEY_LENGTH,
    halvingSeconds: HALVING_SECONDS,
  });

  /** Counts a decision. */
  note({ overallCode }: Decision): void {
    this.total++;
    if (overallCode === "OVER_LIMIT") this.overLimit++;
  }

  /** Counts hits that were over the limit of a counter, by its key without prefix and start of the window. */
  noteOverLimit(
    { key, prefix, hits }: { readonly key: string; readonly prefix: string; readonly hits: number },
    nowSeconds: number,
  ): void {
    const end = key.lastIndexOf("_");
    this.overLimitKeys.add({ text: key, start: prefix.length, end, hits, nowSeconds });
  }
}
