import { parseDuration } from "./duration.ts";

/**
 * RFC 3339, section 5.6, without leap seconds, which milliseconds since the epoch cannot represent. `Temporal` accepts
 * more than this, but takes at most nine digits of a fraction.
 */
const TIME =
  /^(\d{4}-\d{2}-\d{2}t(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(\.\d{1,9})?(?:(?<=\.\d{9})\d+)?(z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i;
/** The first millisecond of the year 0: RFC 3339 has no earlier years. */
const FIRST_MS = -62_167_219_200_000;

/** An RFC 3339 time, or a duration before `now`, in milliseconds since the Unix epoch; undefined for any other text. */
export function parseMoment(text: string, now: number): number | undefined {
  const ago = parseDuration(text);
  const time = ago === undefined ? parseTime(text) : Math.trunc(now - ago);
  return time !== undefined && time >= FIRST_MS ? time : undefined;
}

/** A time in milliseconds since the Unix epoch as RFC 3339 text in UTC. */
export function timeText(ms: number): string {
  return new Date(Math.trunc(ms)).toISOString();
}

/** The same for a time that may be absent. */
export function timeTextIf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : timeText(ms);
}

/** The milliseconds since the Unix epoch of an RFC 3339 text, rounded down; undefined for any other text. */
export function parseTime(text: string): number | undefined {
  const [, time, fraction = "", offset] = TIME.exec(text) ?? [];
  if (time === undefined || offset === undefined) return undefined;
  try {
    return Temporal.Instant.from(time + fraction + offset).epochMilliseconds;
  } catch {
    // A day that its month does not have.
    return undefined;
  }
}
