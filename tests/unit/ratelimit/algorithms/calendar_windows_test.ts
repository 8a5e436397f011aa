import { assert, assertEquals, assertThrows } from "#assert";
import {
  type CalendarUnit,
  CalendarWindows,
  isTimezone,
} from "../../../../src/ratelimit/algorithms/calendar_windows.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";

/** With summer time, without, at odd offsets, with a midnight that is missing or comes twice, and with a day that is missing. */
const ZONES = [
  "UTC",
  "Europe/Paris",
  "America/New_York",
  "America/Santiago",
  "America/St_Johns",
  "Africa/Casablanca",
  "Africa/Cairo",
  "Antarctica/Troll",
  "Asia/Kathmandu",
  "Asia/Tokyo",
  "Australia/Lord_Howe",
  "Pacific/Apia",
  "Pacific/Chatham",
  "Pacific/Kiritimati",
];
const UNITS: readonly (readonly [CalendarUnit, number])[] = [
  ["DAY", 1],
  ["WEEK", 1],
  ["MONTH", 1],
  ["MONTH", 2],
  ["MONTH", 3],
  ["MONTH", 6],
  ["YEAR", 1],
];

const seconds = (text: string) => Date.parse(text) / 1_000;
const text = (at: number) => new Date(at * 1_000).toISOString().replace(".000Z", "Z");

interface Case {
  readonly name: string;
  readonly unit: CalendarUnit;
  readonly multiplier?: number;
  readonly zone?: string;
  readonly at: string;
  readonly window: readonly [start: string, end: string];
}

const CASES: readonly Case[] = [
  {
    name: "a month of 31 days",
    unit: "MONTH",
    at: "2026-01-31T12:00:00Z",
    window: ["2026-01-01", "2026-02-01"],
  },
  {
    name: "its first second",
    unit: "MONTH",
    at: "2026-01-01T00:00:00Z",
    window: ["2026-01-01", "2026-02-01"],
  },
  {
    name: "its last second",
    unit: "MONTH",
    at: "2026-01-31T23:59:59Z",
    window: ["2026-01-01", "2026-02-01"],
  },
  {
    name: "the first of the next",
    unit: "MONTH",
    at: "2026-02-01T00:00:00Z",
    window: ["2026-02-01", "2026-03-01"],
  },
  {
    name: "February in a leap year",
    unit: "MONTH",
    at: "2028-02-29T00:00:00Z",
    window: ["2028-02-01", "2028-03-01"],
  },
  { name: "December", unit: "MONTH", at: "2026-12-31T23:59:59Z", window: ["2026-12-01", "2027-01-01"] },
  { name: "a leap year", unit: "YEAR", at: "2028-12-31T23:59:59Z", window: ["2028-01-01", "2029-01-01"] },
  { name: "2100 is none", unit: "MONTH", at: "2100-02-28T23:59:59Z", window: ["2100-02-01", "2100-03-01"] },
  {
    name: "a quarter",
    unit: "MONTH",
    multiplier: 3,
    at: "2026-11-29T00:00:00Z",
    window: ["2026-10-01", "2027-01-01"],
  },
  {
    name: "a week from Monday",
    unit: "WEEK",
    at: "2026-11-29T23:59:59Z",
    window: ["2026-11-23", "2026-11-30"],
  },
  { name: "a day", unit: "DAY", at: "2026-11-29T23:59:59Z", window: ["2026-11-29", "2026-11-30"] },
  {
    name: "a day of 23 hours",
    unit: "DAY",
    zone: "Europe/Paris",
    at: "2026-03-29T12:00:00Z",
    window: ["2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"],
  },
  {
    name: "a day of 25 hours",
    unit: "DAY",
    zone: "Europe/Paris",
    at: "2026-10-25T12:00:00Z",
    window: ["2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"],
  },
  {
    name: "a month that begins in another one of UTC",
    unit: "MONTH",
    zone: "Europe/Paris",
    at: "2026-10-31T23:30:00Z",
    window: ["2026-10-31T23:00:00Z", "2026-11-30T23:00:00Z"],
  },
  {
    name: "a midnight that is missing",
    unit: "DAY",
    zone: "America/Santiago",
    at: "2026-09-06T12:00:00Z",
    window: ["2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"],
  },
  {
    name: "an hour before midnight that comes twice",
    unit: "DAY",
    zone: "America/Santiago",
    at: "2026-04-05T03:30:00Z",
    window: ["2026-04-04T03:00:00Z", "2026-04-05T04:00:00Z"],
  },
  {
    name: "a minute after midnight that comes twice",
    unit: "DAY",
    zone: "America/St_Johns",
    at: "2006-10-29T03:00:00Z",
    window: ["2006-10-29T02:30:00Z", "2006-10-30T03:30:00Z"],
  },
  {
    name: "the day before one that is missing",
    unit: "DAY",
    zone: "Pacific/Apia",
    at: "2011-12-30T09:59:59Z",
    window: ["2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"],
  },
  {
    name: "the day after it",
    unit: "DAY",
    zone: "Pacific/Apia",
    at: "2011-12-30T10:00:00Z",
    window: ["2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"],
  },
  {
    name: "a week that has six days",
    unit: "WEEK",
    zone: "Pacific/Apia",
    at: "2011-12-31T00:00:00Z",
    window: ["2011-12-26T10:00:00Z", "2012-01-01T10:00:00Z"],
  },
];

for (const { name, unit, multiplier = 1, zone = "UTC", at, window } of CASES) {
  Deno.test(`calendar windows: ${name} (${unit}, ${zone})`, () => {
    const { start, end } = new CalendarWindows(unit, multiplier, zone).at(seconds(at));
    assertEquals([text(start), text(end)], window.map((one) => text(seconds(one))));
  });
}

for (const zone of ZONES) {
  Deno.test(`calendar windows: they follow each other, and begin with a date of ${zone}`, () => {
    const random = seededRandom(39);
    const periodAt = periodsIn(zone);
    const [from, until] = [seconds("1975-01-01"), seconds("2040-01-01")];
    for (const [unit, multiplier] of UNITS) {
      const windows = new CalendarWindows(unit, multiplier, zone);
      for (let time = 0; time < 25; time++) {
        // In half of them, near the end of the window before.
        const near = windows.at(Math.floor(from + random() * (until - from))).end;
        const at = random() < 0.5 ? near + Math.floor(random() * 7_200) - 3_600 : near;
        const { start, end } = windows.at(at);
        const [before, after] = [windows.at(start - 1), windows.at(end)];
        const where = `${unit} ${multiplier} at ${text(at)}`;
        assert(start <= at && at < end, where);
        assertEquals([before.end, after.start], [start, end], where);
        assertEquals(windows.at(end - 1), { start, end }, where);
        const period = (second: number) => periodAt(second, unit, multiplier);
        assert(period(start - 1) < period(start), `${where}: nothing begins`);
        assert(period(end - 1) < period(end), `${where}: nothing ends`);
      }
    }
  });
}

for (const zone of ["UTC", "Europe/Paris", "Africa/Casablanca", "Antarctica/Troll", "Australia/Lord_Howe"]) {
  Deno.test(`calendar windows: none is longer than the longest of ${zone}`, () => {
    const [from, until] = [seconds("2027-01-01"), seconds("2029-06-01")];
    for (const [unit, multiplier] of UNITS) {
      const windows = new CalendarWindows(unit, multiplier, zone);
      let longest = 0;
      for (let { start, end } = windows.at(from); end < until; { start, end } = windows.at(end)) {
        longest = Math.max(longest, end - start);
      }
      assert(longest <= windows.longestSeconds && windows.longestSeconds <= longest + 7_200);
    }
  });
}

Deno.test("calendar windows: the longest of UTC are exact", () => {
  const days = UNITS.map(([unit, multiplier]) =>
    new CalendarWindows(unit, multiplier, "UTC").longestSeconds / 86_400
  );
  assertEquals(days, [1, 7, 31, 62, 92, 184, 366]);
});

Deno.test("calendar windows: names of time zones", () => {
  const known = ["UTC", "Europe/Paris", "europe/paris", "Etc/GMT+12", "GMT"];
  const unknown = ["", " ", "Europe", "Europe/Pariss", "Mars/Olympus", "UTC+1", "local", "__proto__", "\0"];
  assertEquals([...known, ...unknown].filter(isTimezone), known);
  assert(assertThrows(() => new CalendarWindows("DAY", 1, "Mars/Olympus")) instanceof RangeError);
});

/** The number of the period of the local date, found in another way. */
function periodsIn(zone: string): (at: number, unit: CalendarUnit, multiplier: number) => number {
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short" });
  return (at, unit, multiplier) => {
    const date = format.format(at * 1_000);
    const [year = 0, month = 0] = date.split("-").map(Number);
    const day = seconds(date) / 86_400;
    switch (unit) {
      case "DAY":
        return day;
      case "WEEK":
        return Math.floor((day + 3) / 7);
      case "MONTH":
        return Math.floor((year * 12 + month - 1) / multiplier);
      case "YEAR":
        return year;
    }
  };
}

Deno.test("calendar: the zone of many rules is opened once", () => {
  const { DateTimeFormat } = Intl;
  let opened = 0;
  Intl.DateTimeFormat = new Proxy(DateTimeFormat, {
    construct(target, args) {
      opened++;
      return Reflect.construct(target, args);
    },
  });
  try {
    for (let rule = 0; rule < 100; rule++) assert(isTimezone("America/Bogota"));
    for (const unit of ["DAY", "MONTH"] as const) new CalendarWindows(unit, 1, "America/Bogota");
    assert(!isTimezone("America/Bogotá"));
  } finally {
    Intl.DateTimeFormat = DateTimeFormat;
  }
  assertEquals(opened, 2);
});
