import { assertEquals } from "@std/assert";
import { freePort } from "../harness/free_port.ts";
import { decide, GrpcClient } from "../harness/grpc_client.ts";
import { startPrometheus } from "../harness/prometheus.ts";
import { ServeFixture } from "../harness/serve_fixture.ts";
import { needs } from "../harness/tools.ts";

const RULES = {
  "shop.yaml": `domain: shop
descriptors:
  - { key: account, rate_limit: { unit: day, requests_per_unit: 2 } }
  - key: host
    value_to_metric: true
    descriptors: [{ key: path, rate_limit: { unit: day, requests_per_unit: 9 } }]
`,
};

Deno.test({
  ...needs(["prometheus"], "Prometheus scrapes a running Weir and knows what it has decided"),
  async fn() {
    const address = `127.0.0.1:${freePort()}`;
    const env = { DISABLE_STATS: "false", USE_PULL_METRICS: "true", PULL_METRICS_ADDR: address };
    await using weir = await ServeFixture.start({ env, rules: RULES });
    using client = new GrpcClient(weir.running.addresses.grpc);
    for (let call = 0; call < 5; call++) await decide(client, "shop", "account=a");
    await decide(client, "shop", "host=a.example", "path=x");
    await using prometheus = await startPrometheus({ target: address });
    const queries = [
      'ratelimit_service_rate_limit_over_limit{domain="shop",key1="account",key2=""}',
      'ratelimit_service_rate_limit_within_limit{domain="shop",key1="account",key2=""}',
      'ratelimit_service_total_requests{grpc_method="ShouldRateLimit"}',
      'ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"}',
      "ratelimit_service_config_load_success",
    ];
    const seen = await prometheus.answers(queries);
    assertEquals(seen.map((samples) => samples.map(({ value }) => value)), [["3"], ["2"], ["6"], ["6"], [
      "1",
    ]]);
  },
});
