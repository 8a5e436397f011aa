/**
 * Sets the wall clock of this thread ahead, as if somebody had set that of its machine; what measures how long something
 * takes is left alone, as it is there.
 */
export function shiftWallClock(aheadMs = 0): void {
  if (aheadMs === 0) return;
  const real = Date.now;
  Date.now = () => real() + aheadMs;
}
