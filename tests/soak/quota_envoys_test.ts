import { assert } from "#assert";
import { join } from "node:path";
import { QuotaFleet } from "../harness/quota_fleet.ts";
import { type RedisServer, startRedis } from "../harness/redis_server.ts";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { startWeir, type WeirProcess } from "../harness/weir_process.ts";
import { bySize } from "./soak_options.ts";

const LIMIT = 100;
/** Seconds in which the limit is measured. */
const SECONDS = bySize({ short: 15, full: 60 });
const SECONDS_OF_TWO = bySize({ short: 15, full: 20 });
/** Requests that pass together after a pause, and that a busy machine moves into another second. */
const BURST = LIMIT;
const EXACT = 0.03;
/** The part of the load that is answered in a second if the machine is not too busy. */
const FED = 0.85;
/** Three reports, and what a busy machine adds. */
const MOVE_SECONDS = 15 + 1;
/** The life of an assignment, the delay of a message, and what a busy machine adds. */
const LIFE_SECONDS = 16 + 2;
/** The limit of each Envoy alone in the shipped configuration. */
const ALONE = 10;

const rules = (limit: number) => ({
  "shop.yaml": `domain: shop
descriptors: [{ key: account, rate_limit: { unit: second, requests_per_unit: ${limit} } }]
`,
});

Deno.test({
  ...needs(["envoy"], "three Envoys share a limit of one Weir, which changes, is killed and restarts"),
  async fn() {
    const env = { LOG_LEVEL: "warning" };
    await using stack = new AsyncDisposableStack();
    let weir = stack.use(await startWeir({ rules: rules(LIMIT), env }));
    await using fleet = await QuotaFleet.start([weir, weir, weir].map(({ grpcAddress }) => grpcAddress));
    const bed = new Bed(fleet, () => [weir]);
    await bed.settled();

    const begun = fleet.second + 1;
    fleet.offer(100, 100, 100);
    await bed.shares("each Envoy to have a third", (shares) => shares.every((share) => share >= 33), 10);
    const shared = fleet.second + 1;
    await bed.isExact("from the start on", begun + 1, SECONDS);
    await bed.isExact("after the start", shared, SECONDS);

    fleet.offer(270, 15, 15);
    await bed.shares("shares to follow the load", ([one = 0]) => one >= 65, MOVE_SECONDS);
    const moved = fleet.second + 1;
    await bed.isExact("with 90 % of the load at one Envoy", moved, 5);

    await Deno.writeTextFile(join(weir.rulesFolder, "shop.yaml"), rules(LIMIT / 2)["shop.yaml"]);
    weir.signal("SIGHUP");
    const changed = fleet.second;
    await bed.reaches(changed + 6);
    bed.isWithin(
      "a second after the change of the rule",
      changed + 2,
      fleet.second,
      LIMIT / 2,
      LIMIT * EXACT,
    );
    await Deno.writeTextFile(join(weir.rulesFolder, "shop.yaml"), rules(LIMIT)["shop.yaml"]);
    weir.signal("SIGHUP");
    fleet.offer(100, 100, 100);
    await bed.shares(
      "each Envoy to have a third",
      (shares) => shares.every((share) => share >= 33),
      MOVE_SECONDS,
    );

    await fleet.edges[1]?.envoy.kill();
    fleet.offer(150, 0, 150);
    await bed.shares(
      "the share of a killed Envoy to be in use",
      ([one = 0, , three = 0]) => one + three >= 99,
      LIFE_SECONDS,
    );
    const used = fleet.second + 1;
    await bed.isExact("without the killed Envoy", used, 4);

    const restart = async () => {
      weir = stack.use(await startWeir({ rules: rules(LIMIT), env }));
      fleet.lead(weir.grpcAddress);
    };
    await weir.kill();
    const killed = fleet.second + 1;
    await restart();
    await bed.shares("the shares to be back", ([one = 0, , three = 0]) => one + three >= 99, 25);
    bed.isWithin("after a restart", killed, fleet.second, LIMIT, BURST);

    await weir.kill();
    const gone = fleet.second + 1;
    await bed.reaches(gone + 22);
    bed.wasExact("while the assignments last without Weir", gone + 1, gone + 9);
    bed.isWithin("with the limits of the Envoys alone", gone + 18, fleet.second, 2 * ALONE, 2 * ALONE);
    await restart();
    const back = fleet.second;
    await bed.shares("the shares to be back", ([one = 0, , three = 0]) => one + three >= 99, 30);
    bed.isWithin("after an outage", back, fleet.second, LIMIT, BURST);
  },
});

Deno.test({
  ...needs(
    ["envoy", "redis-server"],
    "three Envoys share a limit of two Weirs over one redis, one of which is killed",
  ),
  async fn() {
    await using redis: RedisServer = await startRedis();
    const options = {
      rules: rules(LIMIT),
      env: { BACKEND_TYPE: "kv", KV_URL: redis.url, LOG_LEVEL: "warning" },
    };
    await using one = await startWeir(options);
    await using two = await startWeir(options);
    await using fleet = await QuotaFleet.start([one.grpcAddress, one.grpcAddress, two.grpcAddress]);
    let weirs = [one, two];
    const bed = new Bed(fleet, () => weirs);
    await bed.settled();

    const begun = fleet.second + 1;
    fleet.offer(100, 100, 100);
    await bed.shares(
      "each Weir to have its part",
      (shares) => shares.every((share) => share >= 24),
      MOVE_SECONDS,
    );
    const used = fleet.second + 1;
    await bed.isExact("after the start", used, SECONDS_OF_TWO);
    bed.isWithin("from the start on", begun, fleet.second, LIMIT, BURST);

    const killed = fleet.second;
    await one.kill();
    weirs = [two];
    fleet.lead(two.grpcAddress);
    await bed.shares("the part of the killed one to be in use", (shares) => sum(shares) >= 98, 30);
    const back = fleet.second + 1;
    await bed.isExact("with one Weir", back, 5);
    bed.isWithin("after the kill", killed, fleet.second, LIMIT, BURST);
  },
});

/** Waits and compares, and shows all numbers where a comparison fails. */
class Bed {
  readonly #fleet: QuotaFleet;
  readonly #weirs: () => readonly WeirProcess[];

  constructor(fleet: QuotaFleet, weirs: () => readonly WeirProcess[]) {
    this.#fleet = fleet;
    this.#weirs = weirs;
  }

  /** Waits until Weir has run for so long that it assigns immediately. */
  async settled(): Promise<void> {
    await this.reaches(this.#fleet.second + 7);
  }

  async reaches(second: number): Promise<void> {
    await until(`second ${second}`, () => this.#fleet.second >= second, {
      deadlineMs: 120_000,
      intervalMs: 100,
    });
  }

  /** Waits until the shares of the Envoys, in their order, are as a test says, for at most so many seconds. */
  async shares(
    name: string,
    isReached: (shares: readonly number[]) => boolean,
    seconds: number,
  ): Promise<void> {
    const options = { deadlineMs: seconds * 1_000, intervalMs: 100 };
    let last: readonly number[] = [];
    try {
      await until(name, async () => isReached(last = await this.#sharesNow()), options);
    } catch (error) {
      throw new Error(`${name}: ${last.join(" ")} after ${seconds} s\n${this.#fleet.report()}`, {
        cause: error,
      });
    }
  }

  /** In so many seconds in a row, after one, the limit passes on average; those in which the machine is too busy do not count. */
  async isExact(name: string, from: number, seconds: number): Promise<void> {
    await until(`${seconds} seconds: ${name}`, () => {
      const passed = this.#fed(from);
      if (passed.length < seconds) return false;
      this.#assertMean(name, passed.slice(-seconds));
      return true;
    }, { deadlineMs: 120_000, intervalMs: 100 });
  }

  /** Before a second, the limit passed on average, in those seconds in which the machine was not too busy. */
  wasExact(name: string, from: number, to: number): void {
    const passed = this.#fed(from, to);
    if (passed.length > 0) this.#assertMean(name, passed);
  }

  #assertMean(name: string, passed: readonly number[]): void {
    const mean = sum(passed) / passed.length;
    const isGood = mean >= LIMIT * (1 - EXACT) && mean <= LIMIT * (1 + EXACT) + BURST / passed.length;
    assert(isGood, `${name}: ${mean.toFixed(1)} per second: ${passed.join(" ")}\n${this.#fleet.report()}`);
  }

  /** Requests that passed in seconds in which, as in the second before, nearly all of the load was answered. */
  #fed(from: number, to = this.#fleet.second): number[] {
    const [due, passed, refused] = (["due", "passed", "refused"] as const).map((key) => {
      return this.#fleet.count(key, from - 1, Math.max(from, to));
    });
    const isFed = (index: number) => {
      const answered = (passed?.[index] ?? 0) + (refused?.[index] ?? 0);
      return answered >= (due?.[index] ?? 0) * FED;
    };
    return passed?.filter((_, index) => index > 0 && isFed(index) && isFed(index - 1)) ?? [];
  }

  /** No more than the limit and a burst passed in any number of seconds, from the first one on and before the last one. */
  isWithin(name: string, from: number, to: number, limit: number, burst: number): void {
    const passed = this.#fleet.count("passed", from, to);
    let most = 0;
    for (const count of passed) {
      most = Math.max(0, most + count - limit);
      assert(
        most <= burst + limit * EXACT * passed.length,
        `${name}: ${passed.join(" ")}\n${this.#fleet.report()}`,
      );
    }
  }

  /** The last known shares in the order of the Envoys; 0 for one that is not connected. */
  async #sharesNow(): Promise<number[]> {
    const shares = this.#fleet.edges.map(() => 0);
    for (const { debugAddress } of this.#weirs()) {
      const { quotas } = await (await fetch(`http://${debugAddress}/quotas`)).json();
      for (const { name, isConnected, share = 0 } of quotas[0]?.clients ?? []) {
        const index = this.#fleet.edges.findIndex((edge) => edge.name === name);
        if (isConnected) shares[index] = share;
      }
    }
    return shares;
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
