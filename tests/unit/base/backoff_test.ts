import { assertEquals } from "#assert";
import { backoffMs, type BackoffTimes, fullBackoffMs } from "../../../src/base/backoff.ts";

/** Bounds, a random number, and the waits by attempt, from the first one on. */
const TABLE: Readonly<Record<string, readonly [times: BackoffTimes, random: number, ...waits: number[]]>> = {
  "without chance waits are half of what they can be, double, and stop at half of the bound": [
    { firstMs: 100, longestMs: 1_000 },
    0,
    50,
    100,
    200,
    400,
    500,
    500,
  ],
  "chance adds the upper half": [{ firstMs: 100, longestMs: 1_000 }, 0.5, 75, 150, 300, 600, 750, 750],
  "the bound holds from the first attempt on": [{ firstMs: 5_000, longestMs: 300 }, 0, 150, 150],
  "no first wait never becomes one": [{ firstMs: 0, longestMs: 300 }, 0, 0, 0, 0],
};

for (const [title, [times, random, ...waits]] of Object.entries(TABLE)) {
  Deno.test(`backoff: ${title}`, () => {
    assertEquals(waits.map((_, index) => backoffMs(index + 1, random, times)), waits);
  });
}

Deno.test("backoff: a wait is never longer than its full one, and its jitter never below half of that", () => {
  const times = { firstMs: 1, longestMs: 2 ** 40 };
  const full = [1, 2, 10, 31, 32, 1_100, Number.MAX_SAFE_INTEGER].map((attempt) =>
    fullBackoffMs(attempt, times)
  );
  assertEquals(full, [1, 2, 2 ** 9, 2 ** 30, 2 ** 30, 2 ** 30, 2 ** 30]);
  const most = 1 - Number.EPSILON;
  assertEquals([0, most].map((random) => backoffMs(31, random, times) / 2 ** 30), [0.5, 0.5 + most / 2]);
});
