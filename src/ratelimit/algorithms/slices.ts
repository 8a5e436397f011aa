import { HELD_US, type Taken } from "./taken.ts";

/** At most `limit` hits in the current slice of time and in the 16 before it. */
export interface SliceLimit {
  readonly kind: "slices";
  readonly limit: number;
  /** A sixteenth of the window or of the lease, in microseconds. */
  readonly sliceUs: number;
}

/** Slices of a window. */
export const SLICES = 16;
/** With the current slice. */
const COUNTED = SLICES + 1;
/**
 * Numbers of the state of one counter: the index of the newest slice (microseconds since the epoch divided by the
 * length of a slice), the sum, and the hits of 17 slices, each at its index modulo 17. A new counter is all zeros.
 */
export const SLICE_STATE_SIZE = 2 + COUNTED;

/** The limit over a window of so many milliseconds. */
export function sliceLimit(limit: number, windowMs: number): SliceLimit {
  return { kind: "slices", limit, sliceUs: Math.ceil(windowMs * 1_000 / SLICES) };
}

/**
 * Takes hits from the counter whose state starts at `at`: all of them or none. 0 asks, and a negative number gives back,
 * from the oldest slice on.
 */
export function takeFromSlices(
  state: Float64Array,
  at: number,
  { limit, sliceUs }: SliceLimit,
  nowUs: number,
  hits: number,
): Taken {
  const head = moveTo(state, at, sliceUs, nowUs);
  let used = state[at + 1] ?? 0;
  let granted = true;
  if (hits < 0) {
    used = giveBack(state, at, head, -hits);
  } else {
    granted = hits === 0 ? used < limit : used + hits <= limit;
    if (granted && hits > 0) {
      const slot = slotAt(at, head);
      state[slot] = (state[slot] ?? 0) + hits;
      state[at + 1] = used += hits;
    }
  }
  return {
    granted,
    used,
    available: Math.max(0, limit - used),
    retryMs: used < limit ? 0 : msUntilBelow(state, at, { limit, sliceUs, head, nowUs }),
    freeMs: used === 0 ? 0 : msUntilFree(state, at, { sliceUs, head, nowUs }),
  };
}

/** Moves the counter to the slice of this time, and returns the index of its newest slice. */
function moveTo(state: Float64Array, at: number, sliceUs: number, nowUs: number): number {
  const index = Math.floor(nowUs / sliceUs);
  const head = state[at] ?? 0;
  if (index === head) return head;
  const used = state[at + 1] ?? 0;
  if (index < head) {
    // A clock that was set back: time stands still for up to a second; otherwise all hits count as new.
    if (used > 0 && head * sliceUs - nowUs <= HELD_US) return head;
    state.fill(0, at + 2, at + SLICE_STATE_SIZE);
    state[slotAt(at, index)] = used;
  } else if (index - head > SLICES) {
    state.fill(0, at + 1, at + SLICE_STATE_SIZE);
  } else if (used > 0) {
    let left = used;
    for (let passed = head + 1; passed <= index; passed++) {
      const slot = slotAt(at, passed);
      left -= state[slot] ?? 0;
      state[slot] = 0;
    }
    state[at + 1] = left;
  }
  state[at] = index;
  return index;
}

/** Gives back from the oldest slice on, and returns what is left. */
function giveBack(state: Float64Array, at: number, head: number, hits: number): number {
  let left = Math.min(hits, state[at + 1] ?? 0);
  state[at + 1] = (state[at + 1] ?? 0) - left;
  for (let index = Math.max(0, head - SLICES); left > 0 && index <= head; index++) {
    const slot = slotAt(at, index);
    const given = Math.min(left, state[slot] ?? 0);
    state[slot] = (state[slot] ?? 0) - given;
    left -= given;
  }
  return state[at + 1] ?? 0;
}

interface Instant {
  readonly sliceUs: number;
  readonly head: number;
  readonly nowUs: number;
}

function msUntilBelow(
  state: Float64Array,
  at: number,
  { limit, ...instant }: Instant & { readonly limit: number },
): number {
  // No hit ever passes: any wait would do.
  if (limit === 0) return Math.ceil(COUNTED * instant.sliceUs / 1_000);
  let left = state[at + 1] ?? 0;
  let index = Math.max(0, instant.head - SLICES);
  for (; index < instant.head; index++) {
    left -= state[slotAt(at, index)] ?? 0;
    if (left < limit) break;
  }
  return msUntilGone(index, instant);
}

function msUntilFree(state: Float64Array, at: number, instant: Instant): number {
  let index = instant.head;
  // Bounded, because a shared cache may hold a sum without hits.
  const oldest = Math.max(0, index - SLICES);
  while (index > oldest && state[slotAt(at, index)] === 0) index--;
  return msUntilGone(index, instant);
}

/** Milliseconds until a slice no longer counts. */
function msUntilGone(index: number, { sliceUs, nowUs }: Instant): number {
  return Math.ceil(((index + COUNTED) * sliceUs - nowUs) / 1_000);
}

function slotAt(at: number, index: number): number {
  return at + 2 + index % COUNTED;
}
