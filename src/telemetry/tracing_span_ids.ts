/** Random octets that are fetched at a time, because one fetch costs as much as using many. */
const POOL_BYTES = 1_024;
const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
const ALL_ZERO = /^0+$/;

const pool = new Uint8Array(POOL_BYTES);
let used = POOL_BYTES;

/** A new trace id: 32 digits of lower-case hexadecimal, not all zero. */
export function newTraceId(): string {
  return randomHex(TRACE_ID_BYTES);
}

/** A new span id: 16 such digits. */
export function newSpanId(): string {
  return randomHex(SPAN_ID_BYTES);
}

function randomHex(bytes: number): string {
  if (used + bytes > POOL_BYTES) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  const text = pool.subarray(used, used + bytes).toHex();
  used += bytes;
  return ALL_ZERO.test(text) ? randomHex(bytes) : text;
}
