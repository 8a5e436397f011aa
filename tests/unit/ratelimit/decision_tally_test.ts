import { assertEquals } from "@std/assert";
import { DecisionTally } from "../../../src/ratelimit/decision_tally.ts";
import { RuleCounts } from "../../../src/ratelimit/rule_counts.ts";
import { rulesOf, ServiceFixture } from "../../harness/service_fixture.ts";

const FILES = {
  "d.yaml": `domain: d
descriptors:
- key: k
  detailed_metric: true
  rate_limit: { unit: minute, requests_per_unit: 2 }
`,
};

async function ask(fixture: ServiceFixture, times: number, value: string): Promise<void> {
  const descriptors = [{ entries: [{ key: "k", value }] }];
  for (let time = 0; time < times; time++) {
    await fixture.service.shouldRateLimit({ domain: "d", hitsAddend: 0, descriptors });
  }
}

function shown(tally: DecisionTally, nowSeconds: number): unknown {
  const top = tally.overLimitKeys.top(10, nowSeconds).map(({ key, count }) => [key, count]);
  return [tally.total, tally.overLimit, top];
}

Deno.test("decision tally: what threads take one after the other is together what one would have", async () => {
  const process = new DecisionTally();
  await using fixture = new ServiceFixture({ files: FILES });
  const { service, clock } = fixture;
  const nowSeconds = clock.now() / 1_000;
  await ask(fixture, 5, "a");
  process.add(service.tally.take(nowSeconds), nowSeconds);
  await ask(fixture, 1, "a");
  await ask(fixture, 3, "b".repeat(300));
  process.add(service.tally.take(nowSeconds), nowSeconds);
  process.add(service.tally.take(nowSeconds), nowSeconds);
  assertEquals(shown(service.tally, nowSeconds), [0, 0, []]);
  const long = `d_k_${"b".repeat(251)}…`;
  assertEquals(shown(process, nowSeconds), [9, 5, [["d_k_a", 4], [long, 1]]]);
});

Deno.test("rule counts: the sums of other threads are added to those of the rule", async () => {
  await using fixture = new ServiceFixture({ files: FILES });
  const { service, stats } = fixture;
  const process = new RuleCounts(rulesOf(FILES), stats);
  for (const value of ["a", "b"]) {
    await ask(fixture, 3, value);
    process.addSums(service.ruleCounts?.takeSums() ?? []);
  }
  assertEquals(service.ruleCounts?.takeSums(), []);
  assertEquals(process.at(0), { totalHits: 6, overLimit: 2, nearLimit: 2, withinLimit: 4 });
});
