import { assert } from "#assert";
import { playHistory, type QuotaHistoryOptions } from "../../harness/quota_history.ts";
import { seededRandom } from "../../harness/seeded_random.ts";

/** Rates are sums of quotients. */
const MOST = 1 + 1e-6;
/** One time to live and two report intervals. */
const LONGEST_REFUSAL_MS = 25_000;
/** In smaller limits, the demand of a report of whole requests is not exact enough for refusals. */
const LARGE_LIMITS = [100, 700, 5_000];
const LIMITS = [1, 7, ...LARGE_LIMITS];

type Setting = Omit<QuotaHistoryOptions, "random" | "limit">;

const SETTINGS: readonly (readonly [name: string, histories: number, setting: Setting])[] = [
  ["clients that ask for more than the limit", 500, { instances: 1, seconds: 150, load: 3 }],
  ["clients that ask for less", 500, { instances: 1, seconds: 150, load: 0.9, maxDelayMs: 100 }],
  ["an instance that restarts", 400, { instances: 1, seconds: 150, load: 1.5, hasRestarts: true }],
  ["many buckets, divided in slices", 20, {
    instances: 1,
    seconds: 150,
    load: 3,
    maxBuckets: 60,
    lookMs: 0.2,
  }],
  ["two instances", 400, { instances: 2, seconds: 150, load: 0.9, maxDelayMs: 100 }],
  ["two instances with too much load, and a cache that fails", 400, {
    instances: 2,
    seconds: 150,
    load: 3,
    hasFailures: true,
  }],
];

for (const [name, histories, setting] of SETTINGS) {
  Deno.test(`quota: what is in force stays within the limit in ${histories} histories: ${name}`, async () => {
    const limits = setting.load < 1 ? LARGE_LIMITS : LIMITS;
    for (let seed = 1; seed <= histories; seed++) {
      const random = seededRandom(seed);
      const limit = limits[Math.floor(random() * limits.length)] ?? 0;
      const { most, mostAt, longestRefusal, refusalAt, log } = await playHistory({
        ...setting,
        random,
        limit,
      });
      const history = () => `; seed ${seed}, limit ${limit}:\n${log.join("\n")}`;
      assert(most <= MOST, `${most} of the limit in force at ${mostAt} ms${history()}`);
      if (setting.load > 1) continue;
      assert(
        longestRefusal <= LONGEST_REFUSAL_MS,
        `refused for ${longestRefusal} ms at ${refusalAt} ms${history()}`,
      );
    }
  });
}
