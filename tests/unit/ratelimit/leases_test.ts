import { assertEquals } from "#assert";
import { type LeaseLimit, Leases, MAX_PLACES_OF_HOLDER } from "../../../src/ratelimit/algorithms/leases.ts";
import type { Taken } from "../../../src/ratelimit/algorithms/taken.ts";
import { LeaseModel } from "../../harness/lease_model.ts";
import { seededRandom } from "../../harness/seeded_random.ts";

const RUNS = 1_000;
const CALLS = 120;
const START_US = 1_700_000_000_000_000;

/** Places with a clock. */
class Counter {
  limit: LeaseLimit;
  nowUs = START_US;
  readonly #leases = new Leases();

  constructor(limit: number, leaseUs: number) {
    this.limit = { kind: "leases", limit, leaseUs };
  }

  take(holder: string, hits = 1): Taken {
    return this.#leases.take(this.limit, this.nowUs, holder, hits);
  }

  get used(): number {
    return this.take("none", 0).used;
  }
}

Deno.test("leases: random takes, returns and ends of many holders are those of a list", () => {
  for (let seed = 1; seed <= RUNS; seed++) {
    const random = seededRandom(seed);
    const pick = (below: number) => Math.floor(random() * below);
    const leaseUs = [7_000, 1_000_000, 60_000_000][pick(3)] ?? 1;
    const most = 1 + pick(12);
    const [counter, model] = [new Counter(most, leaseUs), new LeaseModel(most, leaseUs)];
    for (let call = 0; call < CALLS; call++) {
      counter.nowUs += pick(12) === 0 ? pick(leaseUs * 2) : pick(Math.ceil(leaseUs / 10));
      if (pick(20) === 0) {
        model.limit = pick(14);
        counter.limit = { ...counter.limit, limit: model.limit };
      }
      const holder = `h${pick(5)}`;
      const hits = [1, 1, 1, 0, -1, -1, -1 - pick(4), 1 + pick(4)][pick(8)] ?? 1;
      const context = `seed ${seed}, call ${call}: ${hits} of ${holder}`;
      const taken = counter.take(holder, hits);
      assertEquals(taken, model.take(counter.nowUs, holder, hits), context);
      if (hits > 0 && taken.granted) assertEquals(taken.used <= counter.limit.limit, true, context);
    }
    counter.nowUs += leaseUs;
    assertEquals(counter.used, 0, `seed ${seed}`);
  }
});

Deno.test("leases: a place is free again exactly after its lease, also if others are taken all the time", () => {
  const counter = new Counter(10, 60_000_000);
  counter.take("lost");
  for (let second = 0; second < 59; second++) {
    counter.take(`busy ${second}`, 3);
    counter.nowUs += 1_000_000;
    counter.take(`busy ${second}`, -3);
    assertEquals(counter.used, 1, `second ${second}`);
  }
  counter.nowUs += 999_999;
  assertEquals(counter.used, 1);
  counter.nowUs += 1;
  assertEquals(counter.used, 0);
});

Deno.test("leases: giving back twice is once, and frees no place of another holder", () => {
  const counter = new Counter(3, 60_000_000);
  counter.take("a");
  counter.take("b");
  assertEquals([counter.take("a", -1).used, counter.take("a", -1).used, counter.take("c", -5).used], [
    1,
    1,
    1,
  ]);
  assertEquals(counter.take("b", -1), { granted: true, used: 0, available: 3, retryMs: 0, freeMs: 0 });
});

Deno.test("leases: a holder that takes again has two places, and gives back the newest first", () => {
  const counter = new Counter(2, 60_000_000);
  counter.take("a");
  counter.nowUs += 10_000_000;
  assertEquals(counter.take("a").used, 2);
  assertEquals(counter.take("b"), {
    granted: false,
    used: 2,
    available: 0,
    retryMs: 50_000,
    freeMs: 60_000,
  });
  assertEquals(counter.take("a", -1).freeMs, 50_000);
  assertEquals(counter.take("a", -1).used, 0);
});

Deno.test("leases: one holder has a bounded number of places, and others get theirs", () => {
  const counter = new Counter(1_000, 60_000_000);
  assertEquals(counter.take("a", MAX_PLACES_OF_HOLDER + 1).granted, false);
  counter.take("a", MAX_PLACES_OF_HOLDER - 1);
  counter.nowUs += 1_000_000;
  counter.take("a");
  assertEquals(counter.take("a"), {
    granted: false,
    used: MAX_PLACES_OF_HOLDER,
    available: 0,
    retryMs: 59_000,
    freeMs: 60_000,
  });
  assertEquals(counter.take("b").available, MAX_PLACES_OF_HOLDER - 1);
  assertEquals(counter.take("a", -(2 ** 53)).used, 1);
});

Deno.test("leases: a clock that is set back frees nothing, and blocks for no more than a lease longer", () => {
  for (
    const [backUs, waitMs] of [[1, 5_000], [1_000_000, 5_000], [1_000_001, 6_001], [
      3_600_000_000,
      20_000,
    ]] as const
  ) {
    const counter = new Counter(3, 20_000_000);
    counter.take("a", 2);
    counter.nowUs += 15_000_000;
    counter.take("b");
    counter.nowUs -= backUs;
    const { granted, retryMs, freeMs } = counter.take("c");
    const isHeld = backUs <= 1_000_000;
    assertEquals([granted, retryMs, freeMs], [false, waitMs, 20_000], `${backUs}`);
    counter.nowUs += 20_000_000 + (isHeld ? backUs : 0);
    assertEquals(counter.used, 0, `${backUs}`);
  }
});

Deno.test("leases: a limit of 0 refuses everything, and one that was lowered lets what runs end", () => {
  const counter = new Counter(0, 16_000_000);
  assertEquals(counter.take("a"), { granted: false, used: 0, available: 0, retryMs: 16_000, freeMs: 0 });
  counter.limit = { ...counter.limit, limit: 3_000 };
  for (let index = 0; index < 3_000; index++) counter.take(`${index}`);
  counter.nowUs += 1_000_000;
  counter.limit = { ...counter.limit, limit: 1 };
  assertEquals(counter.take("a").retryMs, 15_000);
  for (let index = 0; index < 3_000; index++) counter.take(`${index}`, -1);
  assertEquals(counter.take("a").granted, true);
});
