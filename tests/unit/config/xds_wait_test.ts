import { assertEquals } from "#assert";
import { xdsWaitMs, type XdsWaits } from "../../../src/config/xds_provider.ts";

const WAITS: XdsWaits = { retryMs: 3_000, initialMs: 10_000, maxMs: 60_000, spread: 0.5 };

const CASES: Readonly<
  Record<string, readonly [waits: Partial<XdsWaits>, random: number, ...waitMs: number[]]>
> = {
  "doubles up to the longest": [{}, 0.5, 3_000, 10_000, 20_000, 40_000, 60_000, 60_000],
  "is half as long at least": [{}, 0, 3_000, 5_000, 10_000, 20_000, 30_000, 30_000],
  "is half as long again at most, and never longer than its bound": [
    {},
    1,
    3_000,
    15_000,
    30_000,
    60_000,
    60_000,
  ],
  "has no spread without jitter": [{ spread: 0 }, 0.9, 3_000, 10_000, 20_000, 40_000, 60_000, 60_000],
  "never is longer than its bound at the start": [{ initialMs: 90_000 }, 0.5, 3_000, 60_000],
  "leaves a pause whatever it is set to": [{ retryMs: 0, initialMs: 0 }, 0.5, 100, 100, 100],
};

for (const [name, [waits, random, ...waitMs]] of Object.entries(CASES)) {
  Deno.test(`xds backoff: the wait ${name}`, () => {
    const seen = waitMs.map((_, failures) => xdsWaitMs(failures, { ...WAITS, ...waits }, random));
    assertEquals(seen, waitMs);
  });
}

Deno.test("xds backoff: an outage of years has a wait as well", () => {
  assertEquals(xdsWaitMs(1_000_000, WAITS, 0.5), 60_000);
});
