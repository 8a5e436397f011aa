import { assertEquals, assertMatch, assertRejects, assertStringIncludes } from "#assert";
import { join } from "node:path";
import { encodeRateLimitRequest } from "../../../src/wire/rls.ts";
import { withSecretFiles } from "../../harness/deploy_files.ts";
import { freePort } from "../../harness/free_port.ts";
import { decide, GrpcClient, SHOULD_RATE_LIMIT } from "../../harness/grpc_client.ts";
import { OtlpReceiver } from "../../harness/otlp_receiver.ts";
import { TcpReceiver } from "../../harness/push_receivers.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { eventually } from "../../harness/until.ts";
import { startWeir, type WeirProcess } from "../../harness/weir_process.ts";
import {
  compare,
  type Comparison,
  type Env,
  noon,
  SHOP,
  shopRequest,
  startShop,
  statusOf,
  withFolder,
} from "./settings_bed.ts";

const RULE = "ratelimit.service.rate_limit.shop.open.total_hits";

Deno.test("PUSH_STATS_…, EXTRA_TAGS, DISABLE_STATS: statistics are sent to the receiver until the end, or nowhere", async () => {
  const seen = [];
  for (const DISABLE_STATS of ["true", "false"]) {
    await using receiver = await TcpReceiver.start({ host: "127.0.0.2" });
    const push = {
      PUSH_STATS_HOST: "127.0.0.2",
      PUSH_STATS_PORT: `${receiver.port}`,
      EXTRA_TAGS: "zone:a.b",
    };
    {
      // What was counted goes out at the end of the service, for which there are short limits.
      await using service = await startShop({ ...push, DISABLE_STATS }, noon(8));
      assertEquals(await statusOf(service, "open=a"), 200);
    }
    await receiver.settle();
    seen.push(receiver.lines.filter((line) => line.startsWith(RULE)));
  }
  assertEquals(seen, [[], [`${RULE}.__zone=a_b:1|c`]]);
});

Deno.test("STATS_FLUSH_INTERVAL: when statistics are sent", async () => {
  const clock = noon();
  await using receiver = await TcpReceiver.start();
  const push = { PUSH_STATS_HOST: "127.0.0.1", PUSH_STATS_PORT: `${receiver.port}` };
  await using _service = await startShop(
    { ...push, DISABLE_STATS: "false", STATS_FLUSH_INTERVAL: "77s" },
    clock,
  );
  assertEquals([77_000, 10_000].map((ms) => clock.waits.includes(ms)), [true, false]);
});

const HITS = 'ratelimit_service_rate_limit_total_hits{domain="shop",key1="open"} 1';
/** A mapping file with its own counter name. */
const MAPPING = `mappings:
  - match: ratelimit.service.rate_limit.*.*.total_hits
    name: my_$2_hits
    labels: { where: "\${1}" }
`;

/** Services with metrics at this address, after a call on each port. */
async function comparePulled(
  changed: Env,
  { look, unset, set }: Omit<Comparison<unknown>, "look"> & {
    readonly look: (lines: readonly string[], address: string) => unknown;
  },
): Promise<void> {
  const address = `127.0.0.2:${freePort()}`;
  const env = { DISABLE_STATS: "false", USE_PULL_METRICS: "true", PULL_METRICS_ADDR: address };
  await compare(changed, {
    env,
    async look(service) {
      using client = new GrpcClient(service.grpcAddress);
      await decide(client, "shop", "open=a");
      const path = changed["PULL_METRICS_PATH"] ?? "/metrics";
      return await look((await (await fetch(`http://${address}${path}`)).text()).split("\n"), address);
    },
    unset,
    set,
  });
}

const PULLED: Readonly<Record<string, readonly [Env, Parameters<typeof comparePulled>[1]]>> = {
  "PULL_METRICS_PATH: the metrics under another path": [{ PULL_METRICS_PATH: "/other" }, {
    look: (_, address) =>
      Promise.all(["/metrics", "/other", "/"].map(async (path) => {
        const response = await fetch(`http://${address}${path}`);
        await response.body?.cancel();
        return response.status;
      })),
    unset: [200, 404, 404],
    set: [404, 200, 404],
  }],
  "PULL_METRICS_RESPONSE_TIME_AS_MILLISECONDS: bounds in milliseconds": [
    { PULL_METRICS_RESPONSE_TIME_AS_MILLISECONDS: "true" },
    {
      look(lines) {
        const time =
          /^ratelimit_service_response_time_seconds_bucket\{grpc_method="ShouldRateLimit",le="([^"]*)"/;
        return lines.flatMap((line) => time.exec(line)?.[1] ?? []).slice(0, 2);
      },
      unset: ["0.00005", "0.0001"],
      set: ["0.05", "0.1"],
    },
  ],
  "PULL_METRICS_NATIVE: labels from the rules, and their limits": [{ PULL_METRICS_NATIVE: "true" }, {
    look: (lines) =>
      [
        HITS,
        'ratelimit_rule_hits_total{domain="shop",rule="open",stat="total_hits"} 1',
        'ratelimit_rule_limit{domain="shop",rule="open",unit="day"} 10',
      ].map((line) => lines.includes(line)),
    unset: [true, false, false],
    set: [false, true, true],
  }],
};

for (const [name, [changed, comparison]] of Object.entries(PULLED)) {
  Deno.test(`setting ${name}`, () => comparePulled(changed, comparison));
}

Deno.test("PULL_METRICS_MAPPER_YAML: metrics as the file names them, or each mistake in it", () =>
  withFolder({ "good.yaml": MAPPING, "bad.yaml": MAPPING.replace("name:", "nam:") }, async (folder) => {
    await comparePulled({ PULL_METRICS_MAPPER_YAML: join(folder, "good.yaml") }, {
      look: (lines) => [HITS, 'my_open_hits{where="shop"} 1'].map((line) => lines.includes(line)),
      unset: [true, false],
      set: [false, true],
    });
    const bad = { PULL_METRICS_MAPPER_YAML: join(folder, "bad.yaml"), PULL_METRICS_ADDR: "127.0.0.1:0" };
    const { message } = await assertRejects(() =>
      startShop({ DISABLE_STATS: "false", USE_PULL_METRICS: "true", ...bad })
    );
    assertStringIncludes(message, "bad.yaml:3:5: mappings[0]: unknown key 'nam'; did you mean 'name'?");
  }));

const METHOD = SHOULD_RATE_LIMIT.slice(1);
const EXECUTION = "ShouldRateLimit Execution";
const TRIP = "KV Pipeline Execution";
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Options of `traced`. */
interface Traced {
  /** Number of spans; they come in one export, on a busy machine too. */
  readonly spans: number;
  /** The collector that gets them; the returned one when absent. */
  readonly collector?: OtlpReceiver;
  readonly work: (weir: WeirProcess) => Promise<unknown>;
}

/** Runs a process with tracing until the spans are exported; a process, because the exporters read their environment. */
async function traced(env: Env, { spans, collector, work }: Traced): Promise<OtlpReceiver> {
  const protocol = env["TRACING_EXPORTER_PROTOCOL"] === "grpc" ? "grpc" : "http";
  await using receiver = await OtlpReceiver.start({ protocol });
  const tracing = {
    TRACING_ENABLED: "true",
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: `${spans}`,
    OTEL_BSP_SCHEDULE_DELAY: "60000",
  };
  await using weir = await startWeir({ env: { ...tracing, ...env }, rules: SHOP });
  await work(weir);
  await eventually(spans, () => (collector ?? receiver).spans.length);
  assertEquals(await weir.stop(), 0);
  return receiver;
}

async function askGrpc(weir: WeirProcess, headers: Env = {}): Promise<void> {
  using client = new GrpcClient(weir.grpcAddress);
  const descriptors = [{ entries: [{ key: "open", value: "a" }] }];
  const request = encodeRateLimitRequest({ domain: "shop", hitsAddend: 0, descriptors });
  assertEquals((await client.unary(SHOULD_RATE_LIMIT, request, headers)).code, 0);
}

async function askHttp(weir: WeirProcess): Promise<void> {
  const body = JSON.stringify(shopRequest("open=a"));
  const response = await fetch(`http://${weir.httpAddress}/json`, { method: "POST", body });
  await response.body?.cancel();
  assertEquals(response.status, 200);
}

Deno.test({
  ...needs(["redis-server"], "TRACING_ENABLED: spans of gRPC and HTTP calls, nested"),
  async fn() {
    await using redis = await startRedis();
    const work = async (weir: WeirProcess) => {
      await askHttp(weir);
      await askGrpc(weir);
    };
    const { spans } = await traced({ BACKEND_TYPE: "kv", KV_URL: redis.url }, { spans: 6, work });
    assertEquals((await traced({ TRACING_ENABLED: "false" }, { spans: 0, work })).spans, []);
    const names = new Map(spans.map(({ spanId, name }) => [spanId, name]));
    const nesting = spans.map(({ name, parentSpanId }) => `${names.get(parentSpanId) ?? "-"} > ${name}`);
    assertEquals(
      nesting.sort(),
      [
        ...[`- > ${METHOD}`, "- > POST /json", `POST /json > ${EXECUTION}`, `${METHOD} > ${EXECUTION}`],
        ...[`${EXECUTION} > ${TRIP}`, `${EXECUTION} > ${TRIP}`],
      ].sort(),
    );
    const { resource = {} } = spans[0] ?? {};
    assertEquals([resource["service.name"], resource["service.namespace"]], ["RateLimit", undefined]);
    assertMatch(String(resource["service.instance.id"]), UUID);
  },
});

Deno.test("TRACING_EXPORTER_PROTOCOL, TRACING_SERVICE_…: spans by gRPC, with the names of the service", async () => {
  const names = {
    TRACING_SERVICE_NAME: "limits",
    TRACING_SERVICE_NAMESPACE: "shop",
    TRACING_SERVICE_INSTANCE_ID: "one",
  };
  const env = { ...names, TRACING_EXPORTER_PROTOCOL: "grpc" };
  const { spans } = await traced(env, { spans: 2, work: (weir) => askGrpc(weir) });
  assertEquals(spans.map(({ name }) => name), [EXECUTION, METHOD]);
  const { resource = {} } = spans[0] ?? {};
  assertEquals(
    ["service.name", "service.namespace", "service.instance.id"].map((name) => resource[name]),
    ["limits", "shop", "one"],
  );
});

Deno.test("TRACING_SAMPLING_RATE, OTEL_EXPORTER_OTLP_…: spans only of calls that the caller records, at another place", async () => {
  await using other = await OtlpReceiver.start({ protocol: "http" });
  await using headers = await withSecretFiles({ headers: "authorization=token" }, {
    place: "PLACE",
    settings: { OTEL_EXPORTER_OTLP_HEADERS_FILE: "PLACE/headers" },
  });
  const place = {
    ...headers.settings,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${other.url}/spans`,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
  };
  const work = async (weir: WeirProcess) => {
    await askHttp(weir);
    await askGrpc(weir, { b3: `${TRACE}-${PARENT}-0` });
    await askGrpc(weir, { traceparent: `00-${TRACE}-${PARENT}-01` });
  };
  const sampled = { ...place, TRACING_SAMPLING_RATE: "0" };
  const usual = await traced(sampled, { spans: 2, collector: other, work });
  assertEquals(usual.spans, []);
  assertEquals(other.spans.map(({ name, traceId }) => [name, traceId]), [[EXECUTION, TRACE], [
    METHOD,
    TRACE,
  ]]);
  assertEquals(other.spans.at(-1)?.parentSpanId, PARENT);
  const seen = other.requests.map(({ path, headers }) =>
    [path, headers.get("authorization"), headers.get("content-type")].join(" ")
  );
  assertEquals(seen, ["/spans token application/json"]);
  // The exporter would take its default in place of it.
  const env = { TRACING_ENABLED: "true", OTEL_EXPORTER_OTLP_ENDPOINT: "me:secret@collector" };
  const { message } = await assertRejects(() => ServeFixture.start({ env }));
  const told = /^Invalid OTEL_EXPORTER_OTLP_ENDPOINT \(value not shown\): expected a URL such as \S+$/;
  assertMatch(message, told);
  assertEquals(message.includes("secret"), false);
});
