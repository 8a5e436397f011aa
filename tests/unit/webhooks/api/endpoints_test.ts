import { assertEquals, assertMatch } from "#assert";
import type { EndpointCheck } from "../../../../src/webhooks/deliveries/endpoint_check.ts";
import { ADMINISTRATOR } from "../../../harness/administrators.ts";
import { WebhookBed } from "../../../harness/webhook_service_fixture.ts";

const URL_GOOD = "https://example.com/hook";
const NOON = "2026-01-01T12:00:00.000Z";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

Deno.test("endpoints: one that is made shows its secret there alone, and its headers by name", async () => {
  await using bed = await WebhookBed.open();
  const made = await bed.call("POST", "/endpoints", {
    url: URL_GOOD,
    events: ["workflow.*", "a.b", "a.b"],
    description: "for tests",
    headers: { "X-Tenant": "tenant-secret-value" },
    concurrency: 7,
    timeoutMs: 1_500,
    standardWebhooks: true,
    enabled: false,
  });
  const { secret, secrets, id, ...rest } = made.body;
  assertEquals(made.status, 201);
  assertMatch(id, UUID);
  assertMatch(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assertEquals(rest as object, {
    url: URL_GOOD,
    events: ["workflow.*", "a.b"],
    description: "for tests",
    enabled: false,
    disabledReason: "admin",
    disabledAt: NOON,
    headers: ["X-Tenant"],
    concurrency: 7,
    timeoutMs: 1_500,
    standardWebhooks: true,
    createdAt: rest["createdAt"],
    updatedAt: rest["createdAt"],
  });
  assertEquals(new Date(String(rest["createdAt"])).toISOString(), NOON);
  const { body: list } = await bed.call("GET", "/endpoints");
  const { body: one } = await bed.call("GET", `/endpoints/${id}`);
  assertEquals(list.items, [one]);
  assertEquals(one, { id, secrets, ...rest } as object as typeof one);
  for (const text of [JSON.stringify([list, one]), bed.log.join("\n")]) {
    assertEquals([text.includes(secret), text.includes("tenant-secret-value")], [false, false]);
  }
});

Deno.test("endpoints: what is not said has its default", async () => {
  await using bed = await WebhookBed.open();
  const { id: _, secret: _secret, secrets, createdAt, updatedAt, ...rest } =
    (await bed.call("POST", "/endpoints", { url: URL_GOOD })).body;
  assertEquals([(secrets as unknown[]).length, updatedAt], [1, createdAt]);
  const given = { url: URL_GOOD, events: ["*"], description: "", enabled: true, headers: [] };
  assertEquals(rest as object, { ...given, concurrency: 4, standardWebhooks: true });
});

// tests/integration/http/openapi_agreement_test.ts has every field of every body.
Deno.test("endpoints: a refusal names the field, also inside of a list or an object", async () => {
  await using bed = await WebhookBed.open();
  const table: [Record<string, unknown>, string][] = [
    [{}, "url"],
    [{ url: "http://example.com/" }, "url"],
    [{ events: ["a", "-"] }, "events[1]"],
    [{ events: [1] }, "events[0]"],
    [{ headers: { "x y": "a" } }, "headers"],
    [{ headers: { "x-y": "a\nb" } }, "headers.x-y"],
    [{ headers: { "x-y": 1 } }, "headers.x-y"],
    [{ headers: { "Host": "a" } }, "headers.Host"],
    [{ headers: { "content-type": "a" } }, "headers.content-type"],
    [{ headers: { "X-A": "a", "x-a": "b" } }, "headers.x-a"],
    [{ filter: { "customer.plan": "pro" } }, "filter.customer.plan"],
    [{ filter: { "customer.plan": [] } }, "filter.customer.plan"],
    [{ filter: { "customer.plan": [{}] } }, "filter.customer.plan"],
    [{ rateLimit: 5 }, "rateLimit"],
    [{ rateLimit: {} }, "rateLimit.unit"],
    [{ rateLimit: { unit: "fortnight", requestsPerUnit: 1 } }, "rateLimit.unit"],
    [{ rateLimit: { unit: "day", requestsPerUnit: 0 } }, "rateLimit.requestsPerUnit"],
    [{ rateLimit: { unit: "day", requestsPerUnit: 1.5 } }, "rateLimit.requestsPerUnit"],
    [{ rateLimit: { unit: "day", requestsPerUnit: 1, burst: 1 } }, "rateLimit.burst"],
    [{ rotationOverlapMs: 0 }, "rotationOverlapMs"],
    [{ onGone: "retry" }, "onGone"],
    [{ format: "xml" }, "format"],
    [{ template: "{{ event }}" }, "template"],
    [{ template: { a: "{{ input.x }}" } }, "template"],
    [{ template: {}, format: "cloudevents" }, "template"],
    [{ events: ["Workflow.*"] }, "events[0]"],
    [{ secret: "whsec_mine" }, "secret"],
  ];
  for (const [fields, field] of table) {
    const sent = Object.keys(fields).length === 0 ? {} : { url: URL_GOOD, ...fields };
    const { status, body } = await bed.call("POST", "/endpoints", sent);
    assertEquals([status, body.code, body.field], [422, "invalid_field", field], JSON.stringify(fields));
  }
  assertEquals((await bed.call("GET", "/endpoints")).body.items, []);
});

Deno.test("endpoints: an edit changes what it names", async () => {
  await using bed = await WebhookBed.open();
  const made = await bed.call("POST", "/endpoints", { url: URL_GOOD, timeoutMs: 5, headers: { a: "b" } });
  const { id } = made.body;
  bed.clock.advance(1_000);
  const path = `/endpoints/${id}`;
  const edited = await bed.call("PATCH", path, { url: "https://example.com/other", enabled: false });
  assertEquals([edited.status, edited.body["url"], edited.body["enabled"], edited.body["timeoutMs"]], [
    200,
    "https://example.com/other",
    false,
    5,
  ]);
  assertEquals(Date.parse(String(edited.body["updatedAt"])), Date.parse(NOON) + 1_000);
  const bare = await bed.call("PATCH", path, { timeoutMs: null, headers: null });
  assertEquals([bare.body["timeoutMs"], bare.body["headers"]], [undefined, []]);
  assertEquals((await bed.call("PATCH", path, { url: "http://x.example" })).body.field, "url");
  assertEquals((await bed.call("PATCH", path, { id: "x" })).body.field, "id");
  assertEquals((await bed.call("PATCH", "/endpoints/none", {})).status, 404);
  assertEquals((await bed.call("GET", path)).body["url"], "https://example.com/other");
});

Deno.test("endpoints, triggers: an edit of nothing changes nothing and is not audited", async () => {
  await using bed = await WebhookBed.open();
  const endpoint = (await bed.call("POST", "/endpoints", { url: URL_GOOD })).body;
  const trigger = await bed.trigger();
  bed.clock.advance(1_000);
  for (const path of [`/endpoints/${endpoint.id}`, `/triggers/${trigger.id}`]) {
    const before = await bed.call("GET", path);
    assertEquals(await bed.call("PATCH", path, {}), before);
    assertEquals(await bed.call("GET", path), before);
  }
  assertEquals(await actions(bed), ["trigger.created", "endpoint.created"]);
  assertEquals((await bed.call("PATCH", "/triggers/none", {})).status, 404);
});

async function actions(bed: WebhookBed): Promise<readonly unknown[]> {
  return (await bed.call("GET", "/audit")).body.items.map((entry) => entry["action"]);
}

Deno.test("endpoints: a secret is rotated in stages", async () => {
  await using bed = await WebhookBed.open();
  const { body: { id, secret } } = await bed.call("POST", "/endpoints", { url: URL_GOOD });
  const staged = await bed.call("POST", `/endpoints/${id}/rotate`);
  assertEquals([staged.status, Object.keys(staged.body)], [200, ["secret", "activeAt"]]);
  assertEquals(Date.parse(staged.body.activeAt), Date.parse(NOON) + 86_400_000);
  assertEquals(staged.body.secret === secret, false);
  const states = async () => {
    const { body } = await bed.call("GET", `/endpoints/${id}`);
    const secrets = body["secrets"] as { signs: boolean; state: string }[];
    for (const { signs, state } of secrets) assertEquals(signs, state === "signing");
    return secrets.map(({ state }) => state);
  };
  assertEquals(await states(), ["pending", "signing"]);
  bed.clock.advance(86_400_000 - 1);
  assertEquals(await states(), ["pending", "signing"]);
  bed.clock.advance(1);
  assertEquals(await states(), ["signing", "retired"]);
  const now = await bed.call("POST", `/endpoints/${id}/rotate`, { activeIn: "0" });
  assertEquals(Date.parse(now.body.activeAt), bed.clock.now());
  for (const activeIn of ["tomorrow", "31d", -1, "-1h"]) {
    const { status, body } = await bed.call("POST", `/endpoints/${id}/rotate`, { activeIn });
    assertEquals([status, body.field], [422, "activeIn"], String(activeIn));
  }
  assertEquals((await bed.call("POST", "/endpoints/none/rotate")).status, 404);
  const rotate = async (activeIn: string) =>
    (await bed.call("POST", `/endpoints/${id}/rotate`, { activeIn })).status;
  const statuses = await Array.fromAsync({ length: 8 }, () => rotate("1h"));
  assertEquals([statuses.lastIndexOf(200), statuses[7], await rotate("0")], [6, 409, 200]);
});

Deno.test("endpoints: a dry run shows its stages", async () => {
  await using bed = await WebhookBed.open();
  const { body: { id } } = await bed.call("POST", "/endpoints", { url: URL_GOOD });
  const { status, body } = await bed.call("POST", `/endpoints/${id}/check`);
  const stages = [{ stage: "url", ok: true, detail: "it is right" }];
  assertEquals([status, body as object], [200, { url: URL_GOOD, ok: true, stages }]);
  assertEquals((await bed.call("POST", "/endpoints/none/check")).status, 404);
  assertEquals(await actions(bed), ["endpoint.checked", "endpoint.created"]);
});

Deno.test("endpoints: a filter keeps its digits, and null removes it", async () => {
  await using bed = await WebhookBed.open();
  const sent = `{"url":"${URL_GOOD}","filter":{"customer.plan":["pro"],"id":[12345678901234567890,1.10]}}`;
  const call = { requestId: "r", administrator: ADMINISTRATOR, query: "" };
  const made = await bed.service.administer({ ...call, method: "POST", path: "/endpoints", body: sent });
  const { id } = JSON.parse(made.body);
  const shown = await bed.service.administer({ ...call, method: "GET", path: `/endpoints/${id}` });
  for (const { body } of [made, shown]) {
    assertEquals(body.includes('"filter":{"customer.plan":["pro"],"id":[12345678901234567890,1.10]}'), true);
  }
  const path = `/endpoints/${id}`;
  assertEquals((await bed.call("PATCH", path, { enabled: true })).body["filter"] === undefined, false);
  assertEquals((await bed.call("PATCH", path, { filter: { a: [true] } })).body["filter"], { a: [true] });
  assertEquals((await bed.call("PATCH", path, { filter: null })).body["filter"], undefined);
  const changed = (await bed.call("GET", "/audit")).body.items.map(({ details }) =>
    details as { fields: string[] }
  );
  assertEquals(changed[0]?.fields, ["filter"]);
});

Deno.test("endpoints: a dry run compares the event of the call", async () => {
  const asked: unknown[] = [];
  const check: EndpointCheck = (_, event) => {
    asked.push(event);
    return Promise.resolve([]);
  };
  await using bed = await WebhookBed.open({ parts: { check } });
  const { body: { id } } = await bed.call("POST", "/endpoints", { url: URL_GOOD });
  const path = `/endpoints/${id}/check`;
  const data = { customer: { plan: "pro" } };
  for (const sent of [undefined, {}, { event: "order.created", data }]) {
    assertEquals((await bed.call("POST", path, sent)).status, 200);
  }
  const nothing = { kind: undefined, data: undefined };
  assertEquals(asked, [nothing, nothing, { kind: "order.created", data }]);
  const wrong: readonly (readonly [object, string])[] = [
    [{ event: "order.*" }, "event"],
    [{ data: [] }, "data"],
    [{ url: "x" }, "url"],
  ];
  for (const [sent, field] of wrong) {
    const { status, body } = await bed.call("POST", path, sent);
    assertEquals([status, body.field], [422, field]);
  }
  assertEquals(asked.length, 3);
});

Deno.test("endpoints: recovering counts first", async () => {
  await using bed = await WebhookBed.open();
  const { body: { id } } = await bed.call("POST", "/endpoints", { url: URL_GOOD });
  const range = { since: "2026-01-01T00:00:00Z", until: "2026-01-02T00:00:00Z" };
  const dry = await bed.call("POST", `/endpoints/${id}/recover`, { ...range, dryRun: true });
  const done = await bed.call("POST", `/endpoints/${id}/recover`, range);
  assertEquals([dry.status, dry.body as object, done.status, done.body as object], [
    200,
    { count: 0 },
    202,
    { count: 0 },
  ]);
  const ago = await bed.call("POST", `/endpoints/${id}/recover`, { since: "48h", until: "1h", dryRun: true });
  assertEquals([ago.status, ago.body as object], [200, { count: 0 }]);
  const table: [unknown, string][] = [
    [{ until: range.until }, "since"],
    [{ since: "1h", until: "48h" }, "until"],
    [{ since: range.since }, "until"],
    [{ ...range, since: "yesterday" }, "since"],
    [{ since: range.until, until: range.since }, "until"],
    [{ ...range, dryRun: "yes" }, "dryRun"],
  ];
  for (const [sent, field] of table) {
    const { status, body } = await bed.call("POST", `/endpoints/${id}/recover`, sent);
    assertEquals([status, body.field], [422, field]);
  }
  assertEquals((await bed.call("POST", "/endpoints/none/recover", range)).status, 404);
});

Deno.test("endpoints: one that is deleted fails what was open", async () => {
  await using bed = await WebhookBed.open();
  const { body: { id } } = await bed.call("POST", "/endpoints", { url: URL_GOOD });
  await bed.post({ event: "a", data: {} });
  assertEquals((await bed.call("DELETE", `/endpoints/${id}`)).status, 204);
  assertEquals((await bed.call("DELETE", `/endpoints/${id}`)).status, 404);
  const [delivery] = (await bed.call("GET", "/deliveries")).body.items;
  assertEquals([delivery?.state, delivery?.["reason"]], ["failed", "endpoint_deleted"]);
  const actions = (await bed.call("GET", "/audit")).body.items.map(({ action }) => action);
  assertEquals(actions.toSorted(), ["delivery.failed", "endpoint.created", "endpoint.deleted"]);
});
