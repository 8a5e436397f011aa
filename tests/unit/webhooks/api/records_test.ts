import { assertEquals, assertMatch } from "#assert";
import type { ExecutionChange } from "../../../../src/webhooks/model/completion_event.ts";
import { claimOne, claimRuns, finish, retryAt } from "../../../contract/webhook_store_bed.ts";
import { type Body, WebhookBed } from "../../../harness/webhook_service_fixture.ts";
import { voidClaims } from "../../../../src/webhooks/store/operations/claims.ts";
import { findDelivery } from "../../../../src/webhooks/store/operations/deliveries.ts";
import { commitExecution } from "../../../../src/webhooks/store/operations/executions.ts";
import { findTrigger } from "../../../../src/webhooks/store/operations/triggers.ts";

Deno.test("triggers: one that is made shows its key there alone", async () => {
  await using bed = await WebhookBed.open();
  const { key, id, ...rest } = await bed.trigger();
  assertMatch(key, /^svct_[A-Za-z0-9_-]{43}$/);
  const shown = { id, ...rest } as object;
  const { body: list } = await bed.call("GET", "/triggers");
  assertEquals(list.items as unknown, [shown]);
  assertEquals((await bed.call("GET", `/triggers/${id}`)).body as object, shown);
  assertEquals(rest.keys.map(({ lastFour }) => lastFour), [key.slice(-4)]);
  assertEquals([rest.name, rest["workflow"], rest["enabled"], rest["requireIdempotencyKey"]], [
    "order-intake",
    "order-intake",
    true,
    false,
  ]);
  assertEquals([rest["onBodyMismatch"], rest["onLimitError"], rest["limit"]], ["replay", "deny", undefined]);
  assertEquals(`${JSON.stringify(list)} ${bed.log.join("")}`.includes(key), false);
  const taken = await bed.call("POST", "/triggers", { name: "order-intake", workflow: "x" });
  assertEquals([taken.status, taken.body.code, taken.body.field], [409, "name_taken", "name"]);
});

Deno.test("triggers: a refusal names the field, also inside of a limit", async () => {
  await using bed = await WebhookBed.open();
  const good = { name: "a", workflow: "w" };
  const table: [object, string][] = [
    [{ workflow: "w" }, "name"],
    [{ ...good, name: "-a" }, "name"],
    [{ ...good, name: "a".repeat(65) }, "name"],
    [{ ...good, key: "svct_mine" }, "key"],
    [{ ...good, limit: { descriptors: [{ a: "b" }] } }, "limit.domain"],
    [{ ...good, limit: { domain: "edge", descriptors: [] } }, "limit.descriptors"],
    [{ ...good, limit: { domain: "edge", descriptors: [{}] } }, "limit.descriptors[0]"],
    [{ ...good, limit: { domain: "edge", descriptors: [{ a: 1 }] } }, "limit.descriptors[0].a"],
    [{ ...good, limit: { domain: "edge", descriptors: [{ a: "{{ env.X }}" }] } }, "limit.descriptors[0].a"],
  ];
  for (const [sent, field] of table) {
    const { status, body } = await bed.call("POST", "/triggers", sent);
    assertEquals([status, body.code, body.field], [422, "invalid_field", field], JSON.stringify(sent));
  }
  assertEquals((await bed.call("POST", "/triggers", { ...good, name: "a".repeat(64) })).status, 201);
});

Deno.test("triggers: an edit, two keys at the same time, one revoked", async () => {
  await using bed = await WebhookBed.open();
  const { id, key, keys: [first] } = await bed.trigger();
  const limit = { domain: "edge", descriptors: [{ a: "b" }] };
  const edited = await bed.call("PATCH", `/triggers/${id}`, { workflow: "other", limit, enabled: false });
  assertEquals([edited.status, edited.body["workflow"], edited.body["limit"], edited.body["enabled"]], [
    200,
    "other",
    limit,
    false,
  ]);
  const bare = await bed.call("PATCH", `/triggers/${id}`, {
    limit: null,
    enabled: true,
    workflow: "order-intake",
  });
  assertEquals(bare.body["limit"], undefined);
  const inOrder = '{"domain":"edge","descriptors":[{"tier":"gold","7":"a"},{"__proto__":"p"}]}';
  const sent = inOrder.replace('"gold"', ' "silver", "\\u0074ier": "gold"');
  const ordered = await bed.call("PATCH", `/triggers/${id}`, `{"limit": ${sent}}`);
  assertEquals([ordered.status, (await bed.store.read(findTrigger, id))?.limit], [200, inOrder]);
  assertEquals((await bed.call("PATCH", `/triggers/${id}`, { name: "x" })).body.field, "name");
  assertEquals((await bed.call("PATCH", "/triggers/none", { enabled: true })).status, 404);
  const rotated = await bed.call("POST", `/triggers/${id}/rotate`);
  assertEquals([rotated.status, rotated.body.keys.length], [200, 2]);
  assertEquals([(await bed.start(key, {})).status, (await bed.start(rotated.body.key, {})).status], [
    202,
    202,
  ]);
  assertEquals((await bed.call("DELETE", `/triggers/${id}/keys/${first?.id}`)).status, 204);
  assertEquals([(await bed.start(key, {})).status, (await bed.start(rotated.body.key, {})).status], [
    401,
    202,
  ]);
  assertEquals((await bed.call("DELETE", `/triggers/${id}/keys/${first?.id}`)).status, 404);
  assertEquals((await bed.call("POST", "/triggers/none/rotate")).status, 404);
});

Deno.test("triggers: deleting one drops its keys of both kinds", async () => {
  await using bed = await WebhookBed.open();
  const { id, key } = await bed.trigger();
  const first = await bed.start(key, {}, { idempotencyKey: "k" });
  assertEquals((await bed.call("DELETE", `/triggers/${id}`)).status, 204);
  assertEquals((await bed.call("DELETE", `/triggers/${id}`)).status, 404);
  assertEquals((await bed.start(key, {})).status, 401);
  const again = await bed.trigger();
  const anew = await bed.start(again.key, {}, { idempotencyKey: "k" });
  assertEquals(anew.body.executionId === first.body.executionId, false);
  assertEquals((await bed.call("GET", `/executions/${first.body.executionId}`)).status, 200);
});

Deno.test("event keys: made, listed, deleted", async () => {
  await using bed = await WebhookBed.open();
  const made = await bed.call("POST", "/event-keys", { name: "agent", kinds: ["agent.*"] });
  const { key, ...rest } = made.body;
  assertEquals(made.status, 201);
  assertMatch(key, /^svce_[A-Za-z0-9_-]{43}$/);
  assertEquals((await bed.call("GET", "/event-keys")).body.items as unknown, [rest]);
  for (
    const [sent, field] of [[{ kinds: ["*"] }, "name"], [{ name: " ", kinds: ["*"] }, "name"], [
      { name: "a" },
      "kinds",
    ]]
  ) {
    assertEquals((await bed.call("POST", "/event-keys", sent)).body.field, field);
  }
  assertEquals((await bed.call("DELETE", `/event-keys/${rest.id}`)).status, 204);
  assertEquals((await bed.call("DELETE", `/event-keys/${rest.id}`)).status, 404);
});

Deno.test("events: a payload is erased, the audit log stays", async () => {
  await using bed = await WebhookBed.open();
  await bed.call("POST", "/endpoints", { url: "https://example.com/" });
  const { body: { id } } = await bed.post({ event: "a", data: { secret: 1 } });
  assertEquals((await bed.call("DELETE", `/events/${id}/payload`)).status, 204);
  assertEquals((await bed.call("DELETE", `/events/${id}/payload`)).status, 204);
  assertEquals((await bed.call("DELETE", "/events/none/payload")).status, 404);
  const { body } = await bed.call("GET", `/events/${id}`);
  assertEquals([body["event"], body["isErased"], body["data"]], ["a", true, undefined]);
  const [delivery] = (await bed.call("GET", "/deliveries")).body.items;
  assertEquals([delivery?.state, delivery?.["reason"]], ["failed", "payload_erased"]);
  const resent = await bed.call("POST", `/deliveries/${delivery?.id}/resend`);
  assertEquals([resent.status, resent.body.code], [409, "payload_erased"]);
});

Deno.test("deliveries: what they show, and asking for one by hand", async () => {
  await using bed = await WebhookBed.open();
  const { body: endpoint } = await bed.call("POST", "/endpoints", { url: "https://example.com/" });
  const { body: event } = await bed.post({ event: "a.b", data: {} });
  await bed.post({ event: "a.b", data: {} });
  const [listed, ...others] = (await bed.call("GET", `/deliveries?eventId=${event.id}`)).body.items;
  assertEquals(others, []);
  const { body: one } = await bed.call("GET", `/deliveries/${listed?.id}`);
  assertEquals(one, listed as Body);
  assertEquals([one["endpointId"], one["eventId"], one["event"], one.state, one["attempts"]], [
    endpoint.id,
    event.id,
    "a.b",
    "attempting",
    [],
  ]);
  assertEquals(Date.parse(String(one["nextAttemptAt"])), bed.clock.now());
  assertEquals(typeof one["why"] === "string" && one["why"] !== "", true);
  const asked = await bed.call("POST", `/deliveries/${one.id}/resend`);
  assertEquals([asked.status, asked.body as object], [202, { id: one.id }]);
  assertEquals((await bed.store.read(findDelivery, one.id))?.delivery.resendAt, bed.clock.now());
  assertEquals((await bed.call("GET", "/deliveries/none")).status, 404);
  assertEquals((await bed.call("POST", "/deliveries/none/resend")).status, 404);
});

Deno.test("deliveries: the cause of the last attempt, without the response", async () => {
  await using bed = await WebhookBed.open();
  const { body: endpoint } = await bed.call("POST", "/endpoints", { url: "https://example.com/" });
  await bed.post({ event: "a", data: {} });
  const now = bed.clock.now();
  const claimed = await claimOne(bed.store, endpoint, now);
  await finish(bed.store, claimed, retryAt(now + 30_000), {
    result: "failed",
    finishedAt: now,
    status: 401,
    errorKind: "status",
    error: "the receiver responded with 401",
    response: "who are you?",
  });
  const { body: { items: [item] } } = await bed.call("GET", "/deliveries");
  assertMatch(
    String(item?.["why"]),
    /^the next attempt starts at .*; last attempt: the endpoint returned 401$/,
  );
});

Deno.test("executions: shown, and cancelled once", async () => {
  await using bed = await WebhookBed.open();
  const { key } = await bed.trigger();
  const { body: { executionId: id } } = await bed.start(key, {});
  const { body: one } = await bed.call("GET", `/executions/${id}`);
  assertEquals([one.id, one["workflow"], one["status"], one["steps"]], [id, "order-intake", "queued", []]);
  assertEquals((await bed.call("GET", "/executions?state=queued")).body.items.length, 1);
  assertEquals((await bed.call("GET", "/executions?state=running")).body.items.length, 0);
  assertEquals((await bed.call("POST", `/executions/${id}/cancel`)).status, 202);
  assertEquals((await bed.call("GET", `/executions/${id}`)).body["cancelRequested"], true);
  assertEquals((await bed.call("POST", "/executions/none/cancel")).status, 404);
});

Deno.test("executions: one that runs shows the step that it works on or waits for", async () => {
  await using bed = await WebhookBed.open();
  const { key } = await bed.trigger();
  const { body: { executionId: id } } = await bed.start(key, {});
  const shown = async () => (await bed.call("GET", `/executions/${id}`)).body;
  assertEquals((await shown())["currentStep"], undefined);
  const now = bed.clock.now();
  const commit = async (error: string | undefined, part: Partial<ExecutionChange> = {}) => {
    const [claimed] = await claimRuns(bed.store, { now });
    const { claimId = "" } = claimed ?? {};
    const change = {
      status: "running",
      stepAttempts: 2,
      startedAt: now,
      dueAt: now,
      error,
      ...part,
    } as const;
    const keepClaim = error === undefined;
    await bed.store.write(commitExecution, { executionId: id, claimId, now, change, keepClaim });
  };
  const step = { name: "result", kind: "set", attempt: 3 };
  await commit("the server responded with 503");
  const nextAttemptAt = new Date(now).toISOString();
  const waiting = await shown();
  assertEquals([waiting["currentStep"], waiting["error"]], [
    { ...step, lastError: "the server responded with 503", nextAttemptAt },
    undefined,
  ]);
  await commit(undefined);
  assertEquals((await shown())["currentStep"], step);
  await bed.store.write(voidClaims, { now, which: "all" });
  await commit("its end", { status: "failed", finishedAt: now, dueAt: undefined });
  const ended = await shown();
  assertEquals([ended["currentStep"], ended["error"]], [undefined, "its end"]);
});

Deno.test("lists: pages stay right while rows arrive", async () => {
  await using bed = await WebhookBed.open();
  const post = async (n: number) => (await bed.post({ event: "a", data: { n } })).body.id;
  const ids: string[] = [];
  for (let n = 0; n < 7; n++) ids.unshift(await post(n));
  const seen: string[] = [];
  let cursor: string | undefined = "";
  while (cursor !== undefined) {
    const from: string = cursor === "" ? "" : `&cursor=${cursor}`;
    const { body }: { body: Body } = await bed.call("GET", `/events?limit=3${from}`);
    seen.push(...body.items.map(({ id }) => id));
    await post(100);
    cursor = body.nextCursor;
  }
  assertEquals(seen, ids);
});

Deno.test("lists: parameters of another list, unknown and repeated ones are refused", async () => {
  await using bed = await WebhookBed.open();
  const table: [string, string | undefined][] = [
    [
      "/deliveries?state=failed&event=a&endpointId=3b241101-e2bb-4255-8caf-4136c566a962&since=2026-01-01T00:00:00Z&until=2026-01-02T00:00:00Z",
      undefined,
    ],
    ["/events?eventId=3b241101-e2bb-4255-8caf-4136c566a962", "eventId"],
    ["/triggers?endpointId=3b241101-e2bb-4255-8caf-4136c566a962", "endpointId"],
    ["/deliveries?colour=red", "colour"],
    ["/deliveries?limit=1&limit=2", "limit"],
    ["/endpoints?state=failed", "state"],
  ];
  for (const [target, field] of table) {
    const { status, body } = await bed.call("GET", target);
    assertEquals([status, body.field], [field === undefined ? 200 : 422, field], target);
  }
});

Deno.test("administration: paths and methods that are not there, bodies that are none", async () => {
  await using bed = await WebhookBed.open();
  assertEquals((await bed.call("GET", "/nothing")).status, 404);
  assertEquals((await bed.call("GET", "/endpoints/")).status, 404);
  const wrong = await bed.call("PUT", "/endpoints");
  assertEquals([wrong.status, wrong.body.code, wrong.headers["allow"]], [
    405,
    "method_not_allowed",
    "POST, GET",
  ]);
  assertEquals((await bed.call("POST", "/endpoints")).body.code, "malformed_json");
  assertEquals((await bed.call("POST", "/endpoints", "{")).body.code, "malformed_json");
  assertEquals((await bed.call("POST", "/endpoints", "[]")).body.code, "not_an_object");
});
