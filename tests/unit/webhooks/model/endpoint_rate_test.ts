import { assertEquals } from "#assert";
import { type EndpointRate, type RateState, takeRate } from "../../../../src/webhooks/model/endpoint_rate.ts";

const START = Date.UTC(2026, 0, 1, 12);
const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

/** Takes in order: the time and the due attempts, and what is allowed, when the next one is, and since when the bucket was empty. */
interface RateCase {
  readonly name: string;
  readonly rate: EndpointRate;
  readonly takes: readonly (readonly [
    atMs: number,
    due: number,
    allowed: readonly [count: number, nextMs?: number | undefined, sinceMs?: number],
  ])[];
}

const CASES: readonly RateCase[] = [
  {
    name: "a full bucket holds the attempts of a unit",
    rate: { unit: "second", requestsPerUnit: 2 },
    takes: [[0, 1, [1]], [0, 5, [1, 500]], [0, 5, [0, 500, 0]], [499, 5, [0, 500, 0]], [500, 5, [
      1,
      1_000,
      0,
    ]]],
  },
  {
    name: "after a pause it is full, and not more",
    rate: { unit: "second", requestsPerUnit: 2 },
    takes: [[0, 2, [2, 500]], [60_000, 9, [2, 60_500, 0]]],
  },
  {
    name: "a day",
    rate: { unit: "day", requestsPerUnit: 1 },
    takes: [
      [0, 2, [1, 24 * HOUR]],
      [HOUR, 1, [0, 24 * HOUR, 0]],
      [24 * HOUR - 1, 1, [0, 24 * HOUR, 0]],
      [24 * HOUR + SECOND, 1, [1, 48 * HOUR + SECOND, 0]],
    ],
  },
  {
    name: "a token that was left for a minute begins another wait",
    rate: { unit: "minute", requestsPerUnit: 1 },
    takes: [
      [0, 1, [1, 60_000]],
      [30_000, 1, [0, 60_000, 0]],
      [121_010, 1, [1, 181_010, 0]],
      [181_020, 1, [1, 241_020, 121_010]],
    ],
  },
  {
    name: "tokens that are left end the wait",
    rate: { unit: "second", requestsPerUnit: 2 },
    takes: [[0, 2, [2, 500]], [1_000, 1, [1, undefined, 0]], [1_000, 1, [1, 1_500]]],
  },
  {
    name: "a clock that was set back",
    rate: { unit: "hour", requestsPerUnit: 1 },
    takes: [[5 * HOUR, 1, [1, 6 * HOUR]], [0, 1, [0, HOUR]], [HOUR + 10, 1, [1, 2 * HOUR + 10, 0]]],
  },
];

for (const { name, rate, takes } of CASES) {
  Deno.test(`rate of an endpoint: ${name}`, () => {
    let state: RateState | undefined;
    for (const [atMs, due, [count, nextMs, sinceMs]] of takes) {
      const taken = takeRate(rate, state, { due, now: START + atMs });
      // The bucket is refilled late, by less than a millionth of the unit.
      const late = taken.nextAt === undefined || nextMs === undefined ? 0 : taken.nextAt - START - nextMs;
      const nextAt = late >= 0 && late <= 90 ? nextMs : taken.nextAt;
      const seen = [nextAt, taken.empty === undefined ? undefined : taken.empty.since - START];
      assertEquals([taken.count, ...seen], [count, nextMs, sinceMs], `at ${atMs} ms`);
      // As the store keeps it.
      state = JSON.parse(JSON.stringify(taken.state));
    }
  });
}

Deno.test("rate of an endpoint: the highest one, and any number of takes", () => {
  const rate = { unit: "second", requestsPerUnit: 1_000_000 } as const;
  let state: RateState | undefined;
  let sum = 0;
  for (let ms = 0; ms <= 1_000; ms += 50) {
    const taken = takeRate(rate, state, { due: 2_000_000, now: START + ms });
    state = taken.state;
    sum += taken.count;
  }
  assertEquals(sum, 2_000_000);
});

Deno.test("rate of an endpoint: the wait ends with the next token, whenever it is taken", () => {
  const rate = { unit: "second", requestsPerUnit: 2 } as const;
  const { state } = takeRate(rate, undefined, { due: 2, now: START });
  for (const [at, until] of [[100, 100], [500, 500], [20_000, 500]] as const) {
    assertEquals(takeRate(rate, state, { due: 1, now: START + at }).empty, {
      since: START,
      until: START + until,
    });
  }
  const left = takeRate(rate, state, { due: 1, now: START + 60_000 });
  assertEquals(takeRate(rate, left.state, { due: 1, now: START + 60_001 }).empty, undefined);
});

Deno.test("rate of an endpoint: the wait ends in a whole millisecond, when the next token was announced", () => {
  const rate = { unit: "minute", requestsPerUnit: 7 } as const;
  let { state, nextAt = 0 } = takeRate(rate, undefined, { due: 7, now: START });
  for (let count = 0; count < 20; count++) {
    const taken = takeRate(rate, state, { due: 1, now: nextAt + 30 });
    assertEquals([taken.count, taken.empty], [1, { since: START, until: nextAt }]);
    ({ state, nextAt = 0 } = taken);
  }
});
