import type { LoadResult } from "../../src/load/load_record.ts";
import type { LoadName } from "../../tests/harness/bench_rules.ts";
import { clockTicks, cpuSeconds } from "../../tests/harness/process_metrics.ts";
import { startRedisCluster } from "../../tests/harness/redis_cluster.ts";
import type { RedisServer } from "../../tests/harness/redis_server.ts";
import { until } from "../../tests/harness/until.ts";
import type { WeirProcess } from "../../tests/harness/weir_process.ts";
import { runScript } from "./measuring_script.ts";
import { portOf, startBenchWeir } from "./target.ts";

/** Time enough; the number of calls ends a load. */
const SECONDS = 120;

/** The amount of load and of servers; each instance gets the same load, at the same time. */
interface CacheLoad {
  readonly instances: number;
  /** Nodes of the redis cluster. */
  readonly nodes: number;
  readonly load: LoadName;
  readonly keys: number;
  /** Of the load generator of each instance. */
  readonly connections: number;
  readonly inFlight: number;
  /** Calls to each instance: in the warm-up, and in the measured part. */
  readonly calls: number;
  /** `KV_POOL_SIZE`. */
  readonly pool: number;
}

/** Counts of a node since its start. */
interface NodeCounts {
  readonly increments: number;
  readonly expires: number;
  /** Reads of sockets; Weir writes a batch of commands with one write. */
  readonly reads: number;
  readonly cpuSeconds: number;
  readonly connections: number;
  readonly counters: number;
  /** Without the buffers of connections. */
  readonly bytes: number;
}

/** One run, after its warm-up; counts are sums over the instances or the nodes. */
export interface CacheRun {
  readonly load: CacheLoad;
  readonly calls: number;
  readonly increments: number;
  readonly batches: number;
  readonly weirCpuSeconds: number;
  readonly redisCpuSeconds: number;
  /** From the start of the nodes, with the warm-up. */
  readonly expires: number;
  readonly counters: number;
  readonly counterBytes: number;
  /** Of all instances to all nodes. */
  readonly connections: number;
}

/** Decides calls with instances of Weir and a redis cluster; throws unless each answer was right and counted once. */
export async function runOnCluster(load: CacheLoad): Promise<CacheRun> {
  await using owned = new AsyncDisposableStack();
  const { nodes } = owned.use(await startRedisCluster({ primaries: load.nodes }));
  const empty = await countsOf(nodes);
  const cluster = nodes.map(({ url }) => url).join(",");
  const settings = { BACKEND_TYPE: "kv", KV_TYPE: "cluster", KV_URL: cluster, KV_POOL_SIZE: `${load.pool}` };
  const instances: WeirProcess[] = [];
  for (let number = 0; number < load.instances; number++) {
    instances.push(owned.use(await startBenchWeir(settings)));
  }
  await Promise.all(instances.map((weir) => weir.listening(["gRPC", "HTTP"])));
  await until("every connection to the cluster", async () => {
    return connectionsSince(empty, await countsOf(nodes)) >= load.instances * load.nodes * load.pool;
  });
  const ticks = await clockTicks();
  const ports = instances.map(({ grpcAddress }) => portOf(grpcAddress));
  const weirCpu = async () => sum(await Promise.all(instances.map(({ pid }) => cpuSeconds(pid, ticks))));
  const warmUp = await callAll(ports, load);
  const [before, cpuBefore] = [await countsOf(nodes), await weirCpu()];
  const calls = await callAll(ports, load);
  const [after, cpuAfter] = [await countsOf(nodes), await weirCpu()];
  const [increments, all] = [after.increments - before.increments, warmUp + calls];
  if (load.load !== "one" && after.increments !== all) {
    throw new Error(`Cannot trust run on a cluster: ${after.increments} increments of ${all} calls`);
  }
  return {
    load,
    calls,
    increments,
    batches: after.reads - before.reads,
    weirCpuSeconds: cpuAfter - cpuBefore,
    redisCpuSeconds: after.cpuSeconds - before.cpuSeconds,
    expires: after.expires - empty.expires,
    counters: after.counters,
    counterBytes: after.bytes - empty.bytes,
    connections: connectionsSince(empty, after),
  };
}

/** The same load on every port; the number of calls. */
async function callAll(ports: readonly number[], load: CacheLoad): Promise<number> {
  const flags = { ...load, seconds: SECONDS, warmUpSeconds: 0 };
  const results = await Promise.all(
    ports.map((port) => runScript<LoadResult>("load.ts", { ...flags, port })),
  );
  for (const result of results) {
    if (result.statuses["OK"] !== result.calls) {
      throw new Error(`Cannot trust run on a cluster: ${JSON.stringify(result)}`);
    }
  }
  return sum(results.map(({ calls }) => calls));
}

async function countsOf(nodes: readonly RedisServer[]): Promise<NodeCounts> {
  const all = await Promise.all(nodes.map(nodeCounts));
  const of = (name: keyof NodeCounts) => sum(all.map((counts) => counts[name]));
  return {
    increments: of("increments"),
    expires: of("expires"),
    reads: of("reads"),
    cpuSeconds: of("cpuSeconds"),
    connections: of("connections"),
    counters: of("counters"),
    bytes: of("bytes"),
  };
}

async function nodeCounts(node: RedisServer): Promise<NodeCounts> {
  const info = String(await node.command("INFO", "everything"));
  const value = (pattern: string) => Number(new RegExp(`^${pattern}`, "m").exec(info)?.[1] ?? 0);
  return {
    increments: value("cmdstat_incrby:calls=(\\d+)"),
    expires: value("cmdstat_expire:calls=(\\d+)"),
    reads: value("total_reads_processed:(\\d+)"),
    cpuSeconds: value("used_cpu_user:([\\d.]+)") + value("used_cpu_sys:([\\d.]+)"),
    connections: value("connected_clients:(\\d+)"),
    counters: value("db0:keys=(\\d+)"),
    bytes: value("used_memory:(\\d+)") - value("mem_clients_normal:(\\d+)"),
  };
}

/** The connection that asks is in both counts. */
function connectionsSince(before: NodeCounts, after: NodeCounts): number {
  return after.connections - before.connections;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
