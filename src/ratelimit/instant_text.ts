/** The last second that RFC 3339 can name: the end of the year 9999. */
const LAST_SECOND = 253_402_300_799;

/** A time in seconds since the epoch as RFC 3339 text in UTC; one beyond the year 9999 is shown as its end. */
export function instantText(seconds: number): string {
  return new Date(Math.min(seconds, LAST_SECOND) * 1_000).toISOString().replace(".000Z", "Z");
}
