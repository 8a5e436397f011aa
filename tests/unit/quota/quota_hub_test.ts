import { assertEquals } from "#assert";
import type { QuotaShares } from "../../../src/quota/quota_shares.ts";
import type { StreamRefusal } from "../../../src/quota/quota_stream.ts";
import type { Entry } from "../../../src/ratelimit/request.ts";
import { listed, NOTHING, openNoted, QUOTA_RULES, QuotaHubBed, short } from "../../harness/quota_hub_bed.ts";

/** The pairs of a bucket, and its first assignment. */
const FIRST: readonly (readonly [string, readonly Entry[], string])[] = [
  ["a rate", [{ key: "k", value: "v" }], "100 100/1.0 15"],
  ["a low rate", [{ key: "hourly", value: "v" }], "1 1/1.0 15"],
  ["an unlimited rule", [{ key: "free", value: "v" }], "allow"],
  ["a limit of 0", [{ key: "none", value: "v" }], "deny"],
  ["shadow mode", [{ key: "shadow", value: "v" }], "allow"],
  ["no rule", [{ key: "unknown", value: "v" }], "allow"],
  ["a limit in flight, as for a cache that fails", [{ key: "flight", value: "v" }], "deny"],
];

for (const [name, pairs, expected] of FIRST) {
  Deno.test(`quota hub: the first assignment of ${name}`, async () => {
    const bed = new QuotaHubBed();
    const envoy = bed.envoy();
    envoy.demand("b", pairs, 1);
    await bed.pass(100);
    assertEquals(envoy.received.map(([, assignment]) => short(assignment)), [expected]);
    assertEquals(bed.refusals, name.includes("flight") ? [["impossible", "d", "d.flight"]] : []);
  });
}

Deno.test("quota hub: equal assignments are the same object, and answer each report", async () => {
  const bed = new QuotaHubBed();
  const envoy = bed.envoy();
  envoy.demand("b", [{ key: "k", value: "v" }], 10);
  await bed.pass(11_000);
  const [first, ...others] = envoy.received.map(([, assignment]) => assignment);
  assertEquals(others.map((other) => other === first), [true, true]);
});

Deno.test("quota hub: buckets of a rule with share_threshold, and clients, have one quota", async () => {
  const bed = new QuotaHubBed();
  const [one, two] = [bed.envoy(), bed.envoy()];
  for (const envoy of [one, two]) {
    for (const value of ["x", "y"]) envoy.demand(value, [{ key: "both", value }], 500);
  }
  await bed.pass(25_000);
  const all = [one, two].flatMap((envoy) => ["x", "y"].map((id) => short(envoy.inForce(id))));
  assertEquals(all, Array.from({ length: 4 }, () => "25 25/1.0 15"));
});

Deno.test("quota hub: buckets that take the limit of their parent have its quota", async () => {
  const bed = new QuotaHubBed();
  const envoy = bed.envoy();
  const team = { key: "team", value: "a" };
  envoy.demand("team", [team], 500);
  for (const value of ["/x", "/y", "/z"]) envoy.demand(value, [{ key: "path", value }, team], 500);
  await bed.pass(25_000);
  const all = ["team", "/x", "/y", "/z"].map((id) => short(envoy.inForce(id)));
  assertEquals(all, Array.from({ length: 4 }, () => "25 25/1.0 15"));
});

Deno.test("quota hub: the largest demand has what the others lose to whole tokens", async () => {
  const bed = new QuotaHubBed();
  const envoys = [300, 400, 300].map((perSecond) => {
    const envoy = bed.envoy();
    envoy.demand("b", [{ key: "k", value: "v" }], perSecond);
    return envoy;
  });
  await bed.pass(25_000);
  assertEquals(envoys.map((envoy) => envoy.tokensPerSecond()), [33, 34, 33]);
});

Deno.test("quota hub: a name takes its share over, and a stream without one, or with one in use, waits", async () => {
  for (
    const [name, isOpen, expected] of [["e", false, 100], ["e", true, 0], [undefined, false, 0]] as const
  ) {
    const bed = new QuotaHubBed();
    const envoy = bed.envoy(name);
    envoy.demand("b", [{ key: "k", value: "v" }], 300);
    await bed.pass(10_000);
    envoy.silence(60_000);
    if (!isOpen) envoy.disconnect();
    const next = bed.envoy(name);
    next.demand("b", [{ key: "k", value: "v" }], 300);
    await bed.pass(500);
    assertEquals(next.tokensPerSecond(), expected, `${name} ${isOpen}`);
    await bed.pass(22_000);
    assertEquals(next.tokensPerSecond(), 100);
  }
});

Deno.test("quota hub: a larger share waits for a report that its client sent after the smaller one arrived", async () => {
  const bed = new QuotaHubBed();
  const shown: string[] = [];
  const [one, two] = ["one", "two"].map((name) => openNoted(bed, name, shown, undefined));
  await one?.(0);
  await two?.(0);
  assertEquals(shown.splice(0), ["one 100 100/1.0 15", "one 50 50/1.0 15", `two ${NOTHING}`]);
  await bed.pass(1_900);
  await one?.(1_000);
  assertEquals(shown.splice(0), ["one 50 50/1.0 15"]);
  await bed.pass(100);
  await one?.(100);
  assertEquals(shown.splice(0), ["two 50 50/1.0 15", "one 50 50/1.0 15"]);
});

Deno.test("quota hub: a larger share waits for the connection, if that can confirm the smaller one", async () => {
  const bed = new QuotaHubBed();
  const shown: string[] = [];
  const confirms: (() => void)[] = [];
  const clients = ["one", "two", "three"].map((name) => openNoted(bed, name, shown, confirms));
  for (const report of clients) await report(0);
  assertEquals(shown.splice(0).slice(-2), ["one 34 34/1.0 15", `three ${NOTHING}`]);
  await bed.pass(1_000);
  assertEquals([shown.splice(0), confirms.length], [[], 1]);
  // The first answer is for the share of a moment before, and asks for that of the next share.
  confirms[0]?.();
  await bed.pass(1_000);
  assertEquals([shown.splice(0), confirms.length], [["two 33 33/1.0 15", "three 17 17/1.0 15"], 2]);
  confirms[1]?.();
  await bed.pass(500);
  assertEquals(shown.splice(0), ["three 33 33/1.0 15"]);
});

Deno.test("quota hub: until it is known, a client is assumed to need an equal part", async () => {
  const bed = new QuotaHubBed();
  const shown: string[] = [];
  const [one, two] = ["one", "two"].map((name) => openNoted(bed, name, shown, []));
  await one?.(0);
  await bed.pass(3_000);
  await two?.(0);
  shown.length = 0;
  await bed.pass(2_000);
  await one?.(250, 5);
  assertEquals(shown, ["two 50 50/1.0 15", "one 50 50/1.0 15"]);
});

Deno.test("quota hub: after a start, clients get the rate that two reports show", async () => {
  for (const allowed of [[434, 170], [170, 434]] as const) {
    const bed = new QuotaHubBed({}, 0);
    const shown: string[] = [];
    const report = openNoted(bed, "one", shown, []);
    const seen: string[][] = [];
    for (const one of [...allowed, 170]) {
      await bed.pass(4_000);
      await report(one, 5);
      seen.push(shown.splice(0));
    }
    await bed.pass(4_500);
    assertEquals([...seen, shown.splice(0)], [[], ["one 24 24/1.0 15"], ["one 24 24/1.0 15"], [
      "one 100 100/1.0 15",
    ]]);
  }
});

Deno.test("quota hub: after a start, nothing is sent until all clients have reported", async () => {
  const bed = new QuotaHubBed({}, 0);
  const envoy = bed.envoy();
  envoy.demand("b", [{ key: "k", value: "v" }], 300);
  await bed.pass(5_600);
  assertEquals(envoy.received, []);
  await bed.pass(1_000);
  assertEquals(short(envoy.inForce("b")), "100 100/1.0 15");
});

Deno.test("quota hub: what clients report is given on, and what shadow mode lets pass", async () => {
  const bed = new QuotaHubBed();
  const envoy = bed.envoy();
  envoy.demand("s", [{ key: "shadow", value: "v" }], 40);
  envoy.demand("k", [{ key: "k", value: "v" }], 300);
  await bed.pass(10_000);
  assertEquals(bed.usages.slice(-2), [["d.shadow", 200, 0, 150], ["d.k", 500, 1_000, 0]]);
});

Deno.test("quota hub: rules that change are in force immediately, smaller shares first", async () => {
  const bed = new QuotaHubBed();
  const [one, two] = [bed.envoy(), bed.envoy()];
  for (const envoy of [one, two]) {
    envoy.demand("b", [{ key: "k", value: "v" }], 500);
    envoy.demand("f", [{ key: "free", value: "v" }], 10);
  }
  await bed.pass(25_000);
  const text = QUOTA_RULES.replace("100", "50").replace(
    "unlimited: true",
    "unit: second, requests_per_unit: 10",
  );
  const ended = bed.hub.setRules(listed(text));
  await bed.pass(100);
  await ended;
  const shown = [one, two].map((envoy) => [short(envoy.inForce("b")), short(envoy.inForce("f"))]);
  assertEquals(shown, [["25 25/1.0 15", "5 5/1.0 15"], ["25 25/1.0 15", "5 5/1.0 15"]]);
});

Deno.test("quota hub: a bucket that is idle for ten minutes is abandoned, and a busy one never", async () => {
  const bed = new QuotaHubBed();
  const envoy = bed.envoy();
  envoy.demand("idle", [{ key: "k", value: "v" }], 0);
  envoy.demand("busy", [{ key: "k", value: "w" }], 1);
  await bed.pass(620_000);
  const abandoned = envoy.received.filter(([, { kind }]) => kind === "abandon");
  assertEquals([abandoned, bed.hub.counts], [[["idle", { kind: "abandon" }]], { buckets: 1, streams: 1 }]);
});

Deno.test("quota hub: surplus buckets have an assignment, and are abandoned when idle", async () => {
  const bed = new QuotaHubBed({ maxBucketsPerStream: 1 });
  const envoy = bed.envoy();
  envoy.demand("a", [{ key: "k", value: "v" }], 1);
  envoy.demand("b", [{ key: "k", value: "w" }], 1);
  await bed.pass(100);
  assertEquals([short(envoy.inForce("b")), bed.refusals], ["deny", [["surplus", "d", undefined]]]);
  envoy.demand("b", [], 0);
  await bed.pass(10_000);
  assertEquals(envoy.received.at(-1)?.[1].kind === "abandon" || envoy.inForce("b") === undefined, true);
});

Deno.test("quota hub: bad buckets are skipped, and the others of the report are not", async () => {
  const bed = new QuotaHubBed();
  const envoy = bed.envoy();
  envoy.demand("empty", [], 1);
  envoy.demand("no key", [{ key: "", value: "v" }], 1);
  envoy.demand("x".repeat(1_025), [{ key: "k", value: "v" }], 1);
  envoy.demand("many", Array.from({ length: 9 }, (_, index) => ({ key: `k${index}`, value: "v" })), 1);
  envoy.demand("good", [{ key: "k", value: "v" }], 1);
  await bed.pass(100);
  const received = envoy.received.map(([id, assignment]) => [id, assignment.kind]);
  // Otherwise the client would report the long one for ever.
  assertEquals(received, [["x".repeat(1_025), "abandon"], ["good", "tokens"]]);
  assertEquals(bed.refusals, Array.from({ length: 4 }, () => ["bad", "d", undefined]));
});

Deno.test("quota hub: streams without a domain, above the maximum, or after the end are refused", async () => {
  const bed = new QuotaHubBed({ maxStreams: 1 });
  const refusals: (StreamRefusal | undefined)[] = [];
  const open = () =>
    bed.hub.open({
      name: undefined,
      actions: { send: () => {}, flush: () => true, confirm: () => false },
      end: (refusal) => void refusals.push(refusal),
    });
  const first = open();
  open();
  await first.report({ domain: "", usages: [] });
  const long = open();
  await long.report({ domain: "d".repeat(1_025), usages: [] });
  const second = open();
  await second.report({ domain: "d", usages: [] });
  bed.hub.close();
  open();
  const codes = ["RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "INVALID_ARGUMENT", undefined, "UNAVAILABLE"];
  assertEquals(refusals.map((refusal) => refusal?.code), codes);
});

Deno.test("quota hub: while the cache fails, assignments are as the rule says", async () => {
  const shares: QuotaShares = {
    exchange: () => Promise.reject(new Error("down")),
    leave: () => Promise.resolve(),
  };
  const bed = new QuotaHubBed({ shares });
  const envoy = bed.envoy();
  const keys = ["k", "open", "shut", "alone"];
  for (const key of keys) envoy.demand(key, [{ key, value: "v" }], 1);
  await bed.pass(6_000);
  assertEquals(keys.map((key) => short(envoy.inForce(key))), [undefined, "allow", "deny", "100 100/1.0 15"]);
});

Deno.test("quota hub: while the cache fails after a time, shares are renewed until the lease is over", async () => {
  let isDown = false;
  const shares: QuotaShares = {
    exchange: () =>
      isDown ? Promise.reject(new Error("down")) : Promise.resolve({ perSecond: 60, leaseMs: 20_000 }),
    leave: () => Promise.resolve(),
  };
  const bed = new QuotaHubBed({ shares });
  const envoy = bed.envoy();
  for (const key of ["k", "alone"]) envoy.demand(key, [{ key, value: "v" }], 500);
  await bed.pass(10_000);
  isDown = true;
  await bed.pass(30_000);
  assertEquals([short(envoy.inForce("k")), short(envoy.inForce("alone"))], [undefined, "60 60/1.0 15"]);
  isDown = false;
  await bed.pass(10_000);
  assertEquals(short(envoy.inForce("k")), "60 60/1.0 15");
});

Deno.test("quota hub: a snapshot shows buckets with their rule, limit and clients", async () => {
  const bed = new QuotaHubBed();
  const [one, two] = [bed.envoy("one"), bed.envoy()];
  one.demand("b", [{ key: "k", value: "v" }], 300);
  two.demand("b", [{ key: "k", value: "v" }], 20);
  two.demand("free", [{ key: "free", value: "x" }], 1);
  await bed.pass(21_000);
  two.disconnect();
  await bed.pass(100);
  const { buckets, quotas } = await bed.hub.snapshot({});
  const clients = quotas.map(({ rule, limit, clientCount, clients }) => [
    rule,
    limit.kind,
    clientCount,
    clients.map(({ name, isConnected, demand, assignment, share, secondsSinceReport }) => [
      name,
      isConnected,
      Math.round(demand),
      assignment,
      share === undefined ? undefined : Math.round(share),
      secondsSinceReport <= 5,
    ]),
  ]);
  assertEquals([buckets, clients.sort()], [2, [
    ["d.free", "allow", 1, [[undefined, false, 1, "allow", undefined, true]]],
    ["d.k", "rate", 2, [["one", true, 300, "tokens", 79, true], [undefined, false, 20, "tokens", 21, true]]],
  ]]);
});

Deno.test("quota hub: a snapshot has the buckets that a filter selects, and a bounded number of them", async () => {
  const bed = new QuotaHubBed({ maxBucketsPerStream: 2_000, maxBuckets: 2_000 });
  const envoy = bed.envoy();
  for (let index = 0; index < 1_001; index++) {
    envoy.demand(`b${index}`, [{ key: "k", value: `v${index}` }, { key: "other", value: "x" }], 1);
  }
  await bed.pass(1_000);
  const seen = [];
  for (
    const [domain, pairs] of [
      [undefined, undefined],
      ["d", undefined],
      ["another", undefined],
      [undefined, [{ key: "other", value: "x" }, { key: "k", value: "v7" }]],
      [undefined, [{ key: "k", value: "v7" }]],
    ] as const
  ) {
    const { buckets, quotas } = await bed.hub.snapshot({ domain, pairs });
    seen.push([buckets, quotas.length]);
  }
  assertEquals(seen, [[1_001, 1_000], [1_001, 1_000], [0, 0], [1, 1], [0, 0]]);
});
