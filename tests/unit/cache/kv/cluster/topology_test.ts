import { assertEquals, assertRejects } from "#assert";
import { KvTopology, type KvTopologyOptions } from "../../../../../src/cache/kv/cluster/topology.ts";
import { KvCluster } from "../../../../../src/cache/kv/cluster/cluster.ts";
import type { Counted } from "../../../../../src/ratelimit/algorithms/taken.ts";
import { kvCounterOf } from "../../../../../src/cache/kv/counters.ts";
import { hit } from "../../../../contract/counter_cache_contract.ts";
import { FakeClock } from "../../../../harness/fake_clock.ts";
import { ScriptedKvNodes } from "../../../../harness/scripted_kv_node.ts";
import { takeCounts } from "../../../../harness/take.ts";

const [A, B, C, D] = ["a", "b", "c", "d"].map((host) => ({ host, port: 1 }));
const HALVES = [[0, 8_191, ["a", 1]], [8_192, 16_383, ["b", 1]]];

interface Fixture {
  readonly nodes: ScriptedKvNodes;
  readonly clock: FakeClock;
  readonly topology: KvTopology;
  /** Reports about the connection. */
  readonly told: string[];
}

/** Begins with the seeds a and b, which both know the slots unless `prepare` says otherwise. */
function open(
  prepare: (nodes: ScriptedKvNodes) => void = () => {},
): Fixture & { options: KvTopologyOptions } {
  const nodes = new ScriptedKvNodes();
  for (const address of ["a:1", "b:1"]) nodes.at(address).slots = () => HALVES;
  prepare(nodes);
  const clock = new FakeClock();
  const told: string[] = [];
  const options = {
    seeds: [A, B].flatMap((seed) => seed ?? []),
    openNode: nodes.openNode,
    timeoutMs: 2_000,
    clock,
    random: () => 0,
    onConnection: (connected: boolean, reason: string) => void told.push(`${connected} ${reason}`.trim()),
  };
  return { nodes, clock, told, options, topology: new KvTopology(options) };
}

/** Lets time pass, and everything happen that waits for no clock. */
async function pass(clock: FakeClock, ms = 0): Promise<void> {
  for (let passed = 0; passed <= ms; passed += 10) {
    if (passed > 0) clock.advance(10);
    for (let turn = 0; turn < 40; turn++) await Promise.resolve();
  }
}

/** A test with a topology that knows the slots; it is closed at the end, and no timer is left. */
function testTopology(name: string, run: (fixture: Fixture) => Promise<void>): void {
  Deno.test(`kv cluster topology: ${name}`, async () => {
    const fixture = open();
    const { clock, topology } = fixture;
    await pass(clock, 1_000);
    await run(fixture);
    await topology.close();
    assertEquals(clock.waiting, 0);
  });
}

function looks({ topology }: Fixture): number {
  return topology.tally.refreshes;
}

Deno.test("kv cluster topology: asks a seed, and then a node now and then", async () => {
  const fixture = open();
  const { clock, topology, told } = fixture;
  await topology.ready;
  assertEquals([topology.nodeOf(0)?.address, topology.nodeOf(16_383)?.address], ["a:1", "b:1"]);
  await pass(clock, 1_000);
  const first = looks(fixture);
  await pass(clock, 90_000);
  assertEquals([looks(fixture) - first, told], [3, ["true"]]);
  await topology.close();
  assertEquals(clock.waiting, 0);
});

const GARBAGE: Readonly<Record<string, unknown>> = {
  "a text": "OK",
  "nothing": null,
  "no slots": [],
  "ranges that cannot be": [[0, 99_999, ["a", 1]], ["x"]],
  "an error": new Error("ERR This instance has cluster support disabled"),
};

for (const [name, answer] of Object.entries(GARBAGE)) {
  Deno.test(`kv cluster topology: a node that answers ${name} is passed over until it knows better`, async () => {
    const fixture = open((nodes) => {
      for (const address of ["a:1", "b:1"]) {
        nodes.at(address).slots = () => {
          if (answer instanceof Error) throw answer;
          return answer;
        };
      }
    });
    const { nodes, clock, topology, told } = fixture;
    await pass(clock, 2_000);
    const state = answer instanceof Error ? answer.message : "it knows of no slots";
    assertEquals([topology.isKnown, topology.connected, told], [false, false, [
      `false node "a:1": ${state}`,
    ]]);
    assertEquals(looks(fixture) < 8, true);
    nodes.at("b:1").slots = () => HALVES;
    await pass(clock, 1_000);
    assertEquals([topology.nodeOf(1)?.address, topology.connected, told.length], ["a:1", true, 2]);
    await topology.close();
    assertEquals(clock.waiting, 0);
  });
}

Deno.test("kv cluster topology: a seed that never answers does not hold the others up", async () => {
  const { clock, topology } = open((nodes) => {
    nodes.at("a:1").slots = undefined;
  });
  await pass(clock);
  assertEquals([topology.isKnown, topology.connected], [true, true]);
  await topology.close();
  assertEquals(clock.waiting, 0);
});

testTopology("many redirections bring one look in a tenth of a second", async (fixture) => {
  const { clock, topology } = fixture;
  const before = looks(fixture);
  for (let turn = 0; turn < 100; turn++) {
    for (let slot = 0; slot < 10; slot++) {
      if (B !== undefined) topology.follow({ kind: "MOVED", slot, endpoint: B });
    }
    await pass(clock, 10);
  }
  assertEquals([looks(fixture) - before >= 9, looks(fixture) - before <= 11], [true, true]);
});

testTopology(
  "a redirection counts immediately, and the next look wins",
  async ({ nodes, clock, topology }) => {
    if (C === undefined) throw new Error("Cannot name a node");
    topology.follow({ kind: "MOVED", slot: 5, endpoint: C });
    assertEquals([4, 5, 6].map((slot) => topology.nodeOf(slot)?.address), ["a:1", "c:1", "a:1"]);
    for (const address of ["a:1", "b:1", "c:1"]) {
      nodes.at(address).slots = () => [[0, 9, ["c", 1]], [10, 16_383, ["b", 1]]];
    }
    await pass(clock, 200);
    assertEquals([5, 9, 10].map((slot) => topology.nodeOf(slot)?.address), ["c:1", "c:1", "b:1"]);
  },
);

Deno.test("kv cluster topology: a node that is not named any more is closed once nothing is under way on it", async () => {
  const { nodes, clock, topology } = open();
  await pass(clock, 1_000);
  const a = nodes.at("a:1");
  a.gate = Promise.withResolvers();
  const call = Promise.withResolvers<Counted>();
  topology.nodeOf(0)?.take(kvCounterOf(hit(), () => {}), 1, {
    caller: undefined,
    receiver: { counted: call.resolve, failed: call.reject },
  });
  for (const address of ["a:1", "b:1"]) nodes.at(address).slots = () => [[0, 16_383, ["b", 1]]];
  await pass(clock, 60_000);
  assertEquals([topology.nodeOf(0)?.address, a.closed], ["b:1", 0]);
  assertEquals(topology.metrics.counters.cx_total?.(), 1);
  a.gate.resolve();
  assertEquals(await call.promise, 1);
  await pass(clock, 11_000);
  assertEquals([a.closed, nodes.at("b:1").closed], [1, 0]);
  assertEquals([topology.metrics.counters.cx_total?.(), topology.metrics.gauges.cluster_nodes?.()], [1, 1]);
  await topology.close();
  assertEquals([a.closed, nodes.at("b:1").closed, clock.waiting], [1, 1, 0]);
});

testTopology("a node that is used once is closed unless it is named", async ({ nodes, clock, topology }) => {
  if (D === undefined) throw new Error("Cannot name a node");
  topology.open(D);
  await pass(clock, 45_000);
  assertEquals(nodes.at("d:1").closed, 1);
});

testTopology("a lost primary is looked for again and again, but not too often", async (fixture) => {
  const { nodes, clock, topology, told } = fixture;
  const before = looks(fixture);
  nodes.at("a:1").leave();
  for (let turn = 0; turn < 500; turn++) {
    topology.refresh.suspect();
    await pass(clock, 10);
  }
  const during = looks(fixture) - before;
  assertEquals([during >= 5, during <= 15, topology.connected, told], [true, true, true, ["true"]]);
  nodes.at("b:1").slots = () => [[0, 8_191, ["c", 1]], [8_192, 16_383, ["b", 1]]];
  await pass(clock, 1_000);
  assertEquals([topology.nodeOf(0)?.address, topology.nodeOf(0)?.kv.connected], ["c:1", true]);
});

testTopology(
  "a node that stands still costs a second, and is asked last",
  async ({ nodes, clock, topology }) => {
    const [a, b] = [nodes.at("a:1"), nodes.at("b:1")];
    a.slots = undefined;
    const node = topology.nodeOf(0);
    if (node === undefined) throw new Error("Cannot find a node");
    node.failed();
    const before = [a.looks, b.looks];
    topology.refresh.suspect();
    await pass(clock, 3_000);
    assertEquals([a.looks - (before[0] ?? 0), b.looks - (before[1] ?? 0) >= 2], [0, true]);
  },
);

testTopology("a failure of a node that is not asked again is forgotten", async (fixture) => {
  const { clock, topology } = fixture;
  topology.nodeOf(0)?.failed();
  topology.refresh.suspect();
  const before = looks(fixture);
  await pass(clock, 9_900);
  const during = looks(fixture) - before;
  assertEquals([during >= 10, topology.nodeOf(0)?.isFailing], [true, true]);
  await pass(clock, 15_000);
  assertEquals([looks(fixture) - before - during <= 1, topology.nodeOf(0)?.isFailing], [true, false]);
});

testTopology("a node that tells the slots has ceased to fail", async ({ nodes, clock, topology }) => {
  nodes.at("b:1").slots = () => "OK";
  topology.nodeOf(0)?.failed();
  topology.refresh.suspect();
  await pass(clock, 1_000);
  assertEquals(topology.nodeOf(0)?.isFailing, false);
});

testTopology(
  "one that comes back after an outage is asked soon",
  async ({ nodes, clock, topology, told }) => {
    nodes.at("a:1").leave();
    nodes.at("b:1").leave();
    await pass(clock, 60_000);
    assertEquals([topology.connected, topology.isKnown], [false, true]);
    nodes.at("b:1").connect();
    await pass(clock, 200);
    assertEquals([topology.connected, told], [true, ["true", 'false node "a:1": gone', "true"]]);
  },
);

Deno.test("kv cluster topology: calls wait for the first look while there is one, and else fail immediately", async () => {
  const { nodes, clock, topology, options } = open((scripted) => {
    scripted.at("a:1").away = true;
    scripted.at("b:1").slow = true;
  });
  await topology.close();
  const cache = new KvCluster({ ...options, address: "cluster", parallelism: 0 });
  const states: string[] = [];
  // A key whose slot is that of node b.
  const ask = () =>
    takeCounts(cache, [hit({ key: "{a}" })]).then(
      () => states.push("ok"),
      (error) => states.push(error.message),
    );
  const call = ask();
  await pass(clock, 500);
  assertEquals(states, []);
  nodes.at("b:1").connect();
  await call;
  assertEquals(states, ["ok"]);
  await cache.close();
  nodes.at("b:1").slow = true;
  const other = new KvCluster({ ...options, address: "cluster", parallelism: 0 });
  const late = assertRejects(() => takeCounts(other, [hit()]));
  await pass(clock, 1_010);
  const message = 'Cannot query key-value cache "cluster": node "a:1": refused';
  assertEquals((await late).message, message);
  assertEquals((await assertRejects(() => takeCounts(other, [hit()]))).message, message);
  await other.close();
  assertEquals(clock.waiting, 0);
});

Deno.test("kv cluster topology: an expiry that a node cannot set goes to the node that has the slot", async () => {
  const { nodes, clock, topology } = open();
  const late = { key: "{a}", expiresInSeconds: 60, windowEnd: 100 };
  assertEquals(nodes.at("a:1").placeExpiry(late), false);
  await topology.ready;
  const place = nodes.at("a:1").placeExpiry;
  assertEquals([place(late), nodes.at("b:1").owed], [true, ["{a}"]]);
  await topology.close();
  assertEquals([place(late), clock.waiting], [false, 0]);
});
