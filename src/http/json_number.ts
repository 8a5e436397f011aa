/** The largest integer that JSON requests may hold. */
export const MAX_WHOLE_NUMBER = 2 ** 53;

const NUMBER = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
const PLAIN = /^(?:0|[1-9]\d{0,14})$/;
const DIGITS_OF_MAX = String(MAX_WHOLE_NUMBER).length;

/** The integer of a JSON number such as `1.0` or `1e2`; undefined for others, and an infinity beyond 2^53 either way. */
export function wholeNumber(source: string): number | undefined {
  if (PLAIN.test(source)) return Number(source);
  const match = NUMBER.exec(source);
  if (match === null) return undefined;
  const [, sign, whole = "", fraction = "", exponent = "0"] = match;
  const digits = whole + fraction;
  const kept = lengthWithoutTrailingZeros(digits);
  const significant = digits.slice(0, kept).replace(/^0+/, "");
  if (significant === "") return 0;
  const zeros = Number(exponent) - fraction.length + (digits.length - kept);
  if (zeros < 0) return undefined;
  const size = magnitude(significant, zeros);
  return sign === "-" ? -size : size;
}

function magnitude(significant: string, zeros: number): number {
  // Before the zeros are written: an exponent of a billion costs nothing.
  if (significant.length + zeros > DIGITS_OF_MAX) return Infinity;
  const exact = BigInt(significant + "0".repeat(zeros));
  return exact > BigInt(MAX_WHOLE_NUMBER) ? Infinity : Number(exact);
}

function lengthWithoutTrailingZeros(digits: string): number {
  let length = digits.length;
  while (length > 0 && digits[length - 1] === "0") length--;
  return length;
}
