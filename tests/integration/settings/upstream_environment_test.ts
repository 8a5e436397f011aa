import { assertEquals } from "#assert";
import { join } from "node:path";
import { ChildProcess } from "../../harness/child_process.ts";
import { startMemcached } from "../../harness/memcached.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { needs } from "../../harness/tools.ts";
import { runtimeEnvironment, weirCommand } from "../../harness/weir_command.ts";
import { WeirProcess } from "../../harness/weir_process.ts";

const RULES = "domain: rl\ndescriptors:\n  - key: k\n    rate_limit: { unit: day, requests_per_unit: 2 }\n";
const CALL = JSON.stringify({ domain: "rl", descriptors: [{ entries: [{ key: "k", value: "v" }] }] });
const FREE_PORTS = { HOST: "127.0.0.1", GRPC_HOST: "127.0.0.1", DEBUG_HOST: "127.0.0.1" };

/** Starts Weir with the variables of envoyproxy/ratelimit as they are, and decides three times. */
async function decide(
  env: Readonly<Record<string, string>>,
): Promise<{ statuses: number[]; log: readonly string[] }> {
  const folder = await Deno.makeTempDir({ prefix: "weir_" });
  const root = join(folder, "data");
  const rulesFolder = join(root, "ratelimit", "config");
  await Deno.mkdir(rulesFolder, { recursive: true });
  await Deno.writeTextFile(join(rulesFolder, "config.yaml"), RULES);
  const line = weirCommand(["serve"]);
  const child = new ChildProcess(line.command, {
    args: line.args,
    cwd: folder,
    env: {
      ...runtimeEnvironment(line),
      ...FREE_PORTS,
      PORT: "0",
      GRPC_PORT: "0",
      DEBUG_PORT: "0",
      USE_STATSD: "false",
      LOG_LEVEL: "debug",
      RUNTIME_ROOT: root,
      RUNTIME_SUBDIRECTORY: "ratelimit",
      ...env,
    },
  });
  await using weir = new WeirProcess(child, { path: folder, rulesFolder });
  await weir.listening(["gRPC", "HTTP", "debug"]);
  const statuses: number[] = [];
  for (let call = 0; call < 3; call++) {
    const response = await fetch(`http://${weir.httpAddress}/json`, { method: "POST", body: CALL });
    await response.body?.cancel();
    statuses.push(response.status);
  }
  return { statuses, log: weir.stderrLines };
}

Deno.test({
  ...needs(
    ["redis-server", "memcached"],
    "the environment of envoyproxy/ratelimit: counts in redis, in memcached",
  ),
  async fn() {
    await using redis = await startRedis();
    await using memcached = await startMemcached();
    const { statuses, log } = await decide({
      BACKEND_TYPE: "redis",
      REDIS_SOCKET_TYPE: "tcp",
      REDIS_URL: redis.url,
      // Of another back end, and links of Kubernetes.
      MEMCACHE_HOST_PORT: "memcached:11211",
      STATSD_PORT: "udp://10.0.0.1:8125",
      REDIS_PORT: "tcp://10.0.0.1:6379",
    });
    assertEquals(statuses, [200, 200, 429], log.join("\n"));
    const keys = String(await redis.command("KEYS", "rl_k_v_*")).split(",");
    assertEquals([keys.length, String(await redis.command("GET", keys[0] ?? ""))], [1, "3"]);
    const told = /level=info msg="BACKEND_TYPE \\"redis\\" is read as kv"$/;
    assertEquals(log.filter((line) => told.test(line)).length, 1);
    const other = await decide({ BACKEND_TYPE: "memcache", MEMCACHE_HOST_PORT: memcached.url });
    assertEquals(other.statuses, [200, 200, 429], other.log.join("\n"));
  },
});
