import { assertEquals } from "#assert";
import type { OpenApiService } from "../../harness/openapi_service.ts";
import { PROVIDER_HEADERS } from "../../harness/provider_signatures.ts";

/** The identifier of no record. */
export const UNKNOWN = "6bdb9dc3-e8f4-42fc-90e4-9ff087fde12f";

/** Calls the operations of triggers. */
export async function triggers(service: OpenApiService): Promise<void> {
  const limit = { domain: "shop", descriptors: [{ account: "{{ input.who }}" }] };
  const fields = { requireIdempotencyKey: true, onBodyMismatch: "reject", limit };
  const body = { name: "strict", workflow: "echo", ...fields };
  const { id, key } = (await service.call("createTrigger", { status: 201, body })).body;
  await service.call("createTrigger", { status: 409, code: "name_taken", body });
  await service.call("listTriggers");
  await service.call("getTrigger", { path: [id] });
  await strictCalls(service, key);
  await testCalls(service);
  await service.call("updateTrigger", { path: [id], body: { limit: null, workflow: "lost" } });
  const path = ["strict"];
  const keyed = { path, token: key, body: {}, headers: { "idempotency-key": "later" } };
  await service.call("callTrigger", { ...keyed, status: 503, code: "workflow_unavailable" });
  const tested = { path, body: { data: {} }, headers: keyed.headers };
  const when = {
    "input.total": { greater: 1, notEqual: 2 },
    any: [{ "input.a": [1] }, { "execution.event": ["x"] }],
  };
  await service.call("updateTrigger", { path: [id], body: { when } });
  await service.call("callTrigger", keyed);
  await service.call("testTrigger", tested);
  const named = { ...tested.body, event: "push", headers: { "x-a": "b" } };
  await service.call("testTrigger", { ...tested, body: named });
  await service.call("updateTrigger", { path: [id], body: { when: null } });
  await service.call("testTrigger", { ...tested, status: 503, code: "workflow_unavailable" });
  await service.call("updateTrigger", { path: [id], body: { enabled: false } });
  await service.call("callTrigger", { ...keyed, status: 403, code: "trigger_disabled" });
  await service.call("testTrigger", { ...tested, status: 403, code: "trigger_disabled" });
  const plain = await keyOf(service);
  await service.call("callTrigger", { path, token: plain, body: {}, status: 404, code: "not_found" });
  const { keyId } = (await service.call("rotateTriggerKey", { path: [id] })).body;
  await service.call("revokeTriggerKey", { path: [id, String(keyId)], status: 204 });
  await service.call("revokeTriggerKey", { path: [id, UNKNOWN], status: 404, code: "not_found" });
  await signedTriggers(service);
  await otherBodies(service);
  await checks(service);
  await service.call("deleteTrigger", { path: [id], status: 204 });
  for (const name of ["getTrigger", "deleteTrigger", "rotateTriggerKey"]) await unknown(service, name);
  await unknown(service, "updateTrigger", {});
  await unknown(service, "updateTrigger", { enabled: true });
}

async function strictCalls(service: OpenApiService, token: string): Promise<void> {
  let count = 0;
  const call = async (status: number, code: string, body: unknown, key = `key ${++count}`) =>
    await service.call("callTrigger", {
      status,
      path: ["strict"],
      token,
      body,
      headers: key === "none" ? {} : { "idempotency-key": key },
      ...(code === "" ? {} : { code }),
    });
  await call(202, "", { who: "carol", total: 1 }, "same");
  await call(202, "", { total: 1, who: "carol" }, "same");
  await call(422, "body_mismatch", { who: "dora" }, "same");
  await call(400, "idempotency_key_required", {}, "none");
  await call(400, "invalid_idempotency_key", {}, "x".repeat(256));
  await call(422, "limit_value_missing", {});
  await call(422, "limit_value_too_long", { who: "x".repeat(9_000) });
  for (let used = 1; used < 5; used++) await call(202, "", { who: "carol" });
  await call(429, "over_limit", { who: "carol" });
}

/** Calls of the trigger of `strictCalls`, whose limit is used up. */
async function testCalls(service: OpenApiService): Promise<void> {
  const call = (status: number, code: string, data: unknown, key?: string) =>
    service.call("testTrigger", {
      status,
      path: ["strict"],
      body: { data },
      ...(key === undefined ? {} : { headers: { "idempotency-key": key } }),
      ...(code === "" ? {} : { code }),
    });
  await call(202, "", { who: "eve" }, "tested");
  await call(202, "", { who: "eve" }, "tested");
  await call(422, "body_mismatch", {}, "tested");
  await call(400, "idempotency_key_required", {});
  await call(400, "invalid_idempotency_key", {}, "");
  await call(422, "limit_value_missing", {}, "t1");
  await call(422, "limit_value_too_long", { who: "x".repeat(9_000) }, "t2");
  await call(429, "over_limit", { who: "carol" }, "t3");
  await unknown(service, "testTrigger", { data: {} });
}

async function signedTriggers(service: OpenApiService): Promise<void> {
  const body = { name: "signed", workflow: "echo", verify: { scheme: "github" } };
  const { id, secret } = (await service.call("createTrigger", { status: 201, body })).body;
  await service.call("getTrigger", { path: [id] });
  const text = "{}";
  const headers = PROVIDER_HEADERS.github({ secret: String(secret), body: text });
  const call = { path: ["signed"], token: "", body: {} };
  await service.call("callTrigger", { ...call, headers, status: 202 });
  await service.call("callTrigger", {
    ...call,
    headers: { ...headers, "x-github-event": "ping" },
    status: 202,
  });
  await service.call("callTrigger", { ...call, status: 401, code: "unauthorized" });
  const { secretId } = (await service.call("rotateTriggerKey", { path: [id] })).body;
  await service.call("revokeTriggerSecret", { path: [id, String(secretId)], status: 204 });
  await service.call("revokeTriggerSecret", { path: [id, UNKNOWN], status: 404, code: "not_found" });
}

async function otherBodies(service: OpenApiService): Promise<void> {
  const fields = { accept: ["form", "array", "text"], answer: 201, passHeaders: ["X-Topic"] };
  const { id, key } = (await service.call("createTrigger", {
    status: 201,
    body: { name: "forms", workflow: "echo", ...fields },
  })).body;
  const called = { path: ["forms"], token: key };
  const form = { "content-type": "application/x-www-form-urlencoded", "x-topic": "a" };
  const { body } = await service.call("callTrigger", { ...called, status: 201, headers: form, body: "a=1" });
  await service.call("getExecution", { path: [String(body["executionId"])] });
  await service.call("updateTrigger", { path: [id], body: { answer: 200 } });
  await service.call("callTrigger", { ...called, body: "[1]" });
  await service.call("updateTrigger", {
    path: [id],
    body: { accept: null, answer: null, passHeaders: null },
  });
}

async function checks(service: OpenApiService): Promise<void> {
  const challengeToken = "a verify token of words";
  const fields = { challenge: "meta", challengeToken, probe: true };
  await service.call("createTrigger", {
    status: 201,
    body: { name: "checked", workflow: "echo", ...fields },
  });
  const query = new URLSearchParams({
    "hub.mode": "subscribe",
    "hub.challenge": "1158201444",
    "hub.verify_token": challengeToken,
  }).toString();
  const anyone = { path: ["checked"], token: "" };
  const { body } = await service.call("checkTrigger", { ...anyone, query });
  assertEquals(String(body), "1158201444");
  await service.call("checkTrigger", {
    ...anyone,
    query: query.replace("words", "letters"),
    status: 405,
    code: "method_not_allowed",
  });
  await service.call("probeTrigger", anyone);
  const verify = { scheme: "hmac-sha256", header: "x-hub-signature-256", prefix: "sha256=" };
  const slack = { name: "challenged", workflow: "echo", verify, challenge: "slack" };
  const { secret } = (await service.call("createTrigger", { status: 201, body: slack })).body;
  const check = { type: "url_verification" };
  const headers = PROVIDER_HEADERS.github({ secret: String(secret), body: JSON.stringify(check) });
  const invalid = { status: 422, code: "invalid_challenge" };
  await service.call("callTrigger", { path: ["challenged"], token: "", body: check, headers, ...invalid });
}

/** A key of a trigger without further fields. */
export async function keyOf(service: OpenApiService): Promise<string> {
  const { items } = (await service.call("listTriggers")).body;
  const plain = items.find((one) => one["name"] === "plain");
  return plain === undefined
    ? (await service.call("createTrigger", { status: 201, body: { name: "plain", workflow: "echo" } })).body
      .key
    : (await service.call("rotateTriggerKey", { path: [plain.id] })).body.key;
}

/** Calls an operation for a record that does not exist. */
export async function unknown(service: OpenApiService, operationId: string, body?: unknown): Promise<void> {
  await service.call(operationId, { status: 404, code: "not_found", path: [UNKNOWN], body });
}
