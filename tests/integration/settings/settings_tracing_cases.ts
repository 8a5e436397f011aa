import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { encodeRateLimitRequest } from "../../../src/wire/rls.ts";
import { withSecretFiles } from "../../harness/deploy_files.ts";
import { GrpcClient, SHOULD_RATE_LIMIT } from "../../harness/grpc_client.ts";
import { OtlpReceiver, type ReceivedSpan } from "../../harness/otlp_receiver.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { startWeir, type WeirProcess } from "../../harness/weir_process.ts";
import { type Env, type SettingCase, type SettingCases, Shared, SHOP } from "./settings_case.ts";
import { REDIS } from "./settings_kv_bed.ts";

const METHOD = SHOULD_RATE_LIMIT.slice(1);
const EXECUTION = "ShouldRateLimit Execution";
const TRIP = "KV Pipeline Execution";
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** What came of the spans of processes with other settings. */
interface Traced {
  /** With nothing set but that spans are exported; a gRPC and an HTTP call, counted in a key-value cache. */
  readonly plain: readonly ReceivedSpan[];
  /** The same when tracing is off. */
  readonly off: readonly ReceivedSpan[];
  /** One gRPC call; exported by gRPC, and with other names. */
  readonly named: readonly ReceivedSpan[];
  /** Nothing is sampled by itself, and spans go to another place: what came at the usual one, and there. */
  readonly sampled: { readonly usual: readonly ReceivedSpan[]; readonly other: OtlpReceiver };
}

const NAMES = {
  TRACING_SERVICE_NAME: "limits",
  TRACING_SERVICE_NAMESPACE: "shop",
  TRACING_SERVICE_INSTANCE_ID: "one",
};

/** Processes with tracing; processes, because the exporters read their environment. */
export const TRACED = new Shared<Traced>(REDIS, async (stack) => {
  const other = stack.use(await OtlpReceiver.start({ protocol: "http" }));
  const [plain, off, named, usual] = await Promise.all([
    tracesOfBoth({}),
    tracesOfBoth({ TRACING_ENABLED: "false" }),
    traces("grpc", { ...NAMES, TRACING_EXPORTER_PROTOCOL: "grpc" }, async (weir, { spans }) => {
      await askGrpc(weir);
      await until("the spans", () => spans.length >= 2);
    }),
    tracesElsewhere(other),
  ]);
  return { plain, off, named, sampled: { usual, other } };
});

/** Tests of the settings of tracing. */
export const TRACING_CASES: SettingCases = {
  TRACING_ENABLED: {
    sees: "spans of gRPC and HTTP calls, nested, exported at the end",
    tools: REDIS,
    run: tracesBoth,
  },
  TRACING_EXPORTER_PROTOCOL: {
    sees: "spans that come by gRPC",
    tools: REDIS,
    run() {
      assertEquals(TRACED.value.named.map(({ name }) => name), [EXECUTION, METHOD]);
      return Promise.resolve();
    },
  },
  TRACING_SERVICE_NAME: differs("another name of the service", "service.name", ["RateLimit", "limits"]),
  TRACING_SERVICE_NAMESPACE: differs(
    "a namespace of the service",
    "service.namespace",
    [undefined, "shop"],
  ),
  TRACING_SERVICE_INSTANCE_ID: {
    sees: "a name of the instance in place of a random UUID",
    tools: REDIS,
    run() {
      const [random, named] = resources("service.instance.id");
      assertMatch(String(random), UUID);
      assertEquals(named, "one");
      return Promise.resolve();
    },
  },
  TRACING_SAMPLING_RATE: { sees: "spans only of calls that the caller records", tools: REDIS, run: samples },
  "OTEL_EXPORTER_OTLP_<OPTION>": {
    sees: "spans at another place, as JSON, with headers",
    tools: REDIS,
    run: exportsElsewhere,
  },
};

function tracesBoth(): Promise<void> {
  const { plain, off } = TRACED.value;
  assertEquals(off, []);
  const names = new Map(plain.map(({ spanId, name }) => [spanId, name]));
  const nesting = plain.map(({ name, parentSpanId }) => `${names.get(parentSpanId) ?? "-"} > ${name}`);
  assertEquals(
    nesting.sort(),
    [
      `- > ${METHOD}`,
      "- > POST /json",
      `POST /json > ${EXECUTION}`,
      `${EXECUTION} > ${TRIP}`,
      `${EXECUTION} > ${TRIP}`,
      `${METHOD} > ${EXECUTION}`,
    ].sort(),
  );
  return Promise.resolve();
}

/** What spans say of the service without and with the names. */
function resources(attribute: string): readonly unknown[] {
  const { plain, named } = TRACED.value;
  return [plain, named].map(([span]) => span?.resource[attribute]);
}

function differs(
  sees: string,
  attribute: string,
  values: readonly [unset: unknown, set: unknown],
): SettingCase {
  const run = () => {
    assertEquals(resources(attribute), [...values]);
    return Promise.resolve();
  };
  return { sees, tools: REDIS, run };
}

function samples(): Promise<void> {
  const { spans } = TRACED.value.sampled.other;
  assertEquals(spans.map(({ name, traceId }) => [name, traceId]), [[EXECUTION, TRACE], [METHOD, TRACE]]);
  assertEquals(spans.at(-1)?.parentSpanId, PARENT);
  return Promise.resolve();
}

async function exportsElsewhere(): Promise<void> {
  const { usual, other } = TRACED.value.sampled;
  assertEquals(usual, []);
  // A busy machine may take two requests for what goes into one.
  const seen = other.requests.map(({ path, headers }) =>
    [path, headers.get("authorization"), headers.get("content-type")].join(" ")
  );
  assertEquals([other.spans.length, ...new Set(seen)], [2, "/spans token application/json"]);
  // The exporter would take its default in place of it.
  const env = { TRACING_ENABLED: "true", OTEL_EXPORTER_OTLP_ENDPOINT: "me:secret@collector" };
  const { message } = await assertRejects(() => ServeFixture.start({ env }));
  assertMatch(
    message,
    /^Invalid OTEL_EXPORTER_OTLP_ENDPOINT \(value not shown\): expected a URL such as \S+$/,
  );
  assertEquals(message.includes("secret"), false);
}

async function tracesOfBoth(env: Env): Promise<readonly ReceivedSpan[]> {
  await using redis = await startRedis();
  const shared = { BACKEND_TYPE: "kv", KV_URL: redis.url };
  return await traces("http", { ...shared, ...env }, async (weir, { spans }) => {
    await askHttp(weir);
    await askGrpc(weir);
    if (env["TRACING_ENABLED"] !== "false") await until("the spans", () => spans.length >= 6);
  });
}

async function tracesElsewhere(other: OtlpReceiver): Promise<readonly ReceivedSpan[]> {
  await using headers = await withSecretFiles({ headers: "authorization=token" }, {
    place: "PLACE",
    settings: { OTEL_EXPORTER_OTLP_HEADERS_FILE: "PLACE/headers" },
  });
  const env = {
    ...headers.settings,
    TRACING_SAMPLING_RATE: "0",
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${other.url}/spans`,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
  };
  return await traces("http", env, async (weir) => {
    await askGrpc(weir);
    await askHttp(weir);
    await askGrpc(weir, { traceparent: `00-${TRACE}-${PARENT}-01` });
    await askGrpc(weir, { b3: `${TRACE}-${PARENT}-0` });
    await until("the spans", () => other.spans.length >= 2);
  });
}

/** The spans that a process exports until it ends, to the place that it is told first. */
async function traces(
  protocol: "http" | "grpc",
  env: Env,
  work: (weir: WeirProcess, receiver: OtlpReceiver) => Promise<void>,
): Promise<readonly ReceivedSpan[]> {
  await using receiver = await OtlpReceiver.start({ protocol });
  // They are sent soon: for the last ones at the end of the process there is a short limit.
  const soon = { OTEL_BSP_SCHEDULE_DELAY: "100" };
  const own = { ...soon, TRACING_ENABLED: "true", OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  await using weir = await startWeir({ env: { ...own, ...env }, rules: SHOP });
  await work(weir, receiver);
  assertEquals(await weir.stop(), 0);
  return [...receiver.spans];
}

async function askGrpc(weir: WeirProcess, headers: Env = {}): Promise<void> {
  using client = new GrpcClient(weir.grpcAddress);
  const descriptors = [{ entries: [{ key: "open", value: "a" }] }];
  const request = encodeRateLimitRequest({ domain: "shop", hitsAddend: 0, descriptors });
  const { code } = await client.unary(SHOULD_RATE_LIMIT, request, headers);
  assertEquals(code, 0);
}

async function askHttp(weir: WeirProcess): Promise<void> {
  const body = JSON.stringify({
    domain: "shop",
    descriptors: [{ entries: [{ key: "open", value: "a" }] }],
  });
  const response = await fetch(`http://${weir.httpAddress}/json`, { method: "POST", body });
  await response.body?.cancel();
  assertEquals(response.status, 200);
}
