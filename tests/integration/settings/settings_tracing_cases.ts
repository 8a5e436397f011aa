import { assertEquals, assertMatch } from "@std/assert";
import { GrpcClient, SHOULD_RATE_LIMIT } from "../../harness/grpc_client.ts";
import { OtlpReceiver, type ReceivedSpan } from "../../harness/otlp_receiver.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { until } from "../../harness/until.ts";
import { startWeir, type WeirProcess } from "../../harness/weir_process.ts";
import { encodeRateLimitRequest } from "../../../src/wire/rls.ts";
import { type Env, type SettingCases, SHOP } from "./settings_case.ts";

const METHOD = SHOULD_RATE_LIMIT.slice(1);
const EXECUTION = "ShouldRateLimit Execution";
const TRIP = "KV Pipeline Execution";
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Tests of the settings of tracing: a process each, because the exporters read its environment. */
export const TRACING_CASES: SettingCases = {
  TRACING_ENABLED: { sees: "spans of gRPC and HTTP calls, nested, exported at the end", run: tracesBoth },
  TRACING_EXPORTER_PROTOCOL: { sees: "spans that come by gRPC", run: exportsByGrpc },
  TRACING_SERVICE_NAME: {
    sees: "another name of the service",
    run: () => compareResource({ TRACING_SERVICE_NAME: "limits" }, "service.name", "RateLimit", "limits"),
  },
  TRACING_SERVICE_NAMESPACE: {
    sees: "a namespace of the service",
    run: () => compareResource({ TRACING_SERVICE_NAMESPACE: "shop" }, "service.namespace", undefined, "shop"),
  },
  TRACING_SERVICE_INSTANCE_ID: {
    sees: "a name of the instance in place of a random UUID",
    run: namesInstance,
  },
  TRACING_SAMPLING_RATE: { sees: "spans only of calls that the caller records", run: samples },
  "OTEL_EXPORTER_OTLP_<OPTION>": { sees: "spans at another place, with headers", run: exportsElsewhere },
};

async function tracesBoth(): Promise<void> {
  await using receiver = await OtlpReceiver.start({ protocol: "http" });
  assertEquals(await traced(receiver, { TRACING_ENABLED: "false" }), []);
  await using redis = await startRedis();
  const shared = { BACKEND_TYPE: "kv", KV_URL: redis.url };
  const spans = await traced(receiver, shared, async (weir) => {
    await askHttp(weir);
    await askGrpc(weir);
    await until("the spans", () => receiver.spans.length >= 6);
  });
  const names = new Map(spans.map(({ spanId, name }) => [spanId, name]));
  const nesting = spans.map(({ name, parentSpanId }) => `${names.get(parentSpanId) ?? "-"} > ${name}`);
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
}

async function exportsByGrpc(): Promise<void> {
  await using receiver = await OtlpReceiver.start({ protocol: "grpc" });
  const spans = await traced(receiver, { TRACING_EXPORTER_PROTOCOL: "grpc" });
  assertEquals(spans.map(({ name }) => name), [EXECUTION, METHOD]);
}

async function namesInstance(): Promise<void> {
  await using receiver = await OtlpReceiver.start({ protocol: "http" });
  const [random] = await traced(receiver, {});
  assertMatch(String(random?.resource["service.instance.id"]), UUID);
  const [named] = await traced(receiver, { TRACING_SERVICE_INSTANCE_ID: "one" });
  assertEquals(named?.resource["service.instance.id"], "one");
}

async function samples(): Promise<void> {
  await using receiver = await OtlpReceiver.start({ protocol: "http" });
  const spans = await traced(receiver, { TRACING_SAMPLING_RATE: "0" }, async (weir) => {
    await askGrpc(weir);
    await askHttp(weir);
    await askGrpc(weir, { traceparent: `00-${TRACE}-${PARENT}-01` });
    await askGrpc(weir, { b3: `${TRACE}-${PARENT}-0` });
    await until("the spans", () => receiver.spans.length >= 2);
  });
  const seen = spans.map(({ name, traceId }) => [name, traceId]);
  assertEquals(seen, [[EXECUTION, TRACE], [METHOD, TRACE]]);
  assertEquals(spans.at(-1)?.parentSpanId, PARENT);
}

async function exportsElsewhere(): Promise<void> {
  await using usual = await OtlpReceiver.start({ protocol: "http" });
  await using other = await OtlpReceiver.start({ protocol: "http" });
  const spans = await traced(usual, {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${other.url}/spans`,
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=token",
  }, async (weir) => {
    await askGrpc(weir);
    await until("the spans", () => other.spans.length >= 2);
  });
  assertEquals(spans, []);
  // A busy machine may take two requests for what goes into one.
  const seen = other.requests.map(({ path, headers }) => `${path} ${headers.get("authorization")}`);
  assertEquals([other.spans.length, ...new Set(seen)], [2, "/spans token"]);
  await refusesNoUrl();
}

/** The exporter would take its default in place of it. */
async function refusesNoUrl(): Promise<void> {
  const env = { TRACING_ENABLED: "true", OTEL_EXPORTER_OTLP_ENDPOINT: "me:secret@collector" };
  await using weir = await startWeir({ env, waitFor: [] });
  const { code } = await weir.exited;
  const told = weir.stderrLines.join("\n");
  const wanted =
    /Cannot use OTEL_EXPORTER_OTLP_ENDPOINT \(value not shown\): a URL such as \S+ would be right/;
  assertMatch(told, wanted);
  assertEquals([code, told.includes("secret")], [1, false]);
}

async function compareResource(changed: Env, name: string, unset: unknown, set: unknown): Promise<void> {
  await using receiver = await OtlpReceiver.start({ protocol: "http" });
  const seen = [];
  for (const env of [{}, changed]) {
    const [span] = await traced(receiver, env);
    seen.push(span?.resource[name]);
  }
  assertEquals(seen, [unset, set]);
}

/** The spans that a process exports until it ends, of one gRPC call unless others are made. */
async function traced(
  receiver: OtlpReceiver,
  env: Env,
  work: (weir: WeirProcess) => Promise<void> = async (weir) => {
    await askGrpc(weir);
    if (env["TRACING_ENABLED"] === "false") return;
    await until("the spans", () => receiver.spans.length >= 2);
  },
): Promise<readonly ReceivedSpan[]> {
  receiver.spans.length = 0;
  // They are sent soon: for the last ones at the end of the process there is a short limit.
  const soon = { OTEL_BSP_SCHEDULE_DELAY: "100" };
  const own = { ...soon, TRACING_ENABLED: "true", OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  await using weir = await startWeir({ env: { ...own, ...env }, rules: SHOP });
  await work(weir);
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
