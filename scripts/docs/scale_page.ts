import { wholeNumber } from "../../tests/harness/markdown_table.ts";
import type { BenchResults } from "../bench/measurements.ts";
import type { ScaleResults } from "../bench/scale.ts";
import { table, wrapped } from "./generated_page.ts";
import { cacheChecks, type Check, storeChecks } from "./scale_checks.ts";
import {
  BUSY,
  type Costs,
  costsOf,
  DECISION_FORMULAS,
  type DecisionPlan,
  EVENT_FORMULAS,
  type EventPlan,
  type Formula,
  nodes,
  type StoreCosts,
  threads,
} from "./scale_formulas.ts";
import * as texts from "./scale_texts.ts";

const DECISIONS: Omit<DecisionPlan, "calls" | "keys" | "envoys"> = {
  windowSeconds: 60,
  jitterSeconds: 300,
  pool: 10,
  perBatch: 4,
  hotShare: 0.1,
  buckets: 1_000,
};
/** The plans of the tables. */
const DECISION_PLANS: readonly DecisionPlan[] = [
  { ...DECISIONS, calls: 10_000, keys: 10_000, envoys: 5 },
  { ...DECISIONS, calls: 100_000, keys: 100_000, envoys: 50 },
  { ...DECISIONS, calls: 1_000_000, keys: 1_000_000, envoys: 500 },
];
const BATCHES = [1, 4, 16, 64];
const EVENTS = { endpoints: 1, instances: 3, pool: 10, backlog: 1_000_000 } as const;
const EVENT_PLANS: readonly EventPlan[] = [
  { ...EVENTS, events: 100, retentionDays: 30 },
  { ...EVENTS, events: 1_000, retentionDays: 7 },
  { ...EVENTS, events: 10_000, retentionDays: 1 },
];

/** docs/scale.md. */
export function scalePage(bench: BenchResults, scale: ScaleResults): string {
  const costs = costsOf(bench, scale);
  const { machine } = scale;
  return [
    texts.SCALE_HEAD,
    growthTable(bench, scale),
    texts.COSTS_TEXT,
    costTable(costs, scale),
    storeTable(costs),
    texts.DECISIONS_TEXT,
    wrapped(
      `One process reached ${
        measuredCalls(bench)
      } calls/s with redis-server, on two cores that it shared with ` +
        `the load generator. The table plans for ${
          percent(BUSY)
        } of each core, and numbers above those of one ` +
        "process are computed.",
    ),
    decisionTable(costs),
    "The large installation with other batches:",
    batchTable(costs),
    texts.DECISION_ADVICE,
    texts.EVENTS_TEXT,
    eventTable(costs),
    texts.EVENT_ADVICE,
    texts.CHECKS_TEXT,
    checkTable("Run", [...cacheChecks(costs, scale.cache.check), ...storeChecks(costs, scale.store.check)]),
    texts.SCALE_METHOD,
    wrapped(`The costs are from ${machine.cpu} with ${machine.cores} cores, Linux ${machine.kernel}.`),
  ].join("\n\n");
}

function measuredCalls({ summaries }: BenchResults): string {
  const summary = summaries.find(({ scenario, target }) => scenario === "8x32" && target === "redis");
  return wholeNumber(summary?.median.callsPerSecond ?? NaN);
}

function growthTable({ decisions, reload }: BenchResults, { process, cache }: ScaleResults): string {
  const rules = decisions?.find(({ name }) => name === "rules")?.decision;
  const { groups } = cache;
  const times = rules === undefined || reload === undefined
    ? ""
    : `; a decision takes ${rules.fewNs.toFixed(0)} ns with 10 and ${
      rules.manyNs.toFixed(0)
    } ns with 100,000`;
  const rows = [
    ["Calls", "CPU of Weir and redis; one increment for each limit of a call"],
    ["Keys", `Counters: ${bytes(groups.counterBytes / groups.counters)} of redis each; EXPIRE commands`],
    ["Rules", `Memory of each process: ${bytes(process.bytesPerRule)} each, with its load${times}`],
    ["Instances and threads", "Connections of each node, EXPIRE commands, batches"],
    ["Nodes", "Connections of each thread, batches"],
    [
      "Client connections",
      `Memory of the process: ${bytes(process.bytesPerConnection)} each; file descriptors`,
    ],
    ["Events", "Transactions, rows, WAL and size of PostgreSQL"],
    ["Endpoints of an event", "Deliveries and attempts: rows, updates, WAL, size and HTTP requests"],
  ];
  return table(["With the number of", "These grow"], rows);
}

function costTable(costs: Costs, { cache: { groups, alone } }: ScaleResults): string {
  const perBatch = [groups, alone].map((run) => (run.increments / run.batches).toFixed(1));
  return table(["Cost", "Value"], [
    ["Call with a counter in memory, calls one by one", micros(costs.memoryCall)],
    ["Call with a counter in redis", `${micros(costs.call)}, and ${micros(costs.callBatch)} for each batch`],
    ["Command in redis", `${micros(costs.command)}, and ${micros(costs.commandBatch)} for each batch`],
    [
      "Commands in a batch",
      `${perBatch[1]} with one call in flight on each of 8 connections, ${perBatch[0]} with 32`,
    ],
    ["Increments of a call with one key, 32 calls in flight", costs.hotIncrements.toFixed(4)],
    ["Counter in redis, key of about 40 characters", bytes(costs.counterBytes)],
    ["Report of a bucket of [quotas](quotas.md)", micros(costs.bucketReport)],
    ["Deliveries of one database", `${wholeNumber(costs.deliveriesPerSecond)}/s`],
  ]);
}

function storeTable({ event, delivery }: Costs): string {
  const row = (what: string, name: keyof StoreCosts, show: (value: number) => string) => {
    return [what, show(event[name]), show(delivery[name])];
  };
  return table(["Cost", "Event", "Delivery with one attempt"], [
    row("Size in PostgreSQL", "bytes", bytes),
    row("WAL", "wal", bytes),
    row("WAL of the removal", "removalWal", bytes),
    row("Updates of rows", "deadRows", (value) => value.toFixed(1)),
    row("Transactions", "transactions", (value) => value.toFixed(2)),
  ]);
}

function decisionTable(costs: Costs): string {
  const inputs = [
    ["Calls/s", "given", ...DECISION_PLANS.map(({ calls }) => wholeNumber(calls))],
    ["Keys in a window of 60 s", "given", ...DECISION_PLANS.map(({ keys }) => wholeNumber(keys))],
    ["Jitter of expiries", "given", ...DECISION_PLANS.map(({ jitterSeconds }) => `${jitterSeconds} s`)],
    ["Commands in a batch", "given", ...DECISION_PLANS.map(({ perBatch }) => `${perBatch}`)],
    ["Share of the hot key", "given", ...DECISION_PLANS.map(({ hotShare }) => percent(hotShare))],
    ["Pool, `KV_POOL_SIZE`", "given", ...DECISION_PLANS.map(({ pool }) => `${pool}`)],
    [
      "Envoys with 1,000 buckets each, for quotas",
      "given",
      ...DECISION_PLANS.map(({ envoys }) => `${envoys}`),
    ],
  ];
  return planTable(inputs, DECISION_FORMULAS, DECISION_PLANS, costs);
}

function eventTable(costs: Costs): string {
  const inputs = [
    ["Events/s", "given", ...EVENT_PLANS.map(({ events }) => wholeNumber(events))],
    ["Endpoints of an event", "given", ...EVENT_PLANS.map(({ endpoints }) => `${endpoints}`)],
    ["Retention", "given", ...EVENT_PLANS.map(({ retentionDays }) => `${retentionDays} d`)],
    ["Instances of a shard", "given", ...EVENT_PLANS.map(({ instances }) => `${instances}`)],
    ["Pool, `WEBHOOK_STORE_POOL_SIZE`", "given", ...EVENT_PLANS.map(({ pool }) => `${pool}`)],
    [
      "Bound of a backlog, `WEBHOOK_MAX_BACKLOG`",
      "given",
      ...EVENT_PLANS.map(({ backlog }) => wholeNumber(backlog)),
    ],
  ];
  return planTable(inputs, EVENT_FORMULAS, EVENT_PLANS, costs);
}

function planTable<Plan>(
  inputs: readonly (readonly string[])[],
  formulas: readonly Formula<Plan>[],
  plans: readonly Plan[],
  costs: Costs,
): string {
  const rows = formulas.map(({ what, text, of, unit }) => [
    ...[what, text],
    ...plans.map((plan) => UNITS[unit](of(plan, costs))),
  ]);
  return table(["", "Formula", "Small", "Medium", "Large"], [...inputs, ...rows]);
}

function batchTable(costs: Costs): string {
  const [plan] = DECISION_PLANS.slice(-1);
  const rows = plan === undefined ? [] : BATCHES.map((perBatch) => {
    const batched = { ...plan, perBatch };
    return [`${perBatch}`, wholeNumber(threads(batched, costs)), wholeNumber(nodes(batched, costs))];
  });
  return table(["Commands in a batch", "Threads of Weir", "Nodes of redis"], rows);
}

function checkTable(head: string, checks: readonly Check[]): string {
  const rows = checks.map(({ run, what, unit, predicted, measured }) => {
    const difference = (measured / predicted - 1) * 100;
    const sign = difference > 0 ? "+" : "";
    return [run, what, UNITS[unit](predicted), UNITS[unit](measured), `${sign}${difference.toFixed(1)} %`];
  });
  return table([head, "Resource", "Predicted", "Measured", "Difference"], rows);
}

const UNITS: Readonly<Record<Formula<never>["unit"] | "seconds", (value: number) => string>> = {
  number: (value) => wholeNumber(value),
  bytes,
  "bytes/s": (value) => `${bytes(value)}/s`,
  cores: (value) => value.toFixed(2),
  time: duration,
  seconds: (value) => `${value.toFixed(2)} s`,
};

/** Seconds in the largest unit of which there are two. */
function duration(seconds: number): string {
  const units = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]] as const;
  const [length, name] = units.find(([length]) => seconds >= 2 * length) ?? [1, "s"];
  return `${wholeNumber(seconds / length)} ${name}`;
}

/** Bytes in units of 1,000. */
function bytes(value: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const power = value < 1_000 ? 0 : Math.min(4, Math.floor(Math.log10(value) / 3));
  const scaled = value / 1_000 ** power;
  return `${power === 0 || scaled >= 100 ? scaled.toFixed(0) : scaled.toFixed(1)} ${units[power]}`;
}

function micros(seconds: number): string {
  return `${(seconds * 1e6).toFixed(1)} µs`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
