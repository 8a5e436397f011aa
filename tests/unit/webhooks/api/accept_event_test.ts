import { assertEquals } from "#assert";
import { type Seen, WebhookBed } from "../../../harness/webhook_service_fixture.ts";
import { findEvent } from "../../../../src/webhooks/store/operations/events.ts";
import { codeOf } from "./refusal_fixture.ts";

const EVENT = { event: "agent.reply.completed", data: { replyId: "r1" } };

Deno.test("event: its data is stored as it was sent, to the byte", async () => {
  await using bed = await WebhookBed.open();
  const data = '{"n": 12345678901234567890, "10":1.10,"2":"\\u00e9\\/", "__proto__":{"a":1e2},"2":0}';
  const { body } = await bed.post(`{"data":0,"event": "a.b", "data" : ${data} }`);
  const stored = await bed.store.read(findEvent, body.id);
  assertEquals(new TextDecoder().decode(stored?.body), `{"event":"a.b","data":${data}}`);
});

Deno.test("event: what is wrong is refused", async () => {
  await using bed = await WebhookBed.open();
  const { body: { id, key } } = await bed.call("POST", "/event-keys", { name: "agent", kinds: ["agent.*"] });
  const deep = `{"event":"a","data":${'{"a":'.repeat(64)}1${"}".repeat(64)}}`;
  const table: [string, Seen, unknown[], string | undefined][] = [
    ["an unknown key", await bed.post("x", { key: "svce_unknown" }), [401, "unauthorized"], undefined],
    ["no JSON", await bed.post("x", { key }), [400, "malformed_json"], "body"],
    ["a list", await bed.post([]), [422, "not_an_object"], "body"],
    ["too deep", await bed.post(deep), [422, "too_deep"], "body"],
    ["an unknown field", await bed.post({ ...EVENT, more: 1 }), [422, "invalid_field"], "more"],
    ["no kind", await bed.post({ data: {} }), [422, "invalid_field"], "event"],
    ["a kind that is none", await bed.post({ ...EVENT, event: "a.-b" }), [422, "invalid_field"], "event"],
    ["a long kind", await bed.post({ ...EVENT, event: "a".repeat(129) }), [422, "invalid_field"], "event"],
    ["no data", await bed.post({ event: "a" }), [422, "invalid_field"], "data"],
    ["data that is a list", await bed.post({ event: "a", data: [] }), [422, "invalid_field"], "data"],
    ["data that is a number", await bed.post('{"event":"a","data":1e999}'), [422, "invalid_field"], "data"],
    ["our kind", await bed.post({ ...EVENT, event: "workflow.x" }), [403, "reserved_kind"], "event"],
    ["like our kind", await bed.post({ ...EVENT, event: "Workflow.x" }), [403, "reserved_kind"], "event"],
    ["our kind, by a key", await bed.post({ ...EVENT, event: "workflow.x" }, { key }), [
      403,
      "reserved_kind",
    ], "event"],
    [
      "another kind",
      await bed.post({ ...EVENT, event: "document.x" }, { key }),
      [403, "kind_not_allowed"],
      "event",
    ],
    ["a kind of the key", await bed.post(EVENT, { key }), [202, "id"], undefined],
  ];
  for (const [what, answer, expected, field] of table) {
    assertEquals([codeOf(answer), answer.body?.field], [expected, field], what);
  }
  assertEquals((await bed.call("DELETE", `/event-keys/${id}`)).status, 204);
  assertEquals(codeOf(await bed.post(EVENT, { key })), [401, "unauthorized"], "a deleted key");
});

Deno.test("event: a key is used once by each who posts", async () => {
  await using bed = await WebhookBed.open();
  await bed.call("POST", "/endpoints", { url: "https://example.com/hook" });
  const { body: { key } } = await bed.call("POST", "/event-keys", { name: "agent", kinds: ["*"] });
  const first = await bed.post(EVENT, { idempotencyKey: "k" });
  const replay = await bed.post(EVENT, { idempotencyKey: "k" });
  const other = await bed.post({ ...EVENT, data: {} }, { idempotencyKey: "k" });
  const byKey = await bed.post(EVENT, { key, idempotencyKey: "k" });
  assertEquals([first.status, Object.keys(first.body)], [202, ["id", "deliveries"]]);
  assertEquals([replay.body, replay.headers["idempotency-replayed"]], [first.body, "true"]);
  assertEquals([other.body, other.headers["idempotency-body-mismatch"]], [first.body, "true"]);
  assertEquals([byKey.status, byKey.headers["idempotency-replayed"], byKey.body.deliveries], [
    202,
    undefined,
    1,
  ]);
  assertEquals(byKey.body.id === first.body.id, false);
  const many = await Promise.all(
    Array.from({ length: 200 }, () => bed.post(EVENT, { key, idempotencyKey: "many" })),
  );
  assertEquals(new Set(many.map(({ body }) => body.id)).size, 1);
  assertEquals((await bed.call("GET", "/events")).body.items.length, 3);
});
