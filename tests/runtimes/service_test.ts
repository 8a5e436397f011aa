import { assertEquals } from "#assert";
import net from "node:net";
import { RATE_LIMIT_PATH } from "../../src/wire/rls.ts";
import { checkRuntime } from "../../src/cli/runtime_check.ts";
import { type DenoRuntime, runDeno, testRuntimes } from "../harness/deno_runtime.ts";
import { FLOOD_KINDS, FloodSource } from "../harness/h2_floods.ts";
import { greeting } from "../harness/h2_peer.ts";
import { OtlpMetricsReceiver } from "../harness/otlp_metrics_receiver.ts";
import { seededRandom } from "../harness/seeded_random.ts";
import { abortedByGoaway } from "./aborted_by_goaway.ts";
import { eventually } from "../harness/until.ts";
import { WebhookReceiver } from "../harness/webhook_receiver.ts";
import { api, untilStoreIsOpen, WebhookFolder } from "../harness/webhook_weir.ts";
import { startWeir, type WeirProcess } from "../harness/weir_process.ts";
import { shopConfig, XdsServer } from "../harness/xds_server.ts";

const RULES = {
  "shop.yaml":
    "domain: shop\ndescriptors:\n- key: user\n  rate_limit: { unit: day, requests_per_unit: 1000 }\n" +
    "- key: blocked\n  rate_limit: { unit: day, requests_per_unit: 0 }\n",
};
const FRAMES = 2_000;
const GOODBYES = 20;
const OVER = "ratelimit_service_rate_limit_over_limit";

testRuntimes("the service decides, survives floods, delivers a webhook and stops", async (runtime) => {
  await using folder = await WebhookFolder.make();
  await using receiver = await WebhookReceiver.start();
  await using weir = await startWeir({ runtime, rules: RULES, env: folder.env });
  assertEquals(await decisions(runtime, weir), OPEN_AND_BLOCKED);
  await flood(weir.grpcAddress);
  assertEquals(await decisions(runtime, weir), OPEN_AND_BLOCKED);
  await untilStoreIsOpen(weir.httpAddress);
  const endpoint = await api(weir.httpAddress, "/endpoints", { body: { url: receiver.url } });
  assertEquals(endpoint.status, 201);
  const event = { event: "agent.reply.completed", data: { total: 7 } };
  const accepted = await api(weir.httpAddress, "/events", { body: event, idempotencyKey: "one" });
  assertEquals(accepted.status, 202);
  await eventually([event.data], () => receiver.receptions.map(({ body }) => JSON.parse(body).data));
  assertEquals(await weir.stop(), 0);
  assertEquals(weir.stderrLines.filter((line) => /level=(?:warning|error)/.test(line)), []);
});

testRuntimes("rules come by xDS, and metrics go by OTLP over gRPC", async (runtime) => {
  await using server = await XdsServer.start();
  await using receiver = await OtlpMetricsReceiver.start("grpc");
  server.set("1", shopConfig({ user: 1_000, blocked: 0 }));
  const env = {
    CONFIG_TYPE: "GRPC_XDS_SOTW",
    CONFIG_GRPC_XDS_SERVER_URL: server.url,
    DISABLE_STATS: "false",
    OTEL_METRICS_EXPORTER: "otlp",
    OTEL_METRIC_EXPORT_INTERVAL: "200",
    OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
  };
  await using weir = await startWeir({ runtime, env });
  assertEquals(await decisions(runtime, weir), OPEN_AND_BLOCKED);
  await eventually(2, () => receiver.newest(OVER, { key1: "blocked" })?.value);
  assertEquals(await weir.stop(), 0);
});

testRuntimes("the second gRPC engine is refused where a peer can abort it", async (runtime) => {
  const env = { GRPC_ENGINE: "grpc-js" };
  const verdict = checkRuntime(runtime.release, { ...env, ALLOW_UNSAFE_DENO: false });
  await using weir = await startWeir({ runtime, rules: RULES, env, waitFor: [] });
  if (verdict?.refuse === true) {
    assertEquals(await weir.exited, { code: 1, signal: null });
    assertEquals(weir.stderrLines, [verdict.text]);
    return;
  }
  await weir.listening(["gRPC"]);
  assertEquals(await abortedByGoaway(weir, GOODBYES), false);
  assertEquals(await weir.stop(), 0);
});

const OPEN_AND_BLOCKED = ["200", "429", "0 OK", "3 OVER_LIMIT"];

/** Decisions over HTTP and by the command of the same release over gRPC: statuses and exit codes. */
async function decisions(runtime: DenoRuntime, weir: WeirProcess): Promise<string[]> {
  const byHttp = await Promise.all(["user", "blocked"].map(async (key) => {
    const body = JSON.stringify({ domain: "shop", descriptors: [{ entries: [{ key, value: "a" }] }] });
    const response = await fetch(`http://${weir.httpAddress}/json`, { method: "POST", body });
    await response.body?.cancel();
    return String(response.status);
  }));
  const byGrpc = await Promise.all(["user", "blocked"].map(async (key) => {
    const flags = ["--dial_string", weir.grpcAddress, "--domain", "shop", "--descriptors", `${key}=a`];
    const { code, text } = await runDeno(runtime, ["run", "-A", "main.ts", "client", ...flags]);
    return `${code} ${/OK|OVER_LIMIT/.exec(text)?.[0] ?? text}`;
  }));
  return [...byHttp, ...byGrpc];
}

/** Floods its own connection with frames of each kind, until all are written or the server closes it. */
async function flood(address: string): Promise<void> {
  const port = Number(address.split(":").at(-1));
  for (const kind of FLOOD_KINDS) {
    const socket = net.connect({ host: "127.0.0.1", port });
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    socket.on("error", () => {});
    socket.on("data", () => {});
    socket.write(greeting());
    const bytes = new FloodSource(RATE_LIMIT_PATH).next([kind], FRAMES, seededRandom(1));
    await Promise.race([closed, new Promise<void>((resolve) => socket.write(bytes, () => resolve()))]);
    socket.destroy();
    await closed;
  }
}
