import { assertEquals } from "#assert";
import { until } from "../../../harness/until.ts";
import { WebhookBed } from "../../../harness/webhook_service_fixture.ts";

const ALICE = { name: "alice", role: "admin" } as const;
const EVENT = { event: "order.created", data: {} };

Deno.test("pause: no delivery starts until it is resumed, and health, metrics and audit log show it", async () => {
  let sent = 0;
  await using bed = await WebhookBed.open({
    parts: {
      takeLock: () => ({ isSole: true, keep: () => true, release: () => {} }),
      sender: { send: () => Promise.resolve({ status: 200 + 0 * sent++ }) },
    },
  });
  await bed.call("POST", "/endpoints", { url: "https://one.example/hook" });
  bed.service.start();
  await until("the work to begin", () => bed.service.isWorking);
  assertEquals((await bed.call("GET", "/deliveries/pause")).body as object, { paused: false });

  const paused = await bed.call("POST", "/deliveries/pause", undefined, ALICE);
  const since = String(paused.body["since"]);
  assertEquals([paused.status, paused.body as object], [200, { paused: true, since, by: "alice" }]);
  assertEquals((await bed.call("GET", "/deliveries/pause")).body as object, paused.body as object);
  const accepted = await bed.post(EVENT);
  assertEquals(accepted.status, 202);
  const [delivery] = (await bed.call("GET", "/deliveries")).body.items ?? [];
  const why = async () => (await bed.call("GET", `/deliveries/${delivery?.["id"]}`)).body["why"];
  assertEquals(String(await why()).endsWith("the first one; all deliveries are paused"), true);
  const resent = await bed.call("POST", `/deliveries/${delivery?.["id"]}/resend`);
  assertEquals(String(resent.body["why"]).endsWith("; all deliveries are paused"), true);
  const { gauges, note } = await bed.service.metrics();
  assertEquals([gauges.deliveries_paused, note], [1, `all deliveries are paused by alice since ${since}`]);
  bed.clock.advance(5_000);
  assertEquals(sent, 0);

  const resumed = await bed.call("POST", "/deliveries/resume", {});
  assertEquals([resumed.status, resumed.body as object], [200, { paused: false }]);
  await until("the delivery", () => {
    bed.clock.advance(500);
    return sent > 0;
  });
  const state = async () => (await bed.call("GET", `/deliveries/${delivery?.["id"]}`)).body["state"];
  await until("the end of the delivery", async () => await state() === "acknowledged");
  await bed.call("POST", "/deliveries/pause");
  const again = await bed.call("POST", `/deliveries/${delivery?.["id"]}/resend`);
  assertEquals(String(again.body["why"]).endsWith("; all deliveries are paused"), true);
  await bed.call("POST", "/deliveries/resume");
  const after = await bed.service.metrics();
  assertEquals([after.gauges.deliveries_paused, after.note], [0, undefined]);
  const audit = (await bed.call("GET", "/audit")).body.items ?? [];
  assertEquals(
    audit.filter(({ object }) => object === "deliveries").map(({ action, actor }) => [action, actor]),
    [
      ...[["deliveries.resumed", "admin"], ["deliveries.paused", "admin"]],
      ...[["deliveries.resumed", "admin"], ["deliveries.paused", "alice"]],
    ],
  );
});

Deno.test("pause: fields and a wrong method are refused", async () => {
  await using bed = await WebhookBed.open();
  for (const path of ["/deliveries/pause", "/deliveries/resume"]) {
    const { status, body } = await bed.call("POST", path, { until: "tomorrow" });
    assertEquals([status, body.code, body.field], [422, "invalid_field", "until"]);
  }
  assertEquals((await bed.call("DELETE", "/deliveries/pause")).status, 405);
});
