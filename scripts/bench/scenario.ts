import type { BenchOptions, PartName } from "./options.ts";
import type { PeerName } from "./peers.ts";
import type { LoadName } from "../../tests/harness/bench_rules.ts";

/** Servers under measurement; the README of this folder describes them. */
const TARGETS = [
  "echo",
  "memory",
  "redis",
  "bare",
  "echo-tls",
  "memory-tls",
  "cluster",
  "mc",
  "two-caches",
  "memory-plain",
  "memory-push",
  "memory-pull",
  "memory-tracing",
  "redis-workers",
  "features",
  "memory-store",
  "memory-events",
] as const;
/** The name of a target. */
export type TargetName = typeof TARGETS[number] | PeerName;

/** One load, and the targets that get it in turn. */
export interface Scenario {
  readonly name: string;
  readonly part: PartName;
  /** The first one is what the others are compared with. */
  readonly targets: readonly TargetName[];
  readonly load: LoadName;
  readonly connections: number;
  /** Calls in flight on each connection. */
  readonly inFlight: number;
  /** Different keys, taken in turn. */
  readonly keys: number;
  /** Keys a call, each with a descriptor for every rule of the load. */
  readonly batch: number;
  /** Evenly paced calls a second; absent for as many as are answered. */
  readonly perSecond?: number;
  /** Made by h2load, which sends one body only and knows nothing of gRPC; absent for our own generator. */
  readonly isH2load?: true;
  /**
   * Its targets are compared to the last few percent: several sets of processes get many short turns from one
   * generator, and the ratio is the median of those of neighbouring turns.
   */
  readonly isPaired?: true;
  /** Each key is called once; there are more keys than calls. */
  readonly areKeysNew?: true;
}

const SERVERS = ["echo", "memory", "redis"] as const;
const MANY_KEYS = { load: "keys", connections: 8, inFlight: 32, keys: 10_000, batch: 1 } as const;
const ONE_KEY = { ...MANY_KEYS, load: "one", keys: 1 } as const;

/** Every load, in the order in which they are run. */
export const SCENARIOS: readonly Scenario[] = [
  { name: "8x32", part: "keys", targets: SERVERS, ...MANY_KEYS },
  { name: "8x32 hot key", part: "hot", targets: SERVERS, ...ONE_KEY },
  { name: "8x32 h2load", part: "h2load", targets: SERVERS, ...ONE_KEY, isH2load: true },
  { name: "64x4", part: "shapes", targets: SERVERS, ...MANY_KEYS, connections: 64, inFlight: 4 },
  { name: "256x1", part: "shapes", targets: SERVERS, ...MANY_KEYS, connections: 256, inFlight: 1 },
  { name: "512x1", part: "shapes", targets: SERVERS, ...MANY_KEYS, connections: 512, inFlight: 1 },
  { name: "1000x1", part: "shapes", targets: SERVERS, ...MANY_KEYS, connections: 1_000, inFlight: 1 },
  { name: "8x1", part: "shapes", targets: SERVERS, ...MANY_KEYS, connections: 8, inFlight: 1 },
  {
    name: "8x32 seen once",
    part: "once",
    targets: ["memory-plain", "memory"],
    ...MANY_KEYS,
    keys: 2_000_000,
    isPaired: true,
    areKeysNew: true,
  },
  {
    name: "256x1 workers",
    part: "workers",
    targets: ["redis", "redis-workers"],
    ...MANY_KEYS,
    connections: 256,
    inFlight: 1,
    // Few enough for both workers to know them after the warm-up.
    keys: 1_000,
  },
  { name: "batch 1", part: "batches", targets: ["memory", "redis"], ...MANY_KEYS },
  { name: "batch 4", part: "batches", targets: ["memory", "redis"], ...MANY_KEYS, batch: 4 },
  { name: "batch 16", part: "batches", targets: ["memory", "redis"], ...MANY_KEYS, batch: 16 },
  {
    name: "5,000/s",
    part: "paced",
    targets: ["echo", "redis", "bare"],
    ...MANY_KEYS,
    inFlight: 256,
    perSecond: 5_000,
  },
  { name: "8x32 caches", part: "caches", targets: ["echo", "cluster", "mc"], ...MANY_KEYS },
  { name: "8x32 two caches", part: "caches", targets: ["echo", "two-caches"], ...MANY_KEYS, load: "both" },
  {
    name: "8x32 statistics",
    part: "stats",
    targets: ["memory", "memory-push", "memory-pull", "memory-tracing"],
    ...MANY_KEYS,
    isPaired: true,
  },
  {
    name: "8x32 events",
    part: "events",
    targets: ["memory-store", "memory-events"],
    ...MANY_KEYS,
    load: "events",
    isPaired: true,
  },
  { name: "8x32 every feature", part: "features", targets: ["echo", "features"], ...MANY_KEYS },
  { name: "8x32 TLS", part: "tls", targets: ["echo-tls", "memory-tls"], ...MANY_KEYS },
];

/** The loads of a run; those of a comparison with peers are on the peers too. */
export function scenariosOf({ parts, peers }: Pick<BenchOptions, "parts" | "peers">): Scenario[] {
  const scenarios = SCENARIOS.filter(({ part }) => parts.includes(part));
  if (peers === undefined) return scenarios;
  const names = peers.map(({ name }) => name);
  return scenarios.map((scenario) => ({ ...scenario, targets: [...scenario.targets, ...names] }));
}
