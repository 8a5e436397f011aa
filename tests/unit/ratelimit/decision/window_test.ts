import { assertEquals } from "#assert";
import { UNIT_NAMES, unitOfName, unitOfNumber, UNITS } from "../../../../src/ratelimit/units.ts";
import { secondsUntilReset, windowOf } from "../../../../src/ratelimit/decision/window.ts";

/** now, window in seconds, start, seconds until the reset. */
const WINDOWS: readonly [number, number, number, number][] = [
  [1_700_000_000, 604_800, 1_699_488_000, 92_800],
  [60, 60, 60, 60],
  [59, 60, 0, 1],
  [1_700_000_000, 300, 1_699_999_800, 100],
  [1_700_000_000, 31_536_000 * 4_294_967_295, 0, 315_576_000_000],
];

for (const [now, seconds, start, reset] of WINDOWS) {
  Deno.test(`window of ${seconds} s at ${now}`, () => {
    const windows = { windowSeconds: seconds, calendar: undefined };
    assertEquals(windowOf(windows, now), { start, end: start + seconds });
    assertEquals(secondsUntilReset(windows, now), reset);
  });
}

Deno.test("units: by name in any letter case and by number", () => {
  assertEquals(UNIT_NAMES, ["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"]);
  for (const unit of UNIT_NAMES) {
    assertEquals(unitOfNumber(UNITS[unit].number), unit);
    assertEquals(unitOfName(unit.toLowerCase()), unit);
    assertEquals(unitOfName(unit), unit);
  }
  const unknown = ["unknown", "seconds", "", "constructor", "__proto__", "toString"].map(unitOfName);
  assertEquals(unknown, unknown.map(() => undefined));
  assertEquals([0, 8, -1, 1.5, NaN].map(unitOfNumber), [
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});
