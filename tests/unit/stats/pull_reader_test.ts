import { assert, assertEquals } from "#assert";
import { setImmediate } from "node:timers";
import { PullReader, type PullReaderOptions } from "../../../src/stats/pull_reader.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { metricsText } from "../../../src/stats/pull_text.ts";
import { SHOP_RULES } from "../../harness/pull_bed.ts";

const KEYS = 4_000;
const STATS = ["total_hits", "over_limit", "near_limit", "within_limit", "shadow_mode"];

for (const native of [false, true]) {
  const name = native ? "native" : "mapped";
  Deno.test(`pull metrics: ${KEYS} keys leave the event loop free, ${name}`, async () => {
    let sinceTurn = 0;
    let most = 0;
    const step = (by: number) => most = Math.max(most, sinceTurn += by);
    const store: PullReaderOptions["store"] = {
      *counters() {
        for (let key = 0; key < KEYS; key++) {
          for (const stat of STATS) {
            step(1);
            yield [`ratelimit.service.rate_limit.shop.account_${key}.${stat}`, key];
          }
        }
      },
      gauges: () => [],
      timers: () => [],
      declared: () => undefined,
    };
    let isOver = false;
    const turn = () => {
      sinceTurn = 0;
      if (!isOver) setImmediate(turn);
    };
    turn();
    const reader = new PullReader({
      store,
      rules: () => SHOP_RULES,
      native,
      timeAsMilliseconds: false,
      extraTags: new Map(),
      logger: new RecordedLogger(),
      clock: new FakeClock(),
    });
    const families = await reader.read();
    isOver = true;
    let lines = 0;
    let longest = 0;
    for await (const piece of metricsText(families, { format: "text", constantLabels: {} })) {
      longest = Math.max(longest, piece.length);
      lines += piece.split("\n").filter((line) => line.includes('="account_')).length;
    }
    assertEquals(lines, KEYS * STATS.length);
    assert(most > 0 && most <= 1_000, `read ${most} names in one turn`);
    assert(longest < 250_000, `a piece of ${longest} characters`);
  });
}
