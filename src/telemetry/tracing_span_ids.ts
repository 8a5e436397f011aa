/** Random octets that are fetched at a time, because one fetch costs as much as using many. */
const POOL_BYTES = 1_024;
const TRACE_ID_DIGITS = 32;
const SPAN_ID_DIGITS = 16;
const ALL_ZERO = /^0+$/;

const pool = new Uint8Array(POOL_BYTES);
let digits = "";
let used = 0;

/** A new trace id: 32 digits of lower-case hexadecimal, not all zero. */
export function newTraceId(): string {
  return randomHex(TRACE_ID_DIGITS);
}

/** A new span id: 16 such digits. */
export function newSpanId(): string {
  return randomHex(SPAN_ID_DIGITS);
}

function randomHex(length: number): string {
  if (used + length > digits.length) {
    digits = crypto.getRandomValues(pool).toHex();
    used = 0;
  }
  const text = digits.slice(used, used + length);
  used += length;
  return text.startsWith("0") && ALL_ZERO.test(text) ? randomHex(length) : text;
}
