import { assertEquals } from "@std/assert";
import { xdsWaitMs, type XdsWaits } from "../../../src/config/xds_provider.ts";

const WAITS: XdsWaits = { retryMs: 3_000, initialMs: 10_000, maxMs: 60_000, spread: 0.5 };

const CASES: readonly { name: string; waits?: Partial<XdsWaits>; random?: number; waitMs: number[] }[] = [
  { name: "doubles up to the longest", waitMs: [3_000, 10_000, 20_000, 40_000, 60_000, 60_000] },
  { name: "is half as long at least", random: 0, waitMs: [3_000, 5_000, 10_000, 20_000, 30_000, 30_000] },
  {
    name: "is one and a half times as long at most, and never longer than its bound",
    random: 1,
    waitMs: [3_000, 15_000, 30_000, 60_000, 60_000, 60_000],
  },
  {
    name: "has no spread without jitter",
    waits: { spread: 0 },
    random: 0.9,
    waitMs: [3_000, 10_000, 20_000, 40_000, 60_000, 60_000],
  },
  {
    name: "never is longer than its bound at the start",
    waits: { initialMs: 90_000 },
    waitMs: [3_000, 60_000],
  },
  {
    name: "leaves a pause whatever it is told",
    waits: { retryMs: 0, initialMs: 0 },
    waitMs: [100, 100, 100],
  },
];

for (const { name, waits = {}, random = 0.5, waitMs } of CASES) {
  Deno.test(`xds backoff: the wait ${name}`, () => {
    const seen = waitMs.map((_, failures) => xdsWaitMs(failures, { ...WAITS, ...waits }, random));
    assertEquals(seen, waitMs);
  });
}

Deno.test("xds backoff: an outage of years has a wait as well", () => {
  assertEquals(xdsWaitMs(1_000_000, WAITS, 0.5), 60_000);
});
