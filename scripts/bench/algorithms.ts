import { median } from "../../tests/harness/percentile.ts";
import type { LoadResult } from "../../src/load/load_record.ts";
import { LIMIT } from "../../tests/harness/bench_rules.ts";
import { type RedisServer, startRedis } from "../../tests/harness/redis_server.ts";
import { runScript } from "./measuring_script.ts";
import type { LoadsSetup } from "./bench_loads.ts";
import { portOf, startBenchWeir } from "./target.ts";

/** The limits that are compared; no run reaches them. The first one is what the others are measured against. */
const LIMITS = {
  fixed_window: `rate_limit: { unit: minute, requests_per_unit: ${LIMIT} }`,
  sliding_window: `rate_limit: { unit: minute, requests_per_unit: ${LIMIT}, algorithm: sliding_window }`,
  token_bucket:
    `rate_limit: { unit: minute, requests_per_unit: ${LIMIT}, algorithm: token_bucket, burst: 1000000000 }`,
  concurrency: `rate_limit: { algorithm: concurrency, max_in_flight: ${LIMIT}, lease: 60s }`,
  "two fixed windows":
    `rate_limits: [{ unit: minute, requests_per_unit: ${LIMIT} }, { unit: hour, requests_per_unit: ${LIMIT} }]`,
} as const;
type AlgorithmName = keyof typeof LIMITS;
const ALGORITHMS = Object.keys(LIMITS) as readonly AlgorithmName[];
const CACHES = ["memory", "redis"] as const;
/** Turns of one round, so short that all algorithms meet the same machine. */
const TURNS = 4;
const LOAD = { connections: 8, inFlight: 32, keys: 10_000, batch: 1, load: "keys", seconds: 0.25 } as const;

/** Speed of one algorithm in one cache; medians of the rounds. */
export interface AlgorithmSpeed {
  readonly cache: typeof CACHES[number];
  readonly algorithm: AlgorithmName;
  readonly callsPerSecond: number;
  /** As a multiple of those of the fixed window in the neighbouring turns. */
  readonly toFixed: number;
  /** CPU of redis-server for a call, in microseconds; 0 for memory. */
  readonly redisCpuUs: number;
}

interface Server {
  readonly algorithm: AlgorithmName;
  readonly port: number;
  readonly redis: RedisServer | undefined;
}

/** Measures each algorithm in memory and in its own redis-server, in turns of one run. */
export async function measureAlgorithms(setup: LoadsSetup): Promise<AlgorithmSpeed[]> {
  const speeds: AlgorithmSpeed[] = [];
  for (const cache of CACHES) {
    const rounds: AlgorithmSpeed[][] = [];
    for (let number = 1; number <= setup.options.rounds; number++) {
      const round = await measureRound(cache, setup);
      rounds.push(round);
      setup.say(`algorithms ${number}: ${JSON.stringify(round)}`);
    }
    for (const [index, algorithm] of ALGORITHMS.entries()) {
      const middle = (name: "callsPerSecond" | "toFixed" | "redisCpuUs") =>
        median(rounds.map((round) => round[index]?.[name] ?? NaN));
      const [callsPerSecond, toFixed, redisCpuUs] = [
        middle("callsPerSecond"),
        middle("toFixed"),
        middle("redisCpuUs"),
      ];
      speeds.push({ cache, algorithm, callsPerSecond, toFixed, redisCpuUs });
    }
  }
  return speeds;
}

async function measureRound(
  cache: AlgorithmSpeed["cache"],
  { options, signal }: LoadsSetup,
): Promise<AlgorithmSpeed[]> {
  await using owned = new AsyncDisposableStack();
  const servers = await Promise.all(ALGORITHMS.map((algorithm) => startServer(cache, algorithm, owned)));
  const ports = servers.map(({ port }) => port);
  const turns = Math.max(1, Math.round(options.seconds * TURNS));
  const run = (count: number) =>
    runScript<LoadResult[][]>("turns.ts", { ...LOAD, ports, turns: count }, signal);
  await run(2);
  const before = await Promise.all(servers.map(cpuOfRedis));
  const results = await run(turns);
  const after = await Promise.all(servers.map(cpuOfRedis));
  const [fixed = []] = results;
  return servers.map(({ algorithm }, index) => {
    const own = results[index] ?? [];
    const wrong = own.flatMap(({ errors }) => Object.keys(errors));
    if (wrong.length > 0) throw new Error(`Cannot measure ${algorithm} in ${cache}: ${wrong[0]}`);
    const calls = own.reduce((sum, result) => sum + result.calls, 0);
    return {
      cache,
      algorithm,
      callsPerSecond: median(own.map((result) => result.callsPerSecond)),
      toFixed: median(
        own.map((result, turn) => result.callsPerSecond / (fixed[turn]?.callsPerSecond ?? NaN)),
      ),
      redisCpuUs: ((after[index] ?? 0) - (before[index] ?? 0)) / calls * 1_000_000,
    };
  });
}

async function startServer(
  cache: AlgorithmSpeed["cache"],
  algorithm: AlgorithmName,
  owned: AsyncDisposableStack,
): Promise<Server> {
  const redis = cache === "redis" ? owned.use(await startRedis({ isSilent: true })) : undefined;
  const settings = redis === undefined
    ? { BACKEND_TYPE: "memory" }
    : { BACKEND_TYPE: "kv", KV_URL: redis.url };
  const weir = owned.use(await startBenchWeir(settings, { rules: { "bench.yaml": rulesOf(algorithm) } }));
  await weir.listening(["gRPC"]);
  return { algorithm, port: portOf(weir.grpcAddress), redis };
}

function rulesOf(algorithm: AlgorithmName): string {
  return `domain: bench
descriptors:
  - { key: load, value: keys, descriptors: [{ key: key, ${LIMITS[algorithm]} }] }
`;
}

/** CPU seconds of redis-server since it started; 0 for memory. */
async function cpuOfRedis({ redis }: Server): Promise<number> {
  const text = redis === undefined ? "" : String(await redis.command("INFO", "cpu"));
  const seconds = (name: string) => Number(new RegExp(`^${name}:([0-9.]+)`, "m").exec(text)?.[1] ?? 0);
  return seconds("used_cpu_user") + seconds("used_cpu_sys");
}
