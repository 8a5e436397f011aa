import { assert, assertEquals } from "#assert";
import { fillOf, NO_FILL, rateOfDemand } from "../../../src/quota/shares.ts";
import { levelOf } from "../../harness/quota_share_script.ts";
import { seededRandom } from "../../harness/seeded_random.ts";

/** limit, demands, and the rates in whole numbers. */
const DIVIDED: readonly (readonly [number, readonly number[], readonly number[]])[] = [
  [100, [], []],
  [100, [0], [100]],
  [100, [0, 0], [50, 50]],
  [100, [300, 300, 300], [33, 33, 33]],
  [100, [300, 10, 300], [45, 11, 45]],
  [100, [300, 0], [100, 1]],
  [100, [40, 0], [85, 15]],
  [0, [5, 0], [0, 0]],
];

function ratesOf(limit: number, demands: readonly number[]): number[] {
  const level = levelOf(limit, demands);
  return demands.map((demand) => rateOfDemand(level, demand));
}

for (const [limit, demands, rates] of DIVIDED) {
  Deno.test(`shares: ${limit} among demands of [${demands}]`, () => {
    assertEquals(ratesOf(limit, demands).map(Math.round), rates);
  });
}

Deno.test("shares: in 5,000 divisions, the sum is the limit, and a smaller demand is served first", () => {
  for (let seed = 1; seed <= 5_000; seed++) {
    const random = seededRandom(seed);
    const limit = 10 ** (random() * 8 - 4);
    const demands = Array.from({ length: 1 + Math.floor(random() * 20) }, () => {
      return random() < 0.3 ? 0 : limit * random() ** 3;
    });
    const text = `seed ${seed}, limit ${limit}, demands ${demands}`;
    const rates = ratesOf(limit, demands);
    const sum = rates.reduce((total, rate) => total + rate, 0);
    assert(Math.abs(sum - limit) <= limit * 1e-9, text);
    const fair = limit / demands.length;
    for (const [index, rate] of rates.entries()) {
      assert(rate >= Math.min(demands[index] ?? 0, fair) * (1 - 1e-9), text);
      assert(rate > 0, text);
    }
  }
});

/** Rate, tokens and seconds. */
const FILLS: readonly (readonly [number, number, number])[] = [
  [0, NO_FILL.tokens, NO_FILL.seconds],
  [100, 100, 1],
  [33.4, 33, 1],
  [100 / 3, 33, 1],
  [10 / 3, 10, 3],
  [1, 1, 1],
  [0.5, 1, 2],
  [1 / 30, 1, 30],
  [1 / 60, 1, 60],
  [1 / 90.5, 1, 91],
  [1 / 86_400, 1, 86_400],
  [4_294_967_295, 4_294_967_295, 1],
];

for (const [rate, tokens, seconds] of FILLS) {
  Deno.test(`shares: ${rate} a second as whole tokens`, () => {
    assertEquals(fillOf(rate), { tokens, seconds });
  });
}
