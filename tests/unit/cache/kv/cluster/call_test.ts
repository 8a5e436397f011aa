import { assertEquals, assertRejects } from "#assert";
import { KvCluster, type KvClusterOptions } from "../../../../../src/cache/kv/cluster/cluster.ts";
import { slotOf } from "../../../../../src/cache/kv/cluster/slots.ts";
import { type Answers, takeHits } from "../../../../../src/ratelimit/decision/take_hits.ts";
import { hit } from "../../../../contract/counter_cache_contract.ts";
import { FakeClock } from "../../../../harness/fake_clock.ts";
import { ScriptedKvNodes } from "../../../../harness/scripted_kv_node.ts";
import { outcomes, readCounts, take, takeCounts } from "../../../../harness/take.ts";

/** Keys and their slots: two on the first of three nodes, one on the second, two on the third. */
const SLOT_OF_KEY = { k2: 449, k3: 4_576, k0: 8_579, k1: 12_706, k5: 12_582 } as const;
const SLOTS = [[0, 5_000, ["a", 1]], [5_001, 11_000, ["b", 1]], [11_001, 16_383, ["c", 1]]];

interface Fixture {
  readonly nodes: ScriptedKvNodes;
  readonly clock: FakeClock;
  readonly cache: KvCluster;
}

/** A cluster of the nodes a, b and c, of which a is the seed and every one knows the slots. */
async function openCluster(options: Partial<KvClusterOptions> = {}): Promise<Fixture> {
  const nodes = new ScriptedKvNodes();
  const slots = () => SLOTS;
  for (const address of ["a:1", "b:1", "c:1"]) nodes.at(address).slots = slots;
  const clock = new FakeClock();
  const cache = new KvCluster({
    seeds: [{ host: "a", port: 1 }],
    openNode: nodes.openNode,
    address: "cluster",
    timeoutMs: 1_000,
    parallelism: 0,
    clock,
    random: () => 0.5,
    ...options,
  });
  await cache.ready;
  await turns();
  return { nodes, clock, cache };
}

/** A test with such a cluster, which is closed at the end. */
function testCluster(name: string, run: (fixture: Fixture) => Promise<void>): void {
  Deno.test(`kv cluster call: ${name}`, async () => {
    const fixture = await openCluster();
    await run(fixture);
    await fixture.cache.close();
  });
}

/** Lets everything happen that waits for no clock. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}

async function advance(clock: FakeClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) {
    clock.advance(10);
    await turns();
  }
}

/** The outcome of each hit of a call: its count, or its error without the name of the cluster. */
async function outcomesOf(answers: Answers | Promise<Answers>): Promise<unknown[]> {
  return (await outcomes(answers)).map((outcome) => {
    return typeof outcome === "string"
      ? outcome.replace('Cannot query key-value cache "cluster": ', "")
      : outcome;
  });
}

function hits(...keys: (keyof typeof SLOT_OF_KEY)[]): ReturnType<typeof hit>[] {
  return keys.map((key) => hit({ key }));
}

Deno.test("kv cluster call: the keys of these tests lie in the slots that they are said to lie in", () => {
  assertEquals<unknown>(Object.keys(SLOT_OF_KEY).map(slotOf), Object.values(SLOT_OF_KEY));
});

testCluster("one batch for each node, and the counts in the order of the hits", async ({ nodes, cache }) => {
  nodes.at("a:1").script = () => [1, 2, 3];
  nodes.at("b:1").script = () => [4];
  nodes.at("c:1").script = () => [5, 6];
  assertEquals(await takeCounts(cache, hits("k1", "k2", "k0", "k3", "k5", "k2")), [5, 1, 4, 2, 6, 3]);
  const asked = ["a:1", "b:1", "c:1"].map((address) => nodes.at(address).asked);
  assertEquals(asked, [[["k2", "k3", "k2"]], [["k0"]], [["k1", "k5"]]]);
  assertEquals([await takeCounts(cache, []), await readCounts(cache, hits("k0"))], [[], [4]]);
});

testCluster("counts that came are returned when one node of three fails", async ({ nodes, cache }) => {
  nodes.at("b:1").script = () => ["the connection was closed"];
  nodes.at("c:1").script = () => [7, "ERR value is not an integer or out of range"];
  assertEquals(await outcomesOf(takeHits(cache, hits("k0", "k1", "k2", "k5"))), [
    'node "b:1": the connection was closed',
    7,
    1,
    'node "c:1": ERR value is not an integer or out of range',
  ]);
});

const NEVER_AGAIN = [
  "the connection was closed",
  "no answer within 1000 ms",
  "CLUSTERDOWN The cluster is down",
  "TRYAGAIN Multiple keys request during rehashing of slot",
  "LOADING Redis is loading the dataset in memory",
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  "MOVED 449 nowhere",
];

for (const state of NEVER_AGAIN) {
  Deno.test(`kv cluster call: a hit is not sent again after "${state}"`, async () => {
    const { nodes, cache } = await openCluster();
    nodes.at("a:1").script = () => [state];
    assertEquals(await outcomesOf(takeHits(cache, hits("k2"))), [`node "a:1": ${state}`]);
    assertEquals(["a:1", "b:1", "c:1"].map((address) => nodes.at(address).asked.length), [1, 0, 0]);
    await cache.close();
  });
}

testCluster("only the hits that were sent on go to the node that was named", async ({ nodes, cache }) => {
  nodes.at("a:1").script = () => [5, "MOVED 4576 d:1", 6, "MOVED 4576 d:1"];
  nodes.at("d:1").script = (asked) => asked.map((_, index) => 70 + index);
  assertEquals(await takeCounts(cache, hits("k2", "k3", "k2", "k3")), [5, 70, 6, 71]);
  nodes.at("a:1").script = () => [8];
  assertEquals(await takeCounts(cache, hits("k3", "k2")), [70, 8]);
  const asked = ["a:1", "d:1"].map((address) => nodes.at(address).asked);
  assertEquals(asked, [[["k2", "k3", "k2", "k3"], ["k2"]], [["k3", "k3"], ["k3"]]]);
  assertEquals(cache.metrics.counters.cluster_moved?.(), 2);
});

testCluster("a slot on its way is asked at its new node for these hits only", async ({ nodes, cache }) => {
  nodes.at("a:1").script = (asked) => asked.map(({ key }) => key === "k3" ? "ASK 4576 b:1" : 3);
  nodes.at("b:1").script = (_, { asking }) => asking === true ? [9] : ["MOVED 4576 a:1"];
  assertEquals(await takeCounts(cache, hits("k2", "k3")), [3, 9]);
  assertEquals(await takeCounts(cache, hits("k3")), [9]);
  assertEquals(nodes.at("a:1").asked, [["k2", "k3"], ["k3"]]);
  assertEquals(nodes.at("b:1").asked, [["ASKING", "k3"], ["ASKING", "k3"]]);
});

testCluster(
  "a counter that is used again is routed and sent on each time",
  async ({ nodes, clock, cache }) => {
    const [one = hit()] = hits("k2");
    const counter = cache.counterOf(one);
    nodes.at("a:1").script = () => [8];
    assertEquals(await take(counter, 1), 8);
    nodes.at("a:1").script = (asked) => asked.map(() => "MOVED 449 d:1");
    nodes.at("d:1").slow = true;
    const [first, second] = [take(counter, 1), take(counter, 1)];
    await advance(clock, 100);
    nodes.at("d:1").connect();
    assertEquals([await first, await second], [1, 1]);
    const asked = ["a:1", "d:1"].map((address) => nodes.at(address).asked);
    assertEquals(asked, [[["k2"], ["k2", "k2"]], [["k2", "k2"]]]);
  },
);

testCluster("a node that names no host means its own", async ({ nodes, cache }) => {
  nodes.at("b:1").script = () => ["MOVED 8579 :2"];
  nodes.at("b:2").script = () => [4];
  assertEquals(await takeCounts(cache, hits("k0")), [4]);
});

testCluster("nodes that send a hit to one another are given moments", async ({ nodes, clock, cache }) => {
  nodes.at("a:1").script = () => ["MOVED 449 b:1"];
  nodes.at("b:1").script = () => ["MOVED 449 a:1"];
  const call = outcomesOf(takeHits(cache, hits("k2")));
  await advance(clock, 300);
  assertEquals(await call, ['node "a:1": the nodes send the hit to one another']);
  assertEquals([nodes.at("a:1").asked.length, nodes.at("b:1").asked.length], [3, 3]);
});

testCluster("nodes that agree after a moment answer all the same", async ({ nodes, clock, cache }) => {
  const [a, b] = [nodes.at("a:1"), nodes.at("b:1")];
  a.script = () => ["MOVED 449 b:1"];
  b.script = () => b.asked.length < 3 ? ["MOVED 449 a:1"] : [1];
  const call = takeCounts(cache, hits("k2"));
  await advance(clock, 300);
  assertEquals(await call, [1]);
});

testCluster("being sent on ends with the time-out of the call", async ({ nodes, clock, cache }) => {
  nodes.at("a:1").script = () => ["MOVED 449 b:1"];
  nodes.at("b:1").script = () => undefined;
  let ended = false;
  const call = outcomesOf(takeHits(cache, hits("k2"))).finally(() => ended = true);
  await advance(clock, 990);
  assertEquals([ended, nodes.at("b:1").options?.caller?.cancelled], [false, false]);
  await advance(clock, 10);
  assertEquals(await call, ['node "b:1": no answer within 1000 ms']);
  assertEquals(nodes.at("b:1").options?.caller?.cancelled, true);
});

testCluster("an opening node is waited for until the time-out", async ({ nodes, clock, cache }) => {
  nodes.at("a:1").script = (asked) => asked.map(() => "MOVED 449 d:1");
  nodes.at("d:1").slow = true;
  const [first, second] = [takeCounts(cache, hits("k2")), takeCounts(cache, hits("k2"))];
  await advance(clock, 500);
  assertEquals(nodes.at("d:1").asked, []);
  nodes.at("d:1").connect();
  assertEquals([await first, await second], [[1], [1]]);
  nodes.at("a:1").script = () => ["MOVED 4576 e:1"];
  nodes.at("e:1").slow = true;
  const late = outcomesOf(takeHits(cache, hits("k3")));
  await advance(clock, 1_000);
  assertEquals(await late, ['node "e:1": no answer within 1000 ms']);
  assertEquals(nodes.at("e:1").asked, []);
});

Deno.test("kv cluster call: as many nodes as allowed are asked at the same time", async () => {
  for (const [parallelism, before] of [[0, 3], [1, 1], [2, 2], [7, 3]] as const) {
    const { nodes, cache } = await openCluster({ parallelism });
    const gates = ["a:1", "b:1", "c:1"].map((address) => {
      const node = nodes.at(address);
      node.gate = Promise.withResolvers<void>();
      return node;
    });
    const call = takeCounts(cache, hits("k2", "k0", "k1"));
    await turns();
    assertEquals(gates.filter(({ asked }) => asked.length > 0).length, before);
    for (const { gate } of gates) gate?.resolve();
    assertEquals(await call, [1, 1, 1]);
    await cache.close();
  }
});

testCluster("keys are removed where they are, one by one", async ({ nodes, cache }) => {
  const removed: string[] = [];
  for (const address of ["a:1", "b:1", "c:1", "d:1"]) {
    nodes.at(address).run = (args, asking) => {
      if (address === "a:1" && args[1] === "k3") throw new Error("MOVED 4576 d:1");
      if (address === "c:1" && args[1] === "k5") throw new Error("ASK 12582 a:1");
      return removed.push(`${address} ${asking ? "ASKING " : ""}${args.join(" ")}`);
    };
  }
  await cache.remove(["k2", "k3", "k0", "k5"]);
  assertEquals(removed.sort(), ["a:1 ASKING DEL k5", "a:1 DEL k2", "b:1 DEL k0", "d:1 DEL k3"]);
  nodes.at("b:1").run = () => {
    throw new Error("NOPERM no");
  };
  const error = await assertRejects(() => cache.remove(["k2", "k0"]));
  assertEquals(error.message, 'Cannot query key-value cache "cluster": node "b:1": NOPERM no');
});

Deno.test("kv cluster call: closing ends all waits, and every timer", async () => {
  const { nodes, clock, cache } = await openCluster();
  nodes.at("a:1").script = () => ["MOVED 449 b:1"];
  nodes.at("b:1").script = () => undefined;
  const call = outcomesOf(takeHits(cache, hits("k2")));
  await turns();
  await cache.close();
  assertEquals((await call).length, 1);
  assertEquals([clock.waiting, ...["a:1", "b:1", "c:1"].map((address) => nodes.at(address).closed)], [
    0,
    1,
    1,
    1,
  ]);
});
