import { assertEquals } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { verify } from "../../../src/webhooks/receiver.ts";
import { OtlpReceiver } from "../../harness/otlp_receiver.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { ADMIN_TOKEN, api, WebhookFolder, WebhookReceiver } from "../../harness/webhook_weir.ts";

const ECHO = { body: { name: "echo", workflow: "echo" } };
const CALL = "/workflows/triggers/echo";

Deno.test("webhooks: a trigger starts a workflow, whose end is delivered and signed", async () => {
  await using folder = await WebhookFolder.make();
  await using receiver = new WebhookReceiver();
  await using weir = await folder.start();
  const { httpAddress: http } = weir;
  const { body: { id: endpointId, secret } } = await api(http, "/endpoints", {
    body: { url: receiver.url, events: ["workflow.*"], headers: { "x-tenant": "tenant-secret" } },
  });
  const { body: { key } } = await api(http, "/triggers", ECHO);
  const call = { token: key, idempotencyKey: "once", body: '{"total": 12345678901234567890}' };
  const first = await api(http, CALL, call);
  assertEquals(first.status, 202);
  const [got] = await until("the delivery", () => receiver.received.length > 0 && receiver.received);
  const { body = "", headers = new Headers() } = got ?? {};
  assertEquals((await verify({ body, headers, secrets: [secret] })).ok, true);
  const { event, data } = JSON.parse(body);
  assertEquals([event, data.executionId, data.status], [
    "workflow.execution.completed",
    first.body.executionId,
    "succeeded",
  ]);
  assertEquals(body.includes('"total":12345678901234567890'), true);
  assertEquals([headers.get("x-svc-event"), headers.get("content-type"), headers.get("x-tenant")], [
    "workflow.execution.completed",
    "application/json",
    "tenant-secret",
  ]);
  const shown = await until("the acknowledgement", async () => {
    const { body: list } = await api(http, `/deliveries?endpointId=${endpointId}`);
    return list.items[0]?.state === "acknowledged" && list.items[0];
  });
  assertEquals([shown.id, (shown["attempts"] as unknown[]).length], [headers.get("x-svc-delivery"), 1]);
  const replay = await api(http, CALL, call);
  assertEquals([replay.body, replay.headers.get("idempotency-replayed")], [first.body, "true"]);
  const log = [...weir.stderrLines, ...weir.stdoutLines].join("\n");
  assertEquals(await weir.stop(), 0);
  for (const hidden of [secret, key, ADMIN_TOKEN, "tenant-secret"]) {
    for (const text of [log, await folder.storeText(), JSON.stringify(shown)]) {
      assertEquals(text.includes(hidden), false);
    }
  }
  await using next = await folder.start();
  const later = await api(next.httpAddress, CALL, call);
  assertEquals([later.body, later.headers.get("idempotency-replayed")], [first.body, "true"]);
});

Deno.test("webhooks: the dry run of an endpoint says nothing of the user", async () => {
  await using folder = await WebhookFolder.make();
  await using receiver = new WebhookReceiver();
  await using weir = await folder.start();
  const { body: { id } } = await api(weir.httpAddress, "/endpoints", { body: { url: receiver.url } });
  const { status, body } = await api(weir.httpAddress, `/endpoints/${id}/check`, { method: "POST" });
  assertEquals([status, body["ok"], receiver.received.length], [200, true, 1]);
  assertEquals(receiver.received[0]?.headers.get("x-svc-event"), "weir.endpoint.check");
});

Deno.test("webhooks: two processes share a store, and one takes over from the other", async () => {
  await using folder = await WebhookFolder.make();
  await using receiver = new WebhookReceiver();
  await using first = await folder.start();
  await api(first.httpAddress, "/endpoints", { body: { url: receiver.url } });
  await using second = await folder.start();
  const post = async (address: string, n: number) => {
    const body = { event: "a.b", data: { n } };
    // Where two write, one may have to come again.
    const answer = await until("an answer", async () => {
      const answered = await api(address, "/events", { idempotencyKey: `k${n}`, body });
      return answered.status === 503 ? undefined : answered;
    });
    assertEquals(answer.status, 202);
    return answer.body.id;
  };
  for (let n = 0; n < 10; n++) await post(n % 2 === 0 ? first.httpAddress : second.httpAddress, n);
  await until("all deliveries", () => receiver.received.length === 10);
  // A key that one has accepted is known to the other.
  assertEquals(await post(first.httpAddress, 1), await post(second.httpAddress, 1));
  await first.kill();
  const killedAt = performance.now();
  await post(second.httpAddress, 10);
  await until("the second to take over", () => receiver.received.length === 11);
  // The lock of the store ends with its process; a lease would last for half a minute.
  assertEquals(performance.now() - killedAt < 12_000, true);
  assertEquals(new Set(receiver.received.map(({ delivery }) => delivery)).size, 11);
});

Deno.test("webhooks: the debug port carries the administration behind its token", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.start({ DEBUG_TOKEN: "debug-token" });
  const seen = [];
  for (const token of [ADMIN_TOKEN, "debug-token", "other"]) {
    seen.push((await api(weir.debugAddress, "/endpoints", { token })).status);
  }
  assertEquals(seen, [200, 401, 401]);
  assertEquals((await api(weir.debugAddress, CALL, { body: {} })).status, 404);
});

Deno.test("webhooks: what is under way at SIGTERM is done by the next process", async () => {
  await using folder = await WebhookFolder.make();
  await using receiver = new WebhookReceiver();
  receiver.status = 503;
  {
    await using weir = await folder.start();
    await api(weir.httpAddress, "/endpoints", { body: { url: receiver.url } });
    await api(weir.httpAddress, "/events", { body: { event: "a", data: {} } });
    await until("two failed attempts", () => receiver.received.length === 2);
    assertEquals(await weir.stop(), 0);
  }
  receiver.status = 200;
  await using weir = await folder.start();
  const { body: { items: [delivery] } } = await api(weir.httpAddress, "/deliveries");
  assertEquals(delivery?.state, "retrying");
  assertEquals(
    (await api(weir.httpAddress, `/deliveries/${delivery?.id}/resend`, { method: "POST" })).status,
    202,
  );
  await until("the acknowledgement", async () => {
    return (await api(weir.httpAddress, `/deliveries/${delivery?.id}`)).body.state === "acknowledged";
  });
  assertEquals(new Set(receiver.received.map(({ delivery }) => delivery)).size, 1);
  assertEquals(new Set(receiver.received.map(({ body }) => body)).size, 1);
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
  await using receiver = new WebhookReceiver();
  await using spans = await OtlpReceiver.start({ protocol: "http" });
  const env = {
    TRACING_ENABLED: "true",
    TRACING_EXPORTER_PROTOCOL: "http",
    OTEL_EXPORTER_OTLP_ENDPOINT: spans.url,
  };
  await using weir = await folder.start(env);
  const http = weir.httpAddress;
  await api(http, "/endpoints", { body: { url: receiver.url } });
  const { body: { key } } = await api(http, "/triggers", ECHO);
  const { body: { executionId } } = await api(http, CALL, { token: key, body: { total: 1 } });
  await until("the delivery", () => receiver.received.length === 1);
  await until("the acknowledgement", async () => {
    return (await api(http, "/deliveries")).body.items[0]?.state === "acknowledged";
  });
  assertEquals(await weir.stop(), 0);
  const named = (name: string) => spans.spans.filter((span) => span.name === name);
  assertEquals(named("POST /api/v1/workflows/triggers/*").length, 1);
  assertEquals(named("workflow step").map(({ traceId }) => traceId), [executionId.replaceAll("-", "")]);
  assertEquals(named("webhook attempt").map(({ traceId }) => traceId), [
    receiver.received[0]?.delivery.replaceAll("-", ""),
  ]);
});

Deno.test("webhooks: while the database is locked triggers are 503, and decisions go on", async () => {
  await using folder = await WebhookFolder.make();
  await using service = await ServeFixture.start({ env: folder.env });
  const { http } = service.running.addresses;
  const { body: { key } } = await api(http, "/triggers", ECHO);
  const call = () => api(http, CALL, { token: key, idempotencyKey: "k", body: { total: 1 } });
  const database = new DatabaseSync(folder.store);
  database.exec("BEGIN IMMEDIATE");
  try {
    const refused = call();
    const decision = await service.ask({
      domain: "any",
      descriptors: [{ entries: [{ key: "a", value: "b" }] }],
    });
    assertEquals(decision.status, 200);
    const { status, body, headers } = await refused;
    assertEquals([status, body.code, headers.get("retry-after")], [503, "store_unavailable", "1"]);
    await until(
      "the health to show it",
      async () => (await service.page("/healthcheck")).includes("webhooks"),
    );
  } finally {
    database.exec("ROLLBACK");
    database.close();
  }
  const accepted = await until("the store to be free", async () => {
    const answer = await call();
    return answer.status === 202 && answer;
  });
  assertEquals(accepted.headers.get("idempotency-replayed"), null);
});
