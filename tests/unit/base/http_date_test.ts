import { assertEquals } from "#assert";
import { parseHttpDate } from "../../../src/base/http_date.ts";
import { parseHttpDate as parseInLibrary } from "../../../src/rest/http_date.ts";

const NOW = Date.UTC(2026, 10, 22);
const EXAMPLE = Date.UTC(1994, 10, 6, 8, 49, 37);

const DATES: Readonly<Record<string, number | undefined>> = {
  "Sun, 06 Nov 1994 08:49:37 GMT": EXAMPLE,
  "Sunday, 06-Nov-94 08:49:37 GMT": EXAMPLE,
  "Sun Nov  6 08:49:37 1994": EXAMPLE,
  " Sun, 06 Nov 1994 08:49:37 GMT ": EXAMPLE,
  "Sun, 6 Nov 1994 08:49:37 GMT": EXAMPLE,
  "sun, 06 nov 1994 08:49:37 gmt": EXAMPLE,
  "Sun, 06 Nov 1994 08:49:37 UTC": EXAMPLE,
  "Wed Nov 16 08:49:37 1994": EXAMPLE + 10 * 86_400_000,
  "Sunday, 22-Nov-76 00:00:00 GMT": Date.UTC(2076, 10, 22),
  "Tuesday, 22-Nov-77 00:00:00 GMT": Date.UTC(1977, 10, 22),
  "Tue, 29 Feb 2028 00:00:00 GMT": Date.UTC(2028, 1, 29),
  "Sat, 31 Dec 2016 23:59:60 GMT": Date.UTC(2017, 0, 1),
  "Mon, 29 Feb 2027 00:00:00 GMT": undefined,
  "Sun, 00 Nov 1994 08:49:37 GMT": undefined,
  "Sun, 31 Nov 1994 08:49:37 GMT": undefined,
  "Sun, 06 Foo 1994 08:49:37 GMT": undefined,
  "Sun, 06 Nov 1994 24:00:00 GMT": undefined,
  "Sun, 06 Nov 1994 08:60:00 GMT": undefined,
  "Sun, 06 Nov 1994 08:49:37 +0100": undefined,
  "Sun, 06 Nov 1994 08:49:37": undefined,
  "1994-11-06T08:49:37Z": undefined,
  "Nov 6, 1994": undefined,
  "2030": undefined,
  "": undefined,
};

/** Of two digits, by the year in which they are read. */
const YEARS: readonly (readonly [now: number, digits: string, year: number])[] = [
  [2026, "76", 2076],
  [2026, "77", 1977],
  [2049, "99", 2099],
  [2050, "00", 2100],
  [2051, "00", 2100],
  [2098, "05", 2105],
  [2099, "00", 2100],
  [2099, "49", 2149],
  [2099, "50", 2050],
  [2100, "99", 2099],
  [2100, "50", 2150],
  [2100, "51", 2051],
];

for (const [place, parse] of Object.entries({ "product": parseHttpDate, "library": parseInLibrary })) {
  Deno.test(`the ${place} reads a date of HTTP in all three forms, and nothing else`, () => {
    const read = Object.fromEntries(Object.keys(DATES).map((text) => [text, parse(text, NOW)]));
    assertEquals(read, DATES);
  });

  Deno.test(`the ${place} reads two digits as the nearest year`, () => {
    const read = YEARS.map(([now, digits]) => {
      const at = parse(`Sunday, 01-Jan-${digits} 00:00:00 GMT`, Date.UTC(now, 5)) ?? 0;
      return [now, digits, new Date(at).getUTCFullYear()];
    });
    assertEquals(read, YEARS.map((row) => [...row]));
  });
}
