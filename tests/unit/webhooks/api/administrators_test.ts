import { assertEquals } from "#assert";
import { DELIVERY_OPERATIONS } from "../../../../src/webhooks/api/delivery_operations.ts";
import { ENDPOINT_OPERATIONS } from "../../../../src/webhooks/api/endpoint_operations.ts";
import { EVENT_OPERATIONS } from "../../../../src/webhooks/api/event_operations.ts";
import { AUDIT_OPERATIONS, EXECUTION_OPERATIONS } from "../../../../src/webhooks/api/execution_operations.ts";
import { REPLAY_OPERATIONS } from "../../../../src/webhooks/api/replay_operations.ts";
import { TRIGGER_OPERATIONS } from "../../../../src/webhooks/api/trigger_operations.ts";
import { WORKFLOW_OPERATIONS } from "../../../../src/webhooks/api/workflow_operations.ts";
import { WebhookBed } from "../../../harness/webhook_service_fixture.ts";

const ALICE = { name: "alice", role: "admin" } as const;
const CI = { name: "ci", role: "read" } as const;
const OPERATIONS = Object.keys({
  ...ENDPOINT_OPERATIONS,
  ...TRIGGER_OPERATIONS,
  ...EVENT_OPERATIONS,
  ...DELIVERY_OPERATIONS,
  ...REPLAY_OPERATIONS,
  ...EXECUTION_OPERATIONS,
  ...AUDIT_OPERATIONS,
  ...WORKFLOW_OPERATIONS,
});
const UNKNOWN = "00000000-0000-4000-8000-000000000000";

Deno.test("administrators: the role read may call what has GET, and nothing else", async () => {
  await using bed = await WebhookBed.open();
  for (const operation of OPERATIONS) {
    const [method = "", pattern = ""] = operation.split(" ");
    const path = pattern.replace(/:\w+/g, UNKNOWN);
    const { status, body } = await bed.call(method, path, undefined, CI);
    const isRefused = status === 403 && body.code === "role_not_allowed";
    assertEquals(isRefused, method !== "GET", `${operation}: ${status}`);
  }
  assertEquals((await bed.call("GET", "/audit", undefined, CI)).body.items, []);
});

Deno.test("administrators: an unknown path and a wrong method are reported as such to every role", async () => {
  await using bed = await WebhookBed.open();
  for (const administrator of [ALICE, CI]) {
    assertEquals((await bed.call("POST", "/nothing", {}, administrator)).body.code, "not_found");
    assertEquals((await bed.call("PUT", "/endpoints", {}, administrator)).body.code, "method_not_allowed");
  }
});

Deno.test("administrators: the audit log names the one who acted", async () => {
  await using bed = await WebhookBed.open();
  const { id } = (await bed.call("POST", "/endpoints", { url: "https://a.example" }, ALICE)).body;
  await bed.call("DELETE", `/endpoints/${id}`);
  const { items } = (await bed.call("GET", "/audit")).body;
  assertEquals(items.map(({ actor, action }) => [actor, action]), [
    ["admin", "endpoint.deleted"],
    ["alice", "endpoint.created"],
  ]);
});

Deno.test("administrators: each name has its own idempotency keys, and a mismatch names its actor", async () => {
  await using bed = await WebhookBed.open();
  const post = async (administrator: string | undefined, data: object) => {
    const call = {
      requestId: "r",
      administrator,
      idempotencyKey: "k",
      body: JSON.stringify({ event: "a.b", data }),
    };
    return JSON.parse((await bed.service.acceptEvent(call)).body).id;
  };
  const [unnamed, admin, alice, bob] = [
    await post(undefined, {}),
    await post("admin", {}),
    await post("alice", {}),
    await post("bob", {}),
  ];
  assertEquals(unnamed, admin);
  assertEquals(new Set([admin, alice, bob]).size, 3);
  assertEquals(await post("alice", { other: true }), alice);
  const { items } = (await bed.call("GET", "/audit")).body;
  assertEquals(items.map(({ actor, action }) => [actor, action]), [["alice", "event.body_mismatch"]]);
});
