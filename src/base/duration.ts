const NANOSECONDS_PER_UNIT: ReadonlyMap<string, number> = new Map([
  ["ns", 1],
  ["us", 1e3],
  ["µs", 1e3], // U+00B5, the micro sign
  ["μs", 1e3], // U+03BC, the Greek letter that looks the same
  ["ms", 1e6],
  ["s", 1e9],
  ["m", 60e9],
  ["h", 3_600e9],
  ["d", 86_400e9],
]);
const WHOLE = /^\+?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h|d))+$/;
const PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d)/g;
/** The range of a signed 64-bit count of nanoseconds: about 292 years. */
const MAX_NANOSECONDS = 2 ** 63;

/** The milliseconds of `150us`, `1m30s`, `1.5h`, `30d` or a bare `0`, to the nanosecond; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  if (text === "0" || text === "+0") return 0;
  if (!WHOLE.test(text)) return undefined;
  let nanoseconds = 0;
  for (const [, amount = "", unit = ""] of text.matchAll(PART)) {
    nanoseconds += Math.round(Number(amount) * (NANOSECONDS_PER_UNIT.get(unit) ?? Number.NaN));
  }
  return nanoseconds < MAX_NANOSECONDS ? nanoseconds / 1e6 : undefined;
}
