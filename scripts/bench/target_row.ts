import type { TargetRow } from "./measurements.ts";

/** The texts of a row. */
type RowTexts = Pick<TargetRow, "what" | "target" | "measured">;

/** A target that is met from the bound on. */
export function atLeast(value: number, bound: number, texts: RowTexts): TargetRow {
  return row(value >= bound, 1 - value / bound, texts);
}

/** A target that is met up to the bound. */
export function atMost(value: number, bound: number, texts: RowTexts): TargetRow {
  return row(value <= bound, value / bound - 1, texts);
}

function row(isHit: boolean, share: number, { what, target, measured }: RowTexts): TargetRow {
  return { what, target, measured, isHit, ...(isHit ? {} : { missedBy: share }) };
}
