import { assert, assertEquals } from "@std/assert";
import { freePort } from "../support/free_port.ts";
import { decide, GrpcClient } from "../support/grpc_client.ts";
import { startRedis } from "../support/redis_server.ts";
import { needs } from "../support/tools.ts";
import { startWeir } from "../support/weir_process.ts";

const FOLDER = new URL("../../config/deploy/", import.meta.url);
const FILES = ["grafana-dashboard.json", "prometheus-alerts.yaml"];
const RULES = {
  "shop.yaml": "domain: shop\n" +
    "descriptors: [{ key: account, rate_limit: { unit: day, requests_per_unit: 1 } }]\n",
};

Deno.test({
  ...needs(
    ["redis-server"],
    "files for operators: every metric in them is there on a Weir that has done some work",
  ),
  async fn() {
    await using redis = await startRedis();
    const address = `127.0.0.1:${freePort()}`;
    const env = {
      BACKEND_TYPE: "kv",
      KV_URL: redis.url,
      DISABLE_STATS: "false",
      USE_PULL_METRICS: "true",
      PULL_METRICS_ADDR: address,
    };
    await using weir = await startWeir({ env, rules: RULES });
    using client = new GrpcClient(weir.grpcAddress);
    for (let call = 0; call < 3; call++) await decide(client, "shop", "account=a");
    const scraped = await (await fetch(`http://${address}/metrics`)).text();
    const there = new Set(["up", ...scraped.split("\n").map((line) => /^\w+/.exec(line)?.[0] ?? "")]);
    for (const file of FILES) {
      const named = metricsIn(await Deno.readTextFile(new URL(file, FOLDER)));
      assert(named.length > 10, `${file} names ${named.length} metrics`);
      assertEquals(named.filter((name) => !there.has(name)), [], file);
    }
  },
});

/** Whatever is named like a metric of ours, also within queries. */
function metricsIn(text: string): string[] {
  const names = text.matchAll(/\b(?:ratelimit|process|nodejs)_[a-z_]+\b|\bup(?=\{)/g);
  return [...new Set([...names].map(([name]) => name))];
}
