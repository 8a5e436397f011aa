import { assertEquals } from "#assert";
import { findExecution, listExecutions } from "../../../../src/webhooks/store/operations/executions.ts";
import { type Seen, WebhookBed } from "../../../harness/webhook_service_fixture.ts";
import { codeOf } from "./refusal_fixture.ts";

Deno.test("test call: by id or name it starts the workflow without the key, and is audited", async () => {
  await using bed = await WebhookBed.open();
  const { id } = await bed.trigger();
  const executions = [];
  for (const place of [id, "order-intake"]) {
    const answer = await bed.call("POST", `/triggers/${place}/call`, '{"data":{"n": 12345678901234567890}}');
    assertEquals(codeOf(answer), [202, "executionId"]);
    const found = await bed.store.read(findExecution, answer.body.executionId);
    assertEquals([found?.execution.triggerId, found?.execution.input], [id, '{"n": 12345678901234567890}']);
    executions.push(answer.body.executionId);
  }
  const { body: { items } } = await bed.call("GET", "/audit?event=trigger.called");
  assertEquals(
    items.map(({ actor, object, details }) => [actor, object, details]),
    executions.toReversed().map((executionId) => [
      "admin",
      `trigger:${id}`,
      { name: "order-intake", executionId },
    ]),
  );
});

Deno.test("test call: an Idempotency-Key is the same as in a call with the key", async () => {
  await using bed = await WebhookBed.open();
  const { key } = await bed.trigger({ onBodyMismatch: "reject" });
  const test = (data: unknown) => bed.call("POST", "/triggers/order-intake/call", { data }, undefined, "k");
  const first = await bed.start(key, { a: 1 }, { idempotencyKey: "k" });
  const replay = await test({ a: 1 });
  const other = await test({ a: 2 });
  assertEquals([replay.body, replay.headers["idempotency-replayed"]], [first.body, "true"]);
  assertEquals(codeOf(other), [422, "body_mismatch"]);
  assertEquals((await bed.call("GET", "/audit?event=trigger.called")).body.items, []);
  const { items } = (await bed.call("GET", "/audit?event=trigger.body_mismatch")).body;
  assertEquals(items.map(({ actor }) => actor), ["admin"]);
  assertEquals((await bed.store.read(listExecutions, { limit: 9 })).items.length, 1);
});

Deno.test("test call: what a call with the key is refused for, and wrong input", async () => {
  let isOver = false;
  await using bed = await WebhookBed.open({
    limit: () => Promise.resolve(isOver ? { code: "OVER_LIMIT", resetMs: 1_500 } : { code: "OK" }),
  });
  const limit = { domain: "edge", descriptors: [{ customer: "{{ input.customer }}" }] };
  const { id } = await bed.trigger({ limit });
  await bed.trigger({ name: "strict", requireIdempotencyKey: true });
  await bed.trigger({ name: "lost", workflow: "lost" });
  await bed.trigger({ name: "off", enabled: false });
  const test = (name: string, body: unknown, key?: string) =>
    bed.call("POST", `/triggers/${name}/call`, body, undefined, key);
  const fine = { data: { customer: "bob" } };
  const deep = `{"data":${'{"a":'.repeat(64)}1${"}".repeat(64)}}`;
  const table: [string, Seen, unknown[]][] = [
    ["no such trigger", await test("none", fine), [404, "not_found"]],
    ["a disabled one", await test("off", fine), [403, "trigger_disabled"]],
    ["a lost workflow", await test("lost", fine), [503, "workflow_unavailable"]],
    ["no key where one is required", await test("strict", fine), [400, "idempotency_key_required"]],
    ["a wrong key", await test("strict", fine, ""), [400, "invalid_idempotency_key"]],
    ["a value of the limit is missing", await test(id, { data: {} }), [422, "limit_value_missing"]],
    ["no body", await test(id, undefined), [400, "malformed_json"]],
    ["no data", await test(id, {}), [422, "invalid_field"]],
    ["data is a list", await test(id, { data: [] }), [422, "invalid_field"]],
    ["an unknown field", await test(id, { ...fine, key: "k" }), [422, "invalid_field"]],
    ["too deep", await test(id, deep), [422, "too_deep"]],
  ];
  for (const [what, answer, expected] of table) assertEquals(codeOf(answer), expected, what);
  isOver = true;
  assertEquals(codeOf(await test(id, fine)), [429, "over_limit"]);
  assertEquals((await bed.store.read(listExecutions, { limit: 9 })).items, []);
  assertEquals((await bed.call("GET", "/audit?event=trigger.called")).body.items, []);
});

Deno.test("test call: the kind of event is given, or named by the header of the provider", async () => {
  await using bed = await WebhookBed.open();
  await bed.trigger({ name: "hub", verify: { scheme: "github" }, when: { "execution.event": ["push"] } });
  const test = async (fields: object) => {
    const answer = await bed.call("POST", "/triggers/hub/call", { data: {}, ...fields });
    const found = await bed.store.read(findExecution, answer.body.executionId ?? "");
    return [answer.status, found?.execution.event ?? answer.body.field ?? "nothing"];
  };
  assertEquals(await test({ event: "push" }), [202, "push"]);
  assertEquals(await test({ headers: { "X-GitHub-Event": "push" } }), [202, "push"]);
  assertEquals(await test({ event: "push", headers: { "x-github-event": "issues" } }), [202, "push"]);
  assertEquals(await test({ event: "issues" }), [200, "nothing"]);
  assertEquals(await test({}), [200, "nothing"]);
  assertEquals(await test({ event: "" }), [422, "event"]);
  assertEquals(await test({ event: "x".repeat(129) }), [422, "event"]);
  assertEquals(await test({ headers: { "x y": "push" } }), [422, "headers"]);
});

Deno.test("test call: a condition reads the headers that the trigger passes, in lower case", async () => {
  await using bed = await WebhookBed.open();
  const when = { "execution.headers.x-topic": ["orders"] };
  const { id } = await bed.trigger({ when, passHeaders: ["X-Topic"] });
  const test = async (headers: object) =>
    (await bed.call("POST", `/triggers/${id}/call`, { data: {}, headers })).status;
  assertEquals(
    [
      await test({ "X-Topic": "orders" }),
      await test({ "x-topic": "users" }),
      await test({ "x-other": "orders" }),
    ],
    [202, 200, 200],
  );
  const patch = async (change: object) => {
    const { status, body } = await bed.call("PATCH", `/triggers/${id}`, change);
    return [status, body.field ?? "none"];
  };
  assertEquals(await patch({ passHeaders: ["X-Other"] }), [422, "when"]);
  assertEquals(await patch({ passHeaders: null }), [422, "when"]);
  assertEquals(await patch({ when: { "execution.headers.x-other": ["orders"] } }), [422, "when"]);
  const any = [{ "input.a": [1] }, { "execution.headers.x-other": ["orders"] }];
  assertEquals(await patch({ when: { any } }), [422, "when"]);
  assertEquals(await patch({ when: { any }, passHeaders: ["x-other"] }), [200, "none"]);
  assertEquals([await test({ "X-Topic": "orders" }), await test({ "X-Other": "orders" })], [200, 202]);
  assertEquals(await patch({ when: null, passHeaders: null }), [200, "none"]);
  assertEquals(await test({}), 202);
});
