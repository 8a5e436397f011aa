import { assertEquals } from "#assert";
import { verify } from "../../../src/webhooks/receiver.ts";
import { OtlpReceiver } from "../../harness/otlp_receiver.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { eventually, until } from "../../harness/until.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const ECHO = { body: { name: "echo", workflow: "echo" } };
const CALL = "/workflows/triggers/echo";

Deno.test("webhooks: a trigger starts a workflow, whose end is delivered and signed", async () => {
  await using folder = await WebhookFolder.make();
  await using receiver = await WebhookReceiver.start();
  await using weir = await folder.serve();
  const { http } = weir.running.addresses;
  const { body: { id: endpointId, secret } } = await api(http, "/endpoints", {
    body: { url: receiver.url, events: ["workflow.*"], headers: { "x-tenant": "tenant-secret" } },
  });
  const { body: { key } } = await api(http, "/triggers", ECHO);
  const call = { token: key, idempotencyKey: "once", body: '{"total": 12345678901234567890}' };
  const first = await api(http, CALL, call);
  assertEquals(first.status, 202);
  const [got] = await until("the delivery", () => receiver.receptions.length > 0 && receiver.receptions);
  const { body = "", headers = {} } = got ?? {};
  assertEquals((await verify({ body, headers, secrets: [secret] })).ok, true);
  const { event, data } = JSON.parse(body);
  assertEquals([event, data.executionId, data.status], [
    "workflow.execution.completed",
    first.body.executionId,
    "succeeded",
  ]);
  assertEquals(body.includes('"total":12345678901234567890'), true);
  assertEquals([headers["x-svc-event"], headers["content-type"], headers["x-tenant"]], [
    "workflow.execution.completed",
    "application/json",
    "tenant-secret",
  ]);
  const shown = await until("the acknowledgement", async () => {
    const { body: list } = await api(http, `/deliveries?endpointId=${endpointId}`);
    return list.items[0]?.state === "acknowledged" && list.items[0];
  });
  assertEquals([shown.id, (shown["attempts"] as unknown[]).length], [headers["x-svc-delivery"], 1]);
  const replay = await api(http, CALL, call);
  assertEquals([replay.body, replay.headers.get("idempotency-replayed")], [first.body, "true"]);
  const log = weir.log.join("\n");
  await weir.stop();
  for (const hidden of [secret, key, ADMIN_TOKEN, "tenant-secret"]) {
    for (const text of [log, await folder.storeText(), JSON.stringify(shown)]) {
      assertEquals(text.includes(hidden), false);
    }
  }
  await using next = await folder.serve();
  const later = await api(next.running.addresses.http, CALL, call);
  assertEquals([later.body, later.headers.get("idempotency-replayed")], [first.body, "true"]);
});

Deno.test("webhooks: the debug port carries the administration behind its token", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve({ DEBUG_TOKEN: "debug-token" });
  const seen = [];
  for (const token of [ADMIN_TOKEN, "debug-token", "other"]) {
    seen.push((await api(weir.running.addresses.debug, "/endpoints", { token })).status);
  }
  assertEquals(seen, [200, 401, 401]);
  assertEquals((await api(weir.running.addresses.debug, CALL, { body: {} })).status, 404);
});

Deno.test("webhooks: the limit of a trigger is decided by the rules of the process", async () => {
  await using folder = await WebhookFolder.make();
  const rules = {
    "edge.yaml":
      "domain: edge\ndescriptors:\n  - key: customer\n    rate_limit: { unit: day, requests_per_unit: 1 }\n",
  };
  await using service = await ServeFixture.start({ env: folder.env, rules });
  const { http } = service.running.addresses;
  const limit = { domain: "edge", descriptors: [{ customer: "{{ input.customer }}" }] };
  const { body: { key } } = await api(http, "/triggers", { body: { ...ECHO.body, limit } });
  const call = (customer: string) => api(http, CALL, { token: key, body: { customer, total: 1 } });
  const answers = [await call("a"), await call("b"), await call("a")];
  assertEquals(answers.map(({ status }) => status), [202, 202, 429]);
  assertEquals(Number(answers[2]?.headers.get("retry-after")) > 0, true);
});

Deno.test("webhooks: a span for each trigger, step and attempt", async () => {
  await using folder = await WebhookFolder.make();
  await using receiver = await WebhookReceiver.start();
  await using spans = await OtlpReceiver.start({ protocol: "http" });
  const env = {
    TRACING_ENABLED: "true",
    TRACING_EXPORTER_PROTOCOL: "http",
    OTEL_EXPORTER_OTLP_ENDPOINT: spans.url,
    // One export of all three, on a busy machine too.
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "3",
    OTEL_BSP_SCHEDULE_DELAY: "60000",
  };
  await using weir = await folder.start(env);
  const http = weir.httpAddress;
  await api(http, "/endpoints", { body: { url: receiver.url } });
  const { body: { key } } = await api(http, "/triggers", ECHO);
  const { body: { executionId } } = await api(http, CALL, { token: key, body: { total: 1 } });
  await until("the delivery", () => receiver.receptions.length === 1);
  await until("the acknowledgement", async () => {
    return (await api(http, "/deliveries")).body.items[0]?.state === "acknowledged";
  });
  const names = ["POST /api/v1/workflows/triggers/*", "webhook attempt", "workflow step"];
  await eventually(names, () => spans.spans.map(({ name }) => name).sort());
  assertEquals(await weir.stop(), 0);
  const named = (name: string) => spans.spans.filter((span) => span.name === name);
  assertEquals(named("workflow step").map(({ traceId }) => traceId), [executionId.replaceAll("-", "")]);
  assertEquals(named("webhook attempt").map(({ traceId }) => traceId), [
    receiver.receptions[0]?.id.replaceAll("-", ""),
  ]);
});
