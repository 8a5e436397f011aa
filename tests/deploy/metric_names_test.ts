import { assert, assertEquals } from "#assert";
import { namedMetrics } from "../../src/base/metrics.ts";
import { METRIC_SECTIONS } from "../../src/serve/metric_groups.ts";
import { makeCertificates } from "../harness/certificates.ts";
import { freePort } from "../harness/free_port.ts";
import { decide, GrpcClient } from "../harness/grpc_client.ts";
import { startRedis } from "../harness/redis_server.ts";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { WebhookFolder } from "../harness/webhook_weir.ts";
import { startWeir } from "../harness/weir_process.ts";

const FOLDER = new URL("../../config/deploy/", import.meta.url);
const FILES = ["helm/files/grafana-dashboard.json", "helm/files/prometheus-alerts.yaml"];
const RULES = {
  "shop.yaml": "domain: shop\n" +
    "descriptors: [{ key: account, rate_limit: { unit: day, requests_per_unit: 1 } }]\n",
};

Deno.test({
  ...needs(
    ["redis-server", "openssl"],
    "files for operators: every metric in them is there on a Weir that has done some work",
  ),
  async fn(test) {
    await using redis = await startRedis();
    await using folder = await WebhookFolder.make();
    await using certificates = await makeCertificates();
    const address = `127.0.0.1:${freePort()}`;
    const env = {
      ...folder.env,
      WEBHOOK_CA_FILE: certificates.authority.certFile,
      BACKEND_TYPE: "kv",
      KV_URL: redis.url,
      DISABLE_STATS: "false",
      USE_PULL_METRICS: "true",
      PULL_METRICS_ADDR: address,
    };
    // A process, as some of the metrics are those of the process.
    await using weir = await startWeir({ env, rules: RULES });
    using client = new GrpcClient(weir.grpcAddress);
    for (let call = 0; call < 3; call++) await decide(client, "shop", "account=a");
    const scrape = async () => await (await fetch(`http://${address}/metrics`)).text();
    const scraped = await until("the webhook service to work", async () => {
      const text = await scrape();
      return /^ratelimit_webhooks_is_dispatcher 1$/m.test(text) && text;
    });
    const there = new Set(["up", ...scraped.split("\n").map((line) => /^\w+/.exec(line)?.[0] ?? "")]);
    for (const file of FILES) {
      const named = metricsIn(await Deno.readTextFile(new URL(file, FOLDER)));
      assert(named.length > 10, `${file} names ${named.length} metrics`);
      assertEquals(named.filter((name) => !there.has(name)), [], file);
    }
    await test.step("every metric of the service is declared, and has its meaning as help", async () => {
      const stats = await (await fetch(`http://${weir.debugAddress}/stats`)).text();
      const names = stats.trim().split("\n").map((line) => line.replace(/(?:\.count|\.sum_ms)?: .*$/, ""));
      assert(names.length > 100, `${names.length} names`);
      assertEquals(names.filter((name) => !DECLARED.some((pattern) => pattern.test(name))), []);
      assertEquals(scraped.split("\n").filter((line) => line.includes("A statistic under its own name")), []);
    });
    await test.step("a webhook service without work commits, on which the alert on its silence rests", async () => {
      const commits = (text: string) =>
        Number(/^ratelimit_webhooks_commit_seconds_count (\d+)$/m.exec(text)?.[1]);
      await until("more commits", async () => commits(await scrape()) > commits(scraped));
    });
  },
});

/** The names of all declared metrics; a part such as `<key>` is any text. */
const DECLARED = METRIC_SECTIONS.flatMap(({ groups }) => groups).flatMap((group) =>
  (["counter", "gauge", "timer"] as const).flatMap((kind) => namedMetrics(group, kind))
).map(({ fullName }) => new RegExp(`^${fullName.replaceAll(".", "\\.").replaceAll(/<\w+>/g, ".+")}$`));

/** Whatever is named like a metric of ours, also within queries. */
function metricsIn(text: string): string[] {
  const names = text.matchAll(/\b(?:ratelimit|process|nodejs)_[a-z_]+\b|\bup(?=\{)/g);
  return [...new Set([...names].map(([name]) => name))];
}
