import { assertEquals } from "#assert";
import { listed, NOTHING, openNoted, QuotaHubBed, short } from "../../harness/quota_hub_bed.ts";

Deno.test("quota hub: values with the separator of keys lead to no other quota", async () => {
  const rules = listed(`- key: k
  rate_limit: {unit: second, requests_per_unit: 100}
  descriptors: [{key: b, rate_limit: {unit: second, requests_per_unit: 10}}]
`);
  const bed = new QuotaHubBed({ rules });
  const envoys = [[{ key: "k", value: "x" }, { key: "b", value: "y" }], [{ key: "k", value: "x_b_y" }]].map(
    (pairs) => {
      const envoy = bed.envoy();
      envoy.demand(JSON.stringify(pairs), pairs, 1_000);
      return envoy;
    },
  );
  await bed.pass(11_000);
  assertEquals(envoys.map((envoy) => envoy.tokensPerSecond()), [10, 100]);
});

Deno.test("quota hub: rules whose keys and values have one name together have two quotas", async () => {
  const bed = new QuotaHubBed({
    rules: listed(`- {key: a_b, value: c, rate_limit: {unit: second, requests_per_unit: 100}}
- {key: a, value: b_c, rate_limit: {unit: second, requests_per_unit: 10}}
`),
  });
  const envoys = [{ key: "a_b", value: "c" }, { key: "a", value: "b_c" }].map((pair) => {
    const envoy = bed.envoy();
    envoy.demand(JSON.stringify(pair), [pair], 1_000);
    return envoy;
  });
  await bed.pass(11_000);
  assertEquals(envoys.map((envoy) => envoy.tokensPerSecond()), [100, 10]);
});

Deno.test("quota hub: of two clients with one name, neither has the share of the other after a reconnect", async () => {
  const bed = new QuotaHubBed();
  const envoys = [300, 30].map((perSecond) => {
    const envoy = bed.envoy("same");
    envoy.demand("b", [{ key: "k", value: "v" }], perSecond);
    return envoy;
  });
  await bed.pass(25_000);
  const before = envoys.map((envoy) => envoy.tokensPerSecond());
  for (const envoy of envoys) envoy.disconnect();
  envoys[1]?.connect(bed.hub);
  await bed.pass(6_000);
  assertEquals(envoys.map((envoy) => envoy.tokensPerSecond()), before);
});

Deno.test("quota hub: a bucket that joins while rules are applied has their quota with all its clients", async () => {
  const bed = new QuotaHubBed({ maxBuckets: 10_000, maxBucketsPerStream: 10_000 });
  const [one, two] = [bed.envoy(), bed.envoy()];
  // So many that the rules are applied in slices.
  for (let index = 0; index < 3_000; index++) {
    one.demand(`${index}`, [{ key: "unknown", value: `${index}` }], 0);
  }
  two.demand("b", [{ key: "unknown", value: "b" }], 300);
  await bed.pass(1_000);
  const rules = listed("- {key: unknown, rate_limit: {unit: second, requests_per_unit: 100}}");
  const applied = bed.hub.setRules(rules);
  one.demand("b", [{ key: "unknown", value: "b" }], 300);
  await bed.pass(25_000);
  await applied;
  assertEquals([one, two].map((envoy) => short(envoy.inForce("b"))), ["50 50/1.0 15", "50 50/1.0 15"]);
});

Deno.test("quota hub: a changed burst is in the next assignment", async () => {
  const bucket = (burst: number) =>
    listed(
      `- {key: k, rate_limit: {unit: second, requests_per_unit: 100, algorithm: token_bucket, burst: ${burst}}}`,
    );
  const bed = new QuotaHubBed({ rules: bucket(50) });
  const envoy = bed.envoy();
  envoy.demand("b", [{ key: "k", value: "v" }], 1);
  await bed.pass(100);
  const before = short(envoy.inForce("b"));
  await bed.hub.setRules(bucket(10));
  await bed.pass(5_000);
  assertEquals([before, short(envoy.inForce("b"))], ["50 100/1.0 15", "10 100/1.0 15"]);
});

Deno.test("quota hub: what waits for a client to read is neither confirmed nor over before it is sent", async () => {
  const bed = new QuotaHubBed();
  const shown: string[] = [];
  let isRead = true;
  const stream = bed.hub.open({
    name: "slow",
    actions: {
      send: (_id, assignment) => shown.push(`slow ${short(assignment)}`),
      flush: () => isRead,
      confirm: () => false,
    },
    end: () => {},
  });
  const pairs = () => [{ key: "k", value: "v" }];
  const report = (allowed: number, elapsedSeconds: number) =>
    stream.report({ domain: "d", usages: [{ id: "b", pairs, allowed, denied: 0, elapsedSeconds }] });
  await report(1, 0);
  isRead = false;
  const other = openNoted(bed, "other", shown, undefined);
  await other(0);
  assertEquals(shown.splice(0), ["slow 100 100/1.0 15", "slow 50 50/1.0 15", `other ${NOTHING}`]);
  await bed.pass(5_000);
  await report(500, 5);
  await other(1_500, 5);
  assertEquals(shown.splice(0).filter((line) => line.startsWith("other")), [`other ${NOTHING}`]);
  isRead = true;
  await bed.pass(5_000);
  await report(500, 5);
  assertEquals(shown.splice(0).includes("other 50 50/1.0 15"), true);
});
