import { parseDuration } from "./duration.ts";

// RFC 3339, section 5.6. A leap second has no place of its own in milliseconds since the epoch, and is refused.
const TIME =
  /^(\d{4})-(\d{2})-(\d{2})t([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d+))?(?:z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i;

const MINUTE_MS = 60_000;

/** The first millisecond of the year 0: years of more than four digits have no place in RFC 3339. */
const FIRST_MS = -62_167_219_200_000;

/** A time of RFC 3339, or a duration before `now`, in milliseconds since the Unix epoch; nothing when it is neither. */
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

/** The milliseconds since the Unix epoch of an RFC 3339 text; nothing when it is none. What is shorter than a millisecond is cut off. */
export function parseTime(text: string): number | undefined {
  const match = TIME.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = "", sign, offsetHours, offsetMinutes] = match;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  // A day that its month does not have has become one of the next.
  if (date.getUTCMonth() !== Number(month) - 1) return undefined;
  date.setUTCHours(Number(hour), Number(minute), Number(second), Number(fraction.slice(0, 3).padEnd(3, "0")));
  const offsetMs = (Number(offsetHours ?? 0) * 60 + Number(offsetMinutes ?? 0)) * MINUTE_MS;
  return date.getTime() - (sign === "-" ? -offsetMs : offsetMs);
}
