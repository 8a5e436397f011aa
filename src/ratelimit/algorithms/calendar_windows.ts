/** Seconds since the epoch: from the start to before the end. */
export interface Window {
  readonly start: number;
  readonly end: number;
}

/** A unit whose windows can follow a calendar. */
export type CalendarUnit = "DAY" | "WEEK" | "MONTH" | "YEAR";

/** True if windows of this unit can follow a calendar. */
export function isCalendarUnit(unit: string | undefined): unit is CalendarUnit {
  return unit === "DAY" || unit === "WEEK" || unit === "MONTH" || unit === "YEAR";
}

/** True for windows that `USE_CALENDAR_MONTH_RATE_LIMIT` concerns, if they are fixed. */
export function isMonthOrYear(unit: string | undefined, multiplier: number): unit is "MONTH" | "YEAR" {
  return (unit === "MONTH" || unit === "YEAR") && multiplier === 1;
}

const DAY_SECONDS = 86_400;
/** The months whose offsets tell how far the clocks of a zone are set back: those of these years. */
const SAMPLED_YEARS = { from: 2025, to: 2036 };
/** Local time differs from UTC by less than this. */
const LARGEST_OFFSET_SECONDS = 16 * 3_600;
/** Two changes of an offset are further apart than this. */
const STEP_SECONDS = 4 * 3_600;
/** A day that is the first of its week, in days since the epoch: Monday, 29 December 1969. */
const FIRST_MONDAY = -3;
const NO_WINDOW: Window = { start: 0, end: 0 };

/** True if this is the name of a time zone, in any letter case. */
export function isTimezone(name: string): boolean {
  try {
    localTimeIn(name);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/**
 * The windows of one unit in one time zone: days from midnight, weeks from Monday as in ISO 8601, months, parts of a year that have
 * several months, and years. Without a gap or an overlap, also where a midnight, or a day, does not exist or comes twice.
 */
export class CalendarWindows {
  readonly timezone: string;
  /** Units per window. */
  readonly multiplier: number;
  /** The length of the longest window, in seconds. */
  readonly longestSeconds: number;
  readonly #localTime: LocalTime;
  readonly #periods: Periods;
  /** The last one that was asked for: most calls are in it. */
  #current = NO_WINDOW;

  /** With months, `multiplier` divides the year. Throws a `RangeError` for an unknown zone. */
  constructor(unit: CalendarUnit, multiplier: number, timezone: string) {
    this.timezone = timezone;
    this.multiplier = multiplier;
    this.#localTime = localTimeIn(timezone);
    this.#periods = unit === "DAY" || unit === "WEEK"
      ? periodsOfDays(unit === "DAY" ? 1 : 7)
      : periodsOfMonths(unit === "YEAR" ? 12 : multiplier);
    this.longestSeconds = this.#periods.mostDays * DAY_SECONDS + largestChange(this.#localTime);
  }

  /** The window that contains this time. */
  at(nowSeconds: number): Window {
    const { start, end } = this.#current;
    if (nowSeconds < start || nowSeconds >= end) this.#current = this.#find(nowSeconds);
    return this.#current;
  }

  #find(nowSeconds: number): Window {
    const localDay = Math.floor((nowSeconds + this.#localTime.offsetAt(nowSeconds)) / DAY_SECONDS);
    let period = this.#periods.indexOf(localDay);
    let start = this.#startOf(period);
    let end = this.#startOf(period + 1);
    // Clocks that are set back over midnight show a date again whose window is over.
    while (end <= nowSeconds) {
      start = end;
      end = this.#startOf(++period + 1);
    }
    return { start, end };
  }

  #startOf(period: number): number {
    return firstAt(this.#periods.firstDayOf(period) * DAY_SECONDS, this.#localTime);
  }
}

/** Periods that follow each other, by number; days are in days since 1970-01-01. */
interface Periods {
  readonly mostDays: number;
  indexOf(day: number): number;
  firstDayOf(period: number): number;
}

function periodsOfDays(days: number): Periods {
  const shift = days === 7 ? FIRST_MONDAY : 0;
  return {
    mostDays: days,
    indexOf: (day) => Math.floor((day - shift) / days),
    firstDayOf: (period) => period * days + shift,
  };
}

function periodsOfMonths(months: number): Periods {
  const firstDayOf = (period: number) => dayOf(period * months);
  // Of a leap year.
  const starts = Array.from(
    { length: 12 / months + 1 },
    (_, index) => dayOf((2024 - 1970) * 12 + index * months),
  );
  return {
    mostDays: Math.max(...starts.map((day, index) => day - (starts[index - 1] ?? day))),
    indexOf(day) {
      const date = new Date(day * DAY_SECONDS * 1_000);
      return Math.floor(((date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()) / months);
    },
    firstDayOf,
  };
}

/** The first day of a month, which is in months since January 1970. */
function dayOf(month: number): number {
  return Date.UTC(1970, month, 1) / (DAY_SECONDS * 1_000);
}

/** The local time of a zone. */
interface LocalTime {
  /** Seconds to add to UTC at this time. */
  offsetAt(seconds: number): number;
}

const UTC: LocalTime = { offsetAt: () => 0 };
/** By the names in rules, since a formatter of a zone takes time and memory. */
const KNOWN_ZONES = new Map([["UTC", UTC]]);
/** More than there are zones; each name may be in any letter case. */
const MAX_KNOWN_ZONES = 1_000;

/** Throws a `RangeError` for an unknown zone. */
function localTimeIn(timezone: string): LocalTime {
  let known = KNOWN_ZONES.get(timezone);
  if (known === undefined) {
    known = zoneTime(timezone);
    if (KNOWN_ZONES.size < MAX_KNOWN_ZONES) KNOWN_ZONES.set(timezone, known);
  }
  return known;
}

function zoneTime(timezone: string): LocalTime {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: timezone,
    calendar: "gregory",
    numberingSystem: "latn",
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  return {
    offsetAt(seconds) {
      const parts = new Map(
        format.formatToParts(seconds * 1_000).map(({ type, value }) => [type, Number(value)]),
      );
      const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0;
      const [year, month, day] = [part("year"), part("month") - 1, part("day")];
      return Date.UTC(year, month, day, part("hour"), part("minute"), part("second")) / 1_000 - seconds;
    },
  };
}

/** Seconds by which two offsets differ at most, and windows from that of their days. */
function largestChange(localTime: LocalTime): number {
  if (localTime === UTC) return 0;
  const offsets: number[] = [];
  for (let month = 0; month < 12 * (SAMPLED_YEARS.to - SAMPLED_YEARS.from); month++) {
    offsets.push(localTime.offsetAt(Date.UTC(SAMPLED_YEARS.from, month, 15) / 1_000));
  }
  return Math.max(...offsets) - Math.min(...offsets);
}

/** The first time at which the local time, in seconds since 1970-01-01 00:00, is this or later. */
function firstAt(localSeconds: number, localTime: LocalTime): number {
  if (localTime === UTC) return localSeconds;
  let at = localSeconds - LARGEST_OFFSET_SECONDS;
  for (;;) {
    const offset = localTime.offsetAt(at);
    const next = at + STEP_SECONDS;
    const change = localTime.offsetAt(next) === offset ? next : changeIn(at, next, localTime);
    const first = Math.max(at, localSeconds - offset);
    if (first < change) return first;
    at = change;
  }
}

/** The first time with another offset than that at `from`, if there is one change until `until`. */
function changeIn(from: number, until: number, localTime: LocalTime): number {
  const offset = localTime.offsetAt(from);
  let [same, other] = [from, until];
  while (other - same > 1) {
    const middle = Math.floor((same + other) / 2);
    if (localTime.offsetAt(middle) === offset) same = middle;
    else other = middle;
  }
  return other;
}
