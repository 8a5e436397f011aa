/** Calls every operation of the OpenAPI document, and checks what is answered against the schemas of the document. */
import { assertEquals } from "#assert";
import {
  OpenApiService,
  type OperationCall,
  type PlacedOperation,
  placedOperations,
} from "../../harness/openapi_service.ts";
import { debugPort, decisions, LONG } from "./openapi_decision_calls.ts";
import { HELD, replays } from "./openapi_replay_calls.ts";
import { keyOf, triggers, UNKNOWN, unknown } from "./openapi_trigger_calls.ts";
import { until } from "../../harness/until.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { api } from "../../harness/webhook_weir.ts";

const DEEP = `{"data":${"[".repeat(99)}${"]".repeat(99)}}`;
const READ_TOKEN = "the-token-with-the-role-read-of-this-test";
/** Codes that need a broken or slow service, which other tests bring about. */
const NOT_CALLED = [
  ...["timeout", "internal", "in_flight", "no_configuration", "cache_unavailable", "limit_failed"],
  ...["store_full", "backlog_full", "store_unavailable", "webhooks_unavailable", "shutting_down"],
  // Of identifiers that begin alike, and of Amazon SNS.
  ...["ambiguous_id", "sender_unavailable"],
];

Deno.test("openapi: every operation answers as the document describes", async () => {
  await using receiver = await WebhookReceiver.start();
  await using service = await OpenApiService.start({
    ADMIN_TOKENS: `ci:read:${READ_TOKEN}`,
    WEBHOOK_MAX_BACKLOG: String(2 * HELD),
  });
  await service.call("getCaller", { token: READ_TOKEN });
  await decisions(service);
  await debugPort(service);
  await endpoints(service, receiver);
  await replays(service, receiver);
  await events(service);
  await triggers(service);
  await executions(service);
  await workflows(service);
  await service.call("listAudit", { query: "event=trigger.created" });
  for (const { operation } of placedOperations(service.document)) await commonProblems(service, operation);
  assertEquals(missing(service), []);
});

/** The statuses and codes that the document describes and no call has shown. */
function missing({ document, seen }: OpenApiService): string[] {
  return placedOperations(document).flatMap(({ method, path, operation: { operationId, responses } }) =>
    Object.entries(responses).flatMap(([status, { content = {} }]) => {
      const codes = Object.keys(content["application/problem+json"]?.examples ?? {});
      // `HEAD` shows no code.
      return codes.length > 0 && method !== "HEAD" ? codes : /^2|429/.test(status) ? [status] : [];
    }).filter((answer) => !NOT_CALLED.includes(answer) && !seen.has(`${operationId} ${answer}`))
      // Without an identifier it is answered only where the administration is off.
      .filter((answer) => answer !== "not_found" || path.includes("{"))
      .map((answer) => `${operationId} ${answer}`)
  );
}

/** The problems that follow from what an operation has: a token, an identifier, a query, a body. */
async function commonProblems(
  service: OpenApiService,
  { operationId, parameters = [], requestBody, responses, tags }: PlacedOperation["operation"],
): Promise<void> {
  if (tags.includes("debug") || responses["401"] === undefined) return;
  const ids = parameters.filter((one) => one.in === "path");
  const path = ids.map(({ name }) => name === "name" ? "none" : UNKNOWN);
  const called = operationId === "callTrigger" ? { path: ["plain"], token: await keyOf(service) } : { path };
  const codes = Object.values(responses).flatMap(({ content = {} }) => {
    return Object.keys(content["application/problem+json"]?.examples ?? {});
  });
  const refused = async (status: number, code: string, call: OperationCall) => {
    if (codes.includes(code)) await service.call(operationId, { status, code, ...called, ...call });
  };
  const sent = requestBody === undefined ? {} : { body: {} };
  await service.call(operationId, { status: 401, code: "unauthorized", path, token: "", ...sent });
  await refused(415, "unsupported_media_type", { body: "{}", headers: { "content-type": "text/plain" } });
  await refused(413, "too_large", { body: LONG });
  await refused(400, "malformed_json", { body: "{" });
  await refused(422, "not_an_object", { body: "[]" });
  await refused(422, "too_deep", { body: DEEP });
  const wrong = requestBody === undefined ? { query: "unknown=1" } : { body: { unknownField: 1 } };
  await refused(422, "invalid_field", wrong);
  await refused(403, "role_not_allowed", { path, token: READ_TOKEN, ...sent });
}

async function endpoints(service: OpenApiService, receiver: WebhookReceiver): Promise<void> {
  const fields = {
    headers: { "x-tenant": "a" },
    timeoutMs: 1_000,
    rotationOverlapMs: 86_400_000,
    rateLimit: { unit: "second", requestsPerUnit: 100_000 },
    onGone: "disable",
    template: { text: "{{ data.x | default: 1 }}", list: [1.5, null] },
    events: ["agent.*"],
    standardWebhooks: true,
  };
  const { id } = (await service.call("createEndpoint", {
    status: 201,
    body: { url: `${receiver.url}/hooks`, ...fields },
  })).body;
  const path = [id];
  const filter = { "customer.plan": ["pro", 1.5, true, null] };
  await service.call("updateEndpoint", { path, body: { filter } });
  const total = { equal: 1, notEqual: "x", in: [1, null], exists: true, greater: 0.5, less: 2 };
  await service.call("updateEndpoint", {
    path,
    body: { filter: { total, all: [{ any: [{ a: [1] }, { b: total }] }] } },
  });
  await service.call("getEndpoint", { path });
  await service.call("updateEndpoint", { path, body: { filter } });
  await service.call("listEndpoints", { query: "limit=1" });
  await service.call("getEndpoint", { path });
  await service.call("testEndpoint", { path, body: { event: "agent.done", data: { customer: {} } } });
  await service.call("updateEndpoint", {
    path,
    body: {
      headers: null,
      timeoutMs: null,
      filter: null,
      rotationOverlapMs: null,
      rateLimit: null,
      onGone: null,
      template: null,
      format: "cloudevents",
    },
  });
  await service.call("updateEndpoint", { path, body: { format: null } });
  await service.call("rotateEndpointSecret", { path });
  for (let count = 2; count < 8; count++) {
    await service.call("rotateEndpointSecret", { path, body: { activeIn: "1h" } });
  }
  await service.call("rotateEndpointSecret", { path, status: 409, code: "too_many_secrets" });
  await service.call("testEndpoint", { path });
  for (const [dryRun, status] of [[true, 200], [false, 202]] as const) {
    await service.call("recoverDeliveries", { path, status, body: { since: "48h", until: "0s", dryRun } });
  }
  await deliveries(service, receiver, id);
  await service.call("deleteEndpoint", { path, status: 204 });
  const [delivery] = (await service.call("listDeliveries", { query: `endpointId=${id}` })).body.items;
  const ofDeleted = [delivery?.id ?? ""];
  await service.call("resendDelivery", { path: ofDeleted, status: 409, code: "endpoint_deleted" });
  for (const name of ["getEndpoint", "deleteEndpoint", "testEndpoint"]) await unknown(service, name);
  await unknown(service, "updateEndpoint", {});
  await unknown(service, "rotateEndpointSecret", {});
  await unknown(service, "recoverDeliveries", { since: "1h", until: "0s" });
}

async function deliveries(
  service: OpenApiService,
  receiver: WebhookReceiver,
  endpointId: string,
): Promise<void> {
  receiver.react = ({ body }) => body.includes("fail") ? 500 : 200;
  const post = (data: unknown) =>
    service.call("postEvent", { status: 202, body: { event: "agent.done", data } });
  await post({ good: true });
  const failed = (await post({ fail: true })).body;
  await until("both deliveries to be attempted", async () => {
    const { items } = (await api(service.http, `/deliveries?endpointId=${endpointId}`)).body;
    const states = items.map(({ state }) => state);
    return states.includes("acknowledged") && states.includes("retrying");
  });
  const { items } = (await service.call("listDeliveries", { query: "state=retrying&event=agent.done" })).body;
  const path = [items[0]?.id ?? ""];
  await service.call("getDelivery", { path });
  await service.call("getDeliveryRequests", { path });
  await service.call("listEndpointAttempts", { path: [endpointId] });
  await service.call("resendDelivery", { path, status: 202 });
  await service.call("updateEndpoint", { path: [endpointId], body: { enabled: false } });
  await service.call("resendDelivery", { path, status: 202 });
  await service.call("updateEndpoint", { path: [endpointId], body: { enabled: true } });
  for (const id of ["pauseDeliveries", "getDeliveryPause", "resumeDeliveries"]) await service.call(id);
  await service.call("listDeliveries", { query: `eventId=${failed.id}` });
  await service.call("listEvents", { query: "event=agent.done" });
  await service.call("getEvent", { path: [failed.id] });
  await service.call("explainEvent", { path: [failed.id], query: `endpointId=${endpointId}` });
  const toEndpoint = `endpointId=${endpointId}`;
  const missing = { path: [UNKNOWN], query: toEndpoint, status: 404, code: "not_found" };
  await service.call("explainEvent", missing);
  await service.call("eraseEventPayload", { path: [failed.id], status: 204 });
  await service.call("getEvent", { path: [failed.id] });
  await service.call("getDelivery", { path });
  await service.call("resendDelivery", { path, status: 409, code: "payload_erased" });
  const unknownTo = ["getDelivery", "getDeliveryRequests", "resendDelivery", "getEvent", "eraseEventPayload"];
  for (const name of [...unknownTo, "listEndpointAttempts"]) {
    await unknown(service, name);
  }
}

async function events(service: OpenApiService): Promise<void> {
  const { id, key } =
    (await service.call("createEventKey", { status: 201, body: { name: "desk", kinds: ["desk.*"] } })).body;
  await service.call("listEventKeys");
  await service.call("getEventKey", { path: [id] });
  const post = { token: key, body: { event: "desk.done", data: {} }, headers: { "idempotency-key": "one" } };
  await service.call("postEvent", { ...post, status: 202 });
  const { headers } = await service.call("postEvent", {
    ...post,
    status: 202,
    body: { event: "desk.done", data: { a: 1 } },
  });
  assertEquals([headers.get("idempotency-replayed"), headers.get("idempotency-body-mismatch")], [
    "true",
    "true",
  ]);
  await service.call("postEvent", {
    ...post,
    status: 400,
    code: "invalid_idempotency_key",
    headers: { "idempotency-key": "" },
  });
  for (
    const [event, code] of [["order.created", "kind_not_allowed"], ["workflow.a", "reserved_kind"]] as const
  ) {
    await service.call("postEvent", { token: key, status: 403, code, body: { event, data: {} } });
  }
  await service.call("deleteEventKey", { path: [id], status: 204 });
  for (const name of ["getEventKey", "deleteEventKey"]) await unknown(service, name);
}

async function workflows(service: OpenApiService): Promise<void> {
  const { items: [first], nextCursor } = (await service.call("listWorkflows", { query: "limit=1" })).body;
  const { items } = (await service.call("listWorkflows", { query: `cursor=${nextCursor}` })).body;
  assertEquals([first?.id, items.map(({ id }) => id)], ["echo", ["stuck"]]);
  await service.call("getWorkflow", { path: ["echo"] });
  await unknown(service, "getWorkflow");
}

async function executions(service: OpenApiService): Promise<void> {
  const { key } =
    (await service.call("createTrigger", { status: 201, body: { name: "stuck", workflow: "stuck" } })).body;
  const { body } = await service.call("callTrigger", {
    status: 202,
    path: ["stuck"],
    token: key,
    body: { a: 1 },
  });
  const path = [String(body["executionId"])];
  const place = `/executions/${path[0]}`;
  await until("a step to wait", async () => {
    const { currentStep } = (await api(service.http, place)).body;
    return JSON.stringify(currentStep ?? {}).includes("nextAttemptAt");
  });
  await service.call("getExecution", { path });
  const rerun = { path, headers: { "idempotency-key": "again" } };
  await service.call("rerunExecution", { ...rerun, status: 409, code: "not_ended" });
  await service.call("cancelExecution", { path, status: 202 });
  await until("its end", async () => (await api(service.http, place)).body.status === "cancelled");
  await service.call("cancelExecution", { path, status: 409, code: "already_ended" });
  await service.call("rerunExecution", { ...rerun, status: 202 });
  await service.call("rerunExecution", { ...rerun, status: 202 });
  const noKey = { "idempotency-key": "" };
  const wrongKey = { path, status: 400, code: "invalid_idempotency_key", headers: noKey };
  await service.call("rerunExecution", wrongKey);
  await service.withoutWorkflow("stuck", async () => {
    await service.call("rerunExecution", { path, status: 503, code: "workflow_unavailable" });
  });
  await until("a success", async () => {
    return (await api(service.http, "/executions?state=succeeded")).body.items.length > 0;
  });
  const [done] = (await service.call("listExecutions", { query: "state=succeeded" })).body.items;
  await service.call("getExecution", { path: [done?.id ?? ""] });
  for (const name of ["getExecution", "cancelExecution", "rerunExecution"]) await unknown(service, name);
}
