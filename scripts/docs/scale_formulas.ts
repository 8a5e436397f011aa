import type { BenchResults } from "../bench/measurements.ts";
import type { ScaleResults } from "../bench/scale.ts";
import type { CacheRun } from "../bench/scale_cache.ts";
import type { StoreRun } from "../bench/scale_store.ts";

/** The share of a core, or of a measured rate, that is planned for. */
export const BUSY = 0.6;
/** Slots of a redis cluster. */
const SLOTS = 16_384;
/** Counters of a node whose expiry a thread remembers. */
const KNOWN_EXPIRIES = 200_000;
/** `autovacuum_freeze_max_age` of PostgreSQL: transactions until it has to freeze rows. */
const FREEZE_AGE = 200_000_000;
/** Seconds between two reports of an Envoy. */
const REPORT_SECONDS = 5;
const DAY = 86_400;

/** The costs of one call, batch, counter, event and delivery, in seconds of a core, bytes and counts. */
export interface Costs {
  readonly memoryCall: number;
  readonly call: number;
  readonly callBatch: number;
  readonly command: number;
  readonly commandBatch: number;
  readonly counterBytes: number;
  readonly hotIncrements: number;
  readonly bucketReport: number;
  readonly event: StoreCosts;
  readonly delivery: StoreCosts;
  /** Deliveries a second of one database. */
  readonly deliveriesPerSecond: number;
}

/** The traces of one event or delivery in PostgreSQL. */
export interface StoreCosts {
  readonly bytes: number;
  readonly wal: number;
  readonly removalWal: number;
  readonly deadRows: number;
  readonly transactions: number;
}

/** An installation that decides. */
export interface DecisionPlan {
  readonly calls: number;
  /** Counters that are used in one window. */
  readonly keys: number;
  readonly windowSeconds: number;
  readonly jitterSeconds: number;
  /** `KV_POOL_SIZE`. */
  readonly pool: number;
  /** Commands that Weir sends to a node together. */
  readonly perBatch: number;
  /** The part of the calls that have the most frequent key. */
  readonly hotShare: number;
  /** Envoys with quotas, and the buckets of each. */
  readonly envoys: number;
  readonly buckets: number;
}

/** An installation that delivers events. */
export interface EventPlan {
  readonly events: number;
  /** Endpoints that get each event. */
  readonly endpoints: number;
  readonly retentionDays: number;
  /** Instances of a shard, and their `WEBHOOK_STORE_POOL_SIZE`. */
  readonly instances: number;
  readonly pool: number;
  /** `WEBHOOK_MAX_BACKLOG`. */
  readonly backlog: number;
}

/** A row of a table: a result, the formula as text, and the same as code; a time is in seconds. */
export interface Formula<Plan> {
  readonly what: string;
  readonly text: string;
  readonly of: (plan: Plan, costs: Costs) => number;
  readonly unit: "number" | "bytes" | "bytes/s" | "cores" | "time";
}

/** The costs, from the results of the bench and of the scale measurement. */
export function costsOf(bench: BenchResults, scale: ScaleResults): Costs {
  const { groups, alone, hotKey } = scale.cache;
  const [call, callBatch] = linear(groups, alone, ({ weirCpuSeconds, calls }) => weirCpuSeconds / calls);
  const [command, commandBatch] = linear(groups, alone, (run) => run.redisCpuSeconds / run.increments);
  const memory = bench.summaries.find(({ scenario, target }) => scenario === "8x1" && target === "memory");
  const postgres = bench.postgres?.stores.find(({ store }) => store === "PostgreSQL, one instance");
  const { quotas } = bench;
  if (memory === undefined || postgres === undefined || quotas === undefined) {
    throw new Error("Cannot write scale.md: latest.json is not the result of a whole run");
  }
  const { events, deliveries } = scale.store;
  const event = perEvent(events);
  const whole = perEvent(deliveries);
  const share = (name: keyof StoreCosts) => Math.max(0, whole[name] - event[name]) / deliveries.endpoints;
  return {
    memoryCall: memory.median.cpuSecondsPer100k / 100_000,
    call,
    callBatch,
    command,
    commandBatch,
    counterBytes: groups.counterBytes / groups.counters,
    hotIncrements: hotKey.increments / hotKey.calls,
    bucketReport: quotas.quotas / (quotas.clients * quotas.buckets),
    event,
    delivery: {
      bytes: share("bytes"),
      wal: share("wal"),
      removalWal: share("removalWal"),
      deadRows: share("deadRows"),
      transactions: share("transactions"),
    },
    deliveriesPerSecond: postgres.deliveries,
  };
}

/** The line through two runs: the cost of a command, and that of a batch. */
function linear(first: CacheRun, second: CacheRun, costOf: (run: CacheRun) => number): [number, number] {
  const batches = (run: CacheRun) => run.batches / run.increments;
  const perBatch = (costOf(second) - costOf(first)) / (batches(second) - batches(first));
  const perCommand = costOf(first) - perBatch * batches(first);
  if (perBatch > 0 && perCommand > 0) return [perCommand, perBatch];
  throw new Error("Cannot write scale.md: a batch or a command costs nothing; repeat scripts/bench/scale.ts");
}

function perEvent(run: StoreRun): StoreCosts {
  return {
    bytes: run.bytes / run.events,
    wal: run.walBytes / run.events,
    removalWal: run.removalWalBytes / run.events,
    deadRows: run.deadRows / run.events,
    transactions: run.transactions / run.events,
  };
}

/** Threads that decide, each on one core; an instance has one, or `WORKERS` of them. */
export function threads({ calls, perBatch }: DecisionPlan, { call, callBatch }: Costs): number {
  return Math.ceil(calls * (call + callBatch / perBatch) / BUSY);
}

/** EXPIRE commands a second. */
function expires(plan: DecisionPlan, costs: Costs): number {
  const { calls, keys, windowSeconds } = plan;
  const areKnown = keys / nodesFor(calls, plan, costs) <= KNOWN_EXPIRIES;
  return areKnown ? Math.min(calls, threads(plan, costs) * keys / windowSeconds) : calls;
}

/** Nodes of the redis cluster. */
export function nodes(plan: DecisionPlan, costs: Costs): number {
  return nodesFor(plan.calls + expires(plan, costs), plan, costs);
}

function nodesFor(commands: number, { perBatch }: DecisionPlan, { command, commandBatch }: Costs): number {
  return Math.ceil(commands * (command + commandBatch / perBatch) / BUSY);
}

/** Counters that are stored at the same time. */
function counters({ keys, windowSeconds, jitterSeconds }: DecisionPlan): number {
  return keys * (windowSeconds + jitterSeconds / 2) / windowSeconds;
}

/** The rows of decisions. */
export const DECISION_FORMULAS: readonly Formula<DecisionPlan>[] = [
  {
    what: "Threads of Weir, counters in memory",
    text: `calls/s × CPU of a call in memory / ${BUSY}`,
    of: ({ calls }, { memoryCall }) => Math.ceil(calls * memoryCall / BUSY),
    unit: "number",
  },
  {
    what: "Threads of Weir, counters in redis",
    text: `calls/s × (CPU of a call + CPU of a batch / commands in a batch) / ${BUSY}`,
    of: threads,
    unit: "number",
  },
  {
    what: "EXPIRE commands/s",
    text: "the smaller one of calls/s and threads × keys / window; " +
      `calls/s with more than ${KNOWN_EXPIRIES.toLocaleString("en-US")} keys of a node`,
    of: expires,
    unit: "number",
  },
  {
    what: "Nodes of redis",
    text: `(calls/s + EXPIRE/s) × (CPU of a command + CPU of its batch / commands in a batch) / ${BUSY}`,
    of: nodes,
    unit: "number",
  },
  {
    what: "Slots of a node",
    text: `${SLOTS.toLocaleString("en-US")} / nodes`,
    of: (plan, costs) => SLOTS / nodes(plan, costs),
    unit: "number",
  },
  {
    what: "Increments/s of the hot key",
    text: "calls/s × share of the key × increments of a call with one key",
    of: ({ calls, hotShare }, { hotIncrements }) => calls * hotShare * hotIncrements,
    unit: "number",
  },
  {
    what: "Counters in redis",
    text: "keys × (window + jitter / 2) / window",
    of: counters,
    unit: "number",
  },
  {
    what: "Memory of all nodes",
    text: "counters × bytes of a counter",
    of: (plan, { counterBytes }) => counters(plan) * counterBytes,
    unit: "bytes",
  },
  {
    what: "Connections of a node",
    text: "threads × `KV_POOL_SIZE`",
    of: (plan, costs) => threads(plan, costs) * plan.pool,
    unit: "number",
  },
  {
    what: "Connections of a thread",
    text: "nodes × `KV_POOL_SIZE`",
    of: (plan, costs) => nodes(plan, costs) * plan.pool,
    unit: "number",
  },
  {
    what: "Cores for quotas instead of calls",
    text: `Envoys × buckets / ${REPORT_SECONDS} s × CPU of a report / ${BUSY}`,
    of: ({ envoys, buckets }, { bucketReport }) => envoys * buckets / REPORT_SECONDS * bucketReport / BUSY,
    unit: "cores",
  },
];

/** A cost of an event with its deliveries. */
export function storeCost({ endpoints }: Pick<EventPlan, "endpoints">, costs: Costs, name: keyof StoreCosts) {
  return costs.event[name] + endpoints * costs.delivery[name];
}

function shards({ events, endpoints }: EventPlan, { deliveriesPerSecond }: Costs): number {
  return Math.ceil(events * endpoints / (deliveriesPerSecond * BUSY));
}

/** The rows of events. */
export const EVENT_FORMULAS: readonly Formula<EventPlan>[] = [
  {
    what: "Deliveries/s",
    text: "events/s × endpoints of an event",
    of: ({ events, endpoints }) => events * endpoints,
    unit: "number",
  },
  {
    what: "Databases (shards)",
    text: `deliveries/s / (deliveries/s of one database × ${BUSY})`,
    of: shards,
    unit: "number",
  },
  {
    what: "Rows/s",
    text: "events/s × (1 + 2 × endpoints): an event, and a delivery and an attempt for each endpoint",
    of: ({ events, endpoints }) => events * (1 + 2 * endpoints),
    unit: "number",
  },
  {
    what: "Dead rows/s",
    text: "rows/s that retention removes + events/s × endpoints × updates of a delivery",
    of: (plan, costs) => plan.events * (1 + 2 * plan.endpoints + storeCost(plan, costs, "deadRows")),
    unit: "number",
  },
  {
    what: "Size of all databases",
    text: "events/s × retention × (bytes of an event + endpoints × bytes of a delivery)",
    of: (plan, costs) => plan.events * plan.retentionDays * DAY * storeCost(plan, costs, "bytes"),
    unit: "bytes",
  },
  {
    what: "WAL/s of all databases",
    text: "events/s × (WAL of an event and its removal + endpoints × WAL of a delivery and its removal)",
    of: (plan, costs) => plan.events * (storeCost(plan, costs, "wal") + storeCost(plan, costs, "removalWal")),
    unit: "bytes/s",
  },
  {
    what: "Time until a database freezes rows",
    text: "`autovacuum_freeze_max_age` × shards / (events/s × (transactions of an event + endpoints × " +
      "transactions of a delivery))",
    of: (plan, costs) =>
      FREEZE_AGE * shards(plan, costs) / (plan.events * storeCost(plan, costs, "transactions")),
    unit: "time",
  },
  {
    what: "Connections of a database",
    text: "instances of a shard × `WEBHOOK_STORE_POOL_SIZE`",
    of: ({ instances, pool }) => instances * pool,
    unit: "number",
  },
  {
    what: "Time until the backlog of a lost endpoint is full",
    text: "`WEBHOOK_MAX_BACKLOG` / events/s to the endpoint",
    of: ({ backlog, events }) => backlog / events,
    unit: "time",
  },
];
