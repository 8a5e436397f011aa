import { assertEquals, assertStringIncludes, assertThrows } from "#assert";
import { latestResults } from "../../../scripts/docs/performance_page.ts";
import { type ScaleResults, scaleResults } from "../../../scripts/bench/scale.ts";
import {
  type Costs,
  costsOf,
  DECISION_FORMULAS,
  type DecisionPlan,
  EVENT_FORMULAS,
  type EventPlan,
} from "../../../scripts/docs/scale_formulas.ts";

const COSTS: Costs = {
  memoryCall: 12e-6,
  call: 10e-6,
  callBatch: 80e-6,
  command: 1e-6,
  commandBatch: 8e-6,
  counterBytes: 150,
  hotIncrements: 0.01,
  bucketReport: 20e-6,
  event: { bytes: 500, wal: 600, removalWal: 100, deadRows: 0, transactions: 0.5 },
  delivery: { bytes: 1_500, wal: 2_000, removalWal: 200, deadRows: 3, transactions: 1.5 },
  deliveriesPerSecond: 2_500,
};
const DECISIONS: DecisionPlan = {
  calls: 59_000,
  keys: 6_000,
  windowSeconds: 60,
  jitterSeconds: 120,
  pool: 10,
  perBatch: 4,
  hotShare: 0.5,
  envoys: 10,
  buckets: 1_000,
};
const EVENTS: EventPlan = {
  events: 1_500,
  endpoints: 2,
  retentionDays: 2,
  instances: 3,
  pool: 10,
  backlog: 5_400_000,
};

Deno.test("every formula of decisions has the result that its text gives", () => {
  const cases: Readonly<Record<string, readonly [name: string, change: Partial<DecisionPlan>, number]>> = {
    "59,000 × 12 µs / 0.6": ["Threads of Weir, counters in memory", {}, 2],
    "59,000 × (10 µs + 80 µs / 4) / 0.6": ["Threads of Weir, counters in redis", {}, 3],
    "each command is a batch": ["Threads of Weir, counters in redis", { perBatch: 1 }, 9],
    "3 threads × 6,000 keys / 60 s": ["EXPIRE commands/s", {}, 300],
    "one for each call": ["EXPIRE commands/s", { keys: 150_000, windowSeconds: 1 }, 59_000],
    "no thread remembers so many": ["EXPIRE commands/s", { keys: 200_001 }, 59_000],
    "59,300 × (1 µs + 8 µs / 4) / 0.6": ["Nodes of redis", {}, 1],
    "118,000 × (1 µs + 8 µs / 1) / 0.6": ["Nodes of redis", { keys: 300_000, perBatch: 1 }, 2],
    "16,384 / 2": ["Slots of a node", { keys: 300_000, perBatch: 1 }, 8_192],
    "59,000 × 0.5 × 0.01": ["Increments/s of the hot key", {}, 295],
    "6,000 × (60 + 60) / 60": ["Counters in redis", {}, 12_000],
    "12,000 × 150": ["Memory of all nodes", {}, 1_800_000],
    "3 threads × 10": ["Connections of a node", {}, 30],
    "2 nodes × 10": ["Connections of a thread", { keys: 300_000, perBatch: 1 }, 20],
    "10 × 1,000 / 5 s × 20 µs / 0.6": ["Cores for quotas instead of calls", {}, 0.04 / 0.6],
  };
  for (const [sum, [name, change, expected]] of Object.entries(cases)) {
    assertEquals(
      rounded(resultOf(DECISION_FORMULAS, name, { ...DECISIONS, ...change })),
      rounded(expected),
      sum,
    );
  }
  assertEquals(new Set(Object.values(cases).map(([name]) => name)).size, DECISION_FORMULAS.length);
});

Deno.test("every formula of events has the result that its text gives", () => {
  const cases: Readonly<Record<string, readonly [name: string, number]>> = {
    "1,500 × 2": ["Deliveries/s", 3_000],
    "3,000 / (2,500 × 0.6)": ["Databases (shards)", 2],
    "1,500 × (1 + 2 × 2)": ["Rows/s", 7_500],
    "7,500 + 1,500 × 2 × 3": ["Dead rows/s", 16_500],
    "1,500 × 2 d × (500 + 2 × 1,500)": ["Size of all databases", 1_500 * 172_800 * 3_500],
    "1,500 × (700 + 2 × 2,200)": ["WAL/s of all databases", 7_650_000],
    "200,000,000 × 2 / (1,500 × (0.5 + 2 × 1.5))": [
      "Time until a database freezes rows",
      400_000_000 / 5_250,
    ],
    "3 × 10": ["Connections of a database", 30],
    "5,400,000 / 1,500": ["Time until the backlog of a lost endpoint is full", 3_600],
  };
  for (const [sum, [name, expected]] of Object.entries(cases)) {
    assertEquals(rounded(resultOf(EVENT_FORMULAS, name, EVENTS)), rounded(expected), sum);
  }
  assertEquals(Object.keys(cases).length, EVENT_FORMULAS.length);
});

Deno.test("costs are on the line through two runs, and those of a delivery have no part of its event", async () => {
  const bench = await latestResults();
  const scale = await scaleResults();
  const run = (batches: number, micros: number) => ({
    ...scale.cache.groups,
    calls: 1_000,
    increments: 1_000,
    batches,
    weirCpuSeconds: micros * 1_000 / 1e6,
    redisCpuSeconds: micros * 100 / 1e6,
  });
  const store = (endpoints: number, bytes: number) => ({
    ...scale.store.events,
    endpoints,
    bytes,
    events: 100,
    walBytes: 2 * bytes,
    removalWalBytes: bytes,
    deadRows: endpoints,
  });
  const made: ScaleResults = {
    ...scale,
    cache: { ...scale.cache, groups: run(100, 14), alone: run(500, 30) },
    store: { ...scale.store, events: store(0, 50_000), deliveries: store(10, 250_000) },
  };
  const costs = costsOf(bench, made);
  const found = [costs.call, costs.callBatch, costs.command, costs.commandBatch];
  assertEquals(found.map((value) => rounded(value * 1e6)), [10, 40, 1, 4]);
  const { event, delivery } = costs;
  assertEquals([event.bytes, event.wal, delivery.bytes, delivery.wal], [500, 1_000, 200, 400]);
  const reversed = { ...made, cache: { ...made.cache, groups: run(100, 30), alone: run(500, 14) } };
  assertStringIncludes(assertThrows(() => costsOf(bench, reversed)).message, "repeat scripts/bench/scale.ts");
});

function rounded(value: number): number {
  return Number(value.toPrecision(9));
}

function resultOf<Plan>(
  formulas: readonly { readonly what: string; readonly of: (plan: Plan, costs: Costs) => number }[],
  name: string,
  plan: Plan,
): number {
  return formulas.find(({ what }) => what === name)?.of(plan, COSTS) ?? NaN;
}
