import { assertEquals } from "#assert";
import { until } from "../../../harness/until.ts";
import { type Seen, WebhookBed } from "../../../harness/webhook_service_fixture.ts";
import { findExecution, listExecutions } from "../../../../src/webhooks/store/operations/executions.ts";
import { acceptExecution } from "../../../../src/webhooks/store/operations/accept.ts";
import { releaseClaims } from "../../../../src/webhooks/store/operations/claims.ts";
import { instead, storeWith } from "../../../harness/store_double.ts";
import { StoreError } from "../../../../src/webhooks/store/store.ts";
import { codeOf } from "./refusal_fixture.ts";

const DAY_MS = 86_400_000;

Deno.test("trigger: a call makes an execution that holds the body as it came", async () => {
  await using bed = await WebhookBed.open();
  const { id, key } = await bed.trigger();
  const answer = await bed.start(key, '{"id": 12345678901234567890, "price": 1.10}');
  assertEquals(codeOf(answer), [202, "executionId"]);
  const found = await bed.store.read(findExecution, answer.body.executionId);
  assertEquals([found?.execution.input, found?.execution.triggerId, found?.execution.status], [
    '{"id": 12345678901234567890, "price": 1.10}',
    id,
    "queued",
  ]);
});

Deno.test("trigger: what is wrong is answered in the order of the checks", async () => {
  await using bed = await WebhookBed.open();
  const { key, id } = await bed.trigger({ requireIdempotencyKey: true });
  const { key: other } = await bed.trigger({ name: "other" });
  const deep = `${'{"a":'.repeat(65)}1${"}".repeat(65)}`;
  const fitting = `${'{"a":'.repeat(64)}1${"}".repeat(64)}`;
  const keyed = { idempotencyKey: "k" };
  const table: [string, Seen, unknown[]][] = [
    ["an unknown key", await bed.start("svct_unknown", "no json"), [401, "unauthorized"]],
    ["the key of another trigger", await bed.start(other, "no json"), [404, "not_found"]],
    ["a path of no trigger", await bed.start(key, "{}", { name: "none" }), [404, "not_found"]],
    ["no idempotency key", await bed.start(key, "no json"), [400, "idempotency_key_required"]],
    ["an empty body", await bed.start(key, "", keyed), [400, "malformed_json"]],
    ["no JSON", await bed.start(key, "{", keyed), [400, "malformed_json"]],
    ["deep and no JSON", await bed.start(key, deep.slice(0, -1), keyed), [400, "malformed_json"]],
    ["a list", await bed.start(key, "[]", keyed), [422, "not_an_object"]],
    ["null", await bed.start(key, "null", keyed), [422, "not_an_object"]],
    ["a number", await bed.start(key, "1", keyed), [422, "not_an_object"]],
    ["too deep", await bed.start(key, deep, keyed), [422, "too_deep"]],
    ["as deep as may be", await bed.start(key, fitting, { idempotencyKey: "deep" }), [202, "executionId"]],
  ];
  for (const [what, answer, expected] of table) assertEquals(codeOf(answer), expected, what);
  await bed.call("PATCH", `/triggers/${id}`, { enabled: false });
  assertEquals(codeOf(await bed.start(key, "no json")), [403, "trigger_disabled"]);
  assertEquals(codeOf(await bed.start(key, "no json", { name: "none" })), [404, "not_found"]);
  assertEquals(
    (await bed.service.acceptTrigger({ requestId: "r", name: "order-intake", keyHash: "" })).status,
    401,
  );
  assertEquals(
    (await bed.start("svct_unknown", "{}")).headers["www-authenticate"],
    "Bearer",
  );
});

Deno.test("trigger: a call for which its condition does not hold starts nothing, and uses up no key", async () => {
  await using bed = await WebhookBed.open();
  const when = {
    "input.action": ["opened"],
    any: [{ "input.total": { greater: 10 } }, { input: { exists: true } }],
  };
  const { key, id } = await bed.trigger({ when });
  const opened = '{"action":"opened","total":11}';
  const closed = await bed.start(key, '{"action":"closed","total":11}', { idempotencyKey: "k" });
  assertEquals([closed.status, closed.body as object], [200, { filtered: true }]);
  assertEquals((await bed.store.read(listExecutions, { limit: 10 })).items, []);
  const started = await bed.start(key, opened, { idempotencyKey: "k" });
  assertEquals(codeOf(started), [202, "executionId"]);
  const called = await bed.call("POST", `/triggers/${id}/call`, { data: { action: "x" } });
  assertEquals([called.status, called.body as object], [200, { filtered: true }]);
  assertEquals(codeOf(await bed.start(key, "[]")), [422, "not_an_object"]);
  await bed.call("PATCH", `/triggers/${id}`, { when: null });
  assertEquals(codeOf(await bed.start(key, '{"action":"closed"}')), [202, "executionId"]);
});

Deno.test("trigger: a condition that cannot be read is refused, with the field", async () => {
  await using bed = await WebhookBed.open();
  const table: readonly (readonly [when: unknown, field: string])[] = [
    [{}, "when"],
    [[], "when"],
    [{ total: [1] }, "when"],
    [{ "env.TOKEN": ["x"] }, "when"],
    [{ "steps.a.b": ["x"] }, "when"],
    [{ "execution.id": ["x"] }, "when"],
    [{ "execution.headers": { exists: true } }, "when"],
    [{ "execution.headers.x-topic": ["x"] }, "when"],
    [{ "execution.headers.X-Topic": ["x"] }, "when"],
    [{ "execution.event.name": ["x"] }, "when"],
    [{ "input.total": { above: 1 } }, "when.input.total"],
    [{ any: [{ "input.total": [] }] }, "when.input.total"],
    [{ "input.text": Array.from({ length: 50 }, (_, index) => `${index}${"x".repeat(200)}`) }, "when"],
  ];
  for (const [when, field] of table) {
    const answer = await bed.call("POST", "/triggers", { name: "t", workflow: "order-intake", when });
    assertEquals(
      [answer.status, (answer.body as Record<string, unknown>)["field"]],
      [422, field],
      JSON.stringify(when),
    );
  }
});

Deno.test("trigger: a problem has one shape", async () => {
  await using bed = await WebhookBed.open();
  const { key } = await bed.trigger();
  const answer = await bed.start(key, "[]");
  assertEquals(answer.headers["content-type"], "application/problem+json");
  assertEquals(answer.body as object, {
    type: "about:blank",
    title: "Unprocessable Content",
    status: 422,
    detail: "Cannot read the body: expected a JSON object",
    code: "not_an_object",
    requestId: "request-2",
    field: "body",
  });
});

Deno.test("trigger: a thousand at the same time with one key are one execution", async () => {
  await using bed = await WebhookBed.open();
  const { key } = await bed.trigger();
  const answers = await Promise.all(
    Array.from({ length: 1_000 }, () => bed.start(key, { a: 1 }, { idempotencyKey: "same" })),
  );
  const ids = new Set(answers.map(({ status, body }) => `${status} ${body.executionId}`));
  assertEquals(ids.size, 1);
  const replayed = answers.filter(({ headers }) => headers["idempotency-replayed"] === "true");
  assertEquals(replayed.length, 999);
  assertEquals((await bed.store.read(listExecutions, { limit: 200 })).items.length, 1);
});

Deno.test("trigger: a key lives for 24 hours, whatever key of the trigger is shown", async () => {
  await using bed = await WebhookBed.open();
  const { id, key } = await bed.trigger();
  const first = await bed.start(key, { a: 1, b: 2 }, { idempotencyKey: "k" });
  const { body: { key: second } } = await bed.call("POST", `/triggers/${id}/rotate`);
  bed.clock.advance(DAY_MS - 1);
  const replay = await bed.start(second, '{"b":2,"a":1.0}', { idempotencyKey: "k" });
  const same = await bed.start(second, '{"b":2, "a":1}', { idempotencyKey: "k" });
  bed.clock.advance(1);
  const calls = Array.from({ length: 100 }, () => bed.start(key, { a: 1, b: 2 }, { idempotencyKey: "k" }));
  const anew = await Promise.all(calls);
  assertEquals([replay.status, replay.body, replay.headers["idempotency-replayed"]], [
    202,
    first.body,
    "true",
  ]);
  assertEquals([same.body, same.headers["idempotency-body-mismatch"]], [first.body, undefined]);
  const replayed = anew.filter(({ headers }) => headers["idempotency-replayed"] === "true");
  const ids = new Set(anew.map(({ body }) => body.executionId));
  assertEquals([replayed.length, ids.size, ids.has(first.body.executionId)], [99, 1, false]);
  bed.clock.advance(DAY_MS - 1);
  assertEquals(ids.has((await bed.start(key, {}, { idempotencyKey: "k" })).body.executionId), true);
});

Deno.test("trigger: another body with the same key", async () => {
  await using bed = await WebhookBed.open();
  const { id, key } = await bed.trigger();
  const first = await bed.start(key, { a: 1 }, { idempotencyKey: "k" });
  const other = await bed.start(key, { a: 2 }, { idempotencyKey: "k" });
  await bed.call("PATCH", `/triggers/${id}`, { onBodyMismatch: "reject" });
  const rejected = await bed.start(key, { a: 2 }, { idempotencyKey: "k" });
  const fine = await bed.start(key, { a: 1 }, { idempotencyKey: "k" });
  assertEquals([other.status, other.body], [202, first.body]);
  assertEquals(other.headers["idempotency-body-mismatch"], "true");
  assertEquals(codeOf(rejected), [422, "body_mismatch"]);
  assertEquals(fine.body, first.body);
  const audit = await bed.call("GET", "/audit?event=trigger.body_mismatch");
  assertEquals(audit.body.items.map(({ object }) => object), [
    `execution:${first.body.executionId}`,
    `execution:${first.body.executionId}`,
  ]);
});

Deno.test("trigger: its limit is asked once for each new run, with what the input says", async () => {
  const asked: unknown[] = [];
  let code: "OK" | "OVER_LIMIT" | "failing" = "OK";
  await using bed = await WebhookBed.open({
    limit: (domain, descriptors) => {
      asked.push([domain, descriptors]);
      if (code === "failing") return Promise.reject(new Error("no"));
      return Promise.resolve({ code, resetMs: 1_500 });
    },
  });
  const limit = {
    domain: "edge",
    descriptors: [{ customer: "{{ input.customer }}", tier: "a{{ input.n }}" }],
  };
  const { id, key } = await bed.trigger({ limit });
  const input = '{"customer":"bob","n":1.10}';
  const first = await bed.start(key, input, { idempotencyKey: "k" });
  code = "OVER_LIMIT";
  const replay = await bed.start(key, input, { idempotencyKey: "k" });
  const over = await bed.start(key, input);
  const missing = await bed.start(key, {});
  code = "failing";
  const failing = await bed.start(key, input);
  await bed.call("PATCH", `/triggers/${id}`, { onLimitError: "allow" });
  const allowed = await bed.start(key, input);
  assertEquals([first.status, replay.status, replay.body], [202, 202, first.body]);
  assertEquals([codeOf(over), over.headers["retry-after"]], [[429, "over_limit"], "2"]);
  assertEquals(codeOf(missing), [422, "limit_value_missing"]);
  assertEquals([codeOf(failing), failing.headers["retry-after"]], [[503, "limit_failed"], "1"]);
  assertEquals(allowed.status, 202);
  const one = ["edge", [[["customer", "bob"], ["tier", "a1.10"]]]];
  assertEquals(asked, [one, one, one, one]);
});

Deno.test("trigger: without its workflow it is 503, but a replay is answered", async () => {
  await using bed = await WebhookBed.open();
  const { key } = await bed.trigger();
  const first = await bed.start(key, {}, { idempotencyKey: "k" });
  bed.workflows.clear();
  const replay = await bed.start(key, {}, { idempotencyKey: "k" });
  const gone = await bed.start(key, {}, { idempotencyKey: "new" });
  bed.workflows.set("order-intake", "workflow: order-intake # again");
  const back = await bed.start(key, {}, { idempotencyKey: "new" });
  assertEquals(replay.body, first.body);
  assertEquals([codeOf(gone), gone.headers["retry-after"]], [[503, "workflow_unavailable"], "1"]);
  // What was refused has not used the key up.
  assertEquals([back.status, back.headers["idempotency-replayed"]], [202, undefined]);
});

Deno.test("trigger: a duplicate waits for the first for 5 seconds", async () => {
  const held = Promise.withResolvers<void>();
  await using bed = await WebhookBed.open({
    store: (store) =>
      storeWith(store, [
        instead(acceptExecution, async (call) => {
          await held.promise;
          return await call();
        }),
      ]),
  });
  const { key } = await bed.trigger();
  const first = bed.start(key, {}, { idempotencyKey: "k" });
  const second = bed.start(key, {}, { idempotencyKey: "k" });
  await until("the second call to wait", () => bed.clock.waiting > 0);
  bed.clock.advance(5_000);
  const late = await second;
  held.resolve();
  assertEquals([codeOf(late), late.headers["retry-after"]], [[409, "in_flight"], "1"]);
  assertEquals((await first).status, 202);
});

Deno.test("trigger: a store that fails is 503, and nothing is accepted", async () => {
  for (const code of ["busy", "full", "read_only", "failed"] as const) {
    const failing = instead(
      acceptExecution,
      () => Promise.reject(new StoreError(code, `Cannot write: ${code}`)),
    );
    await using bed = await WebhookBed.open({ store: (store) => storeWith(store, [failing]) });
    const { key } = await bed.trigger();
    const answer = await bed.start(key, {});
    assertEquals([codeOf(answer), answer.headers["retry-after"]], [[503, "store_unavailable"], "1"]);
    assertEquals((await bed.service.metrics()).problem, `Cannot write: ${code}`);
  }
});

Deno.test("trigger: a repeated call has its answer also while nothing can be written", async () => {
  let isFull = false;
  const failing = instead(
    acceptExecution,
    (call) => isFull ? Promise.reject(new StoreError("full", "the disk is full")) : call(),
  );
  await using bed = await WebhookBed.open({ store: (store) => storeWith(store, [failing]) });
  const { key } = await bed.trigger();
  const first = await bed.start(key, {}, { idempotencyKey: "k" });
  isFull = true;
  const replay = await bed.start(key, {}, { idempotencyKey: "k" });
  assertEquals([replay.status, replay.body], [202, first.body]);
  assertEquals(codeOf(await bed.start(key, {}, { idempotencyKey: "new" })), [503, "store_unavailable"]);
});

Deno.test("trigger: health fails for as long as another process locks the store, and no longer", async () => {
  let isLocked = true;
  await using bed = await WebhookBed.open({
    store(store) {
      const whereFree = <T>(call: () => Promise<T>) =>
        isLocked ? Promise.reject(new StoreError("busy", "the store is locked")) : call();
      return storeWith(store, [instead(acceptExecution, whereFree), instead(releaseClaims, whereFree)]);
    },
  });
  const { key } = await bed.trigger();
  assertEquals((await bed.start(key, {})).status, 503);
  for (let second = 0; second < 12; second++) {
    assertEquals((await bed.service.metrics()).problem, "the store is locked", `after ${second} s`);
    bed.clock.advance(1_000);
  }
  isLocked = false;
  assertEquals((await bed.service.metrics()).problem, undefined);
});

Deno.test("trigger: once the service stops it is 503", async () => {
  const bed = await WebhookBed.open();
  const { key } = await bed.trigger();
  await bed.service.stop(0);
  const answer = await bed.start(key, {});
  assertEquals([codeOf(answer), answer.headers["retry-after"]], [[503, "shutting_down"], "1"]);
  await Deno.remove(bed.folder, { recursive: true });
});
