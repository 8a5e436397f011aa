import { openKvCluster } from "../harness/open_kv.ts";
import { startRedisCluster } from "../harness/redis_cluster.ts";
import { counterCacheContract } from "./counter_cache_contract.ts";

counterCacheContract("kv cluster of three", async () => {
  const cluster = await startRedisCluster();
  const cache = openKvCluster(cluster.nodes.map(({ port }) => port));
  await cache.ready;
  return { cache, end: () => cluster[Symbol.asyncDispose]() };
}, { tools: ["redis-server"] });

counterCacheContract("kv cluster of three, asked one node after the other from one seed", async () => {
  const cluster = await startRedisCluster();
  const cache = openKvCluster(cluster.nodes.slice(0, 1).map(({ port }) => port), { parallelism: 1 });
  await cache.ready;
  return { cache, end: () => cluster[Symbol.asyncDispose]() };
}, { tools: ["redis-server"], nodesInTurn: true });
