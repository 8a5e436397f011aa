/**
 * The smallest of `values` that at least `percent` of a hundred of them do not exceed (nearest rank);
 * 0 when there are none. The values need no order.
 */
export function percentile(values: ArrayLike<number>, percent: number): number {
  const sorted = Float64Array.from(values).sort();
  const rank = Math.max(1, Math.ceil(percent / 100 * sorted.length));
  return sorted[rank - 1] ?? 0;
}

/** The value in the middle, of an even number of values the mean of both; 0 when there are none. */
export function median(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  if (sorted.length % 2 === 1) return upper;
  return (upper + (sorted[middle - 1] ?? upper)) / 2;
}
