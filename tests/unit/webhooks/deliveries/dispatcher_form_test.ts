import { assertEquals } from "#assert";
import { verify } from "../../../../src/webhooks/receiver.ts";
import { listAudit } from "../../../../src/webhooks/store/operations/audit_log.ts";
import { editEndpoint } from "../../../../src/webhooks/store/operations/endpoints.ts";
import { resendDelivery } from "../../../../src/webhooks/store/operations/deliveries.ts";
import { DispatcherBed, SECRET, SERVER_ERROR } from "../../../harness/dispatcher_fixture.ts";

Deno.test("a delivery in another form has its content type, its signature and the same bytes on every attempt", async () => {
  await using bed = await DispatcherBed.withEvent({ format: "cloudevents" });
  const answers = [SERVER_ERROR, SERVER_ERROR];
  bed.sender.receiver = () => answers.shift() ?? { status: 200 };
  bed.start();
  await bed.settled();
  bed.clock.advance(60_000);
  await bed.settled();
  const { delivery } = await bed.only();
  assertEquals([delivery.state, bed.sender.sent.length], ["acknowledged", 3]);
  const texts = bed.sender.sent.map(({ body }) => new TextDecoder().decode(body));
  assertEquals(new Set(texts).size, 1);
  const { id, type, source } = JSON.parse(texts[0] ?? "");
  assertEquals([id, type, source], [delivery.eventId, delivery.event, "/weir"]);
  for (const { body, headers } of bed.sender.sent) {
    assertEquals(headers["content-type"], "application/cloudevents+json");
    const signed = { body, headers, secrets: [SECRET], now: Number(headers["x-svc-timestamp"]) * 1_000 };
    for (const standardWebhooks of "webhook-id" in headers ? [true, false] : [false]) {
      assertEquals((await verify({ ...signed, standardWebhooks })).ok, true);
    }
  }
});

Deno.test("a delivery whose body cannot be rendered fails without a request, until its template is corrected", async () => {
  await using bed = await DispatcherBed.withEvent({ template: '{"a":"{{ data.missing }}"}' });
  const dispatcher = bed.start();
  await bed.settled();
  const { delivery, attempts } = await bed.only();
  assertEquals([delivery.state, delivery.reason, bed.sender.sent.length], ["failed", "unrenderable", 0]);
  assertEquals(
    attempts.map(({ result, errorKind, error }) => [result, errorKind, error]),
    [["failed", "unsendable", 'Cannot read "data.missing": it has no value']],
  );
  bed.clock.advance(25 * 3_600_000);
  await bed.settled();
  assertEquals((await bed.only()).attempts.length, 1);
  const [entry] = (await bed.store.read(listAudit, { limit: 1 })).items;
  assertEquals([entry?.action, entry?.details["reason"]], ["delivery.failed", "unrenderable"]);
  const now = bed.clock.now();
  const audit = { id: "a", at: now, actor: "admin", action: "delivery.resent", object: "", details: {} };
  await bed.store.write(editEndpoint, delivery.endpointId, { template: '{"a":"{{ event }}"}' }, {
    now,
    audit,
  });
  await bed.store.write(resendDelivery, delivery.id, { now, audit });
  dispatcher.wake();
  await bed.settled();
  assertEquals((await bed.only()).delivery.state, "acknowledged");
  const bodies = bed.sender.sent.map(({ body }) => new TextDecoder().decode(body));
  assertEquals(bodies, [`{"a":${JSON.stringify(delivery.event)}}`]);
});

Deno.test("deliveries whose bodies cannot be rendered do not make their endpoint wait as a failing one", async () => {
  await using bed = await DispatcherBed.open();
  await bed.endpoint({ template: '{"a":"{{ data.missing }}"}' });
  for (let count = 0; count < 100; count++) await bed.event();
  bed.start();
  await bed.sent(100);
  assertEquals([bed.reports.length, bed.sender.sent.length], [100, 0]);
});
