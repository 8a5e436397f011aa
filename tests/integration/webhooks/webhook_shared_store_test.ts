import { assert, assertEquals } from "#assert";
import { FakeClock } from "../../harness/fake_clock.ts";
import { serveHttp } from "../../harness/http_server.ts";
import { NO_LIMITS, ownPostgres, postgres } from "../../harness/postgres_fixture.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { administer, openService, SERVICE_KEY } from "../../harness/store_service.ts";
import { eventually, until } from "../../harness/until.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import { webhookCall } from "../../harness/webhook_client.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";

const HOUR = 3_600_000;
const EVENT = { body: { event: "a", data: {} } };

/** A service in this process on a database. */
async function started(folder: WebhookFolder, address: string) {
  const store = { WEBHOOK_STORE: address, WEBHOOK_ENCRYPTION_KEY: SERVICE_KEY };
  const service = await ServeFixture.start({ env: { ...folder.env, ...store } });
  const { http } = service.running.addresses;
  return Object.assign(service, {
    http,
    healthPage: () => service.page("/healthcheck"),
    decision: async () =>
      (await service.ask({ domain: "d", descriptors: [{ entries: [{ key: "k", value: "v" }] }] }))?.status,
    isOpen: () => until("the service", async () => (await api(http, "/endpoints")).status === 200),
  });
}

ownPostgres.test("a shared store that is unavailable at the start is waited for, and then two services work on it", async (server) => {
  const address = server.url(await server.createDatabase());
  await using folder = await WebhookFolder.make();
  await using receiver = await WebhookReceiver.start();
  await server.stop();
  await using one = await started(folder, address);
  const refused = await webhookCall(`http://${one.http}/api/v1/events`, { token: ADMIN_TOKEN, ...EVENT });
  assertEquals([refused.status, refused.headers.get("retry-after")], [503, "1"]);
  assertEquals(await one.decision(), 200);
  await until("the reason", async () => /webhooks: Cannot (?:connect|use)/.test(await one.healthPage()));
  await server.start();
  await one.isOpen();
  await eventually("OK", () => one.healthPage());

  await using other = await started(folder, address);
  await other.isOpen();
  assertEquals((await api(one.http, "/endpoints", { body: { url: receiver.url } })).status, 201);
  for (const { http } of [one, other]) assertEquals((await api(http, "/events", EVENT)).status, 202);
  for (const service of [one, other]) {
    const stats = await until("the metrics", async () => {
      const all = await service.stats();
      return all["ratelimit.webhooks.deliveries.acknowledged"] === 2 && all;
    });
    assertEquals(stats["ratelimit.webhooks.is_dispatcher"], 1);
    assert(Math.abs(stats["ratelimit.webhooks.clock_offset_seconds"] ?? 99) < 10);
  }
  assertEquals(receiver.receptions.length, 2);
});

ownPostgres.test("a shared store that goes away: 503 meanwhile, and a result that came is written when it is back", async (server) => {
  await using folder = await WebhookFolder.make();
  await using service = await started(folder, server.url(await server.createDatabase()));
  const { http } = service;
  await service.isOpen();
  const gate = Promise.withResolvers<void>();
  let count = 0;
  await using receiver = serveHttp(async (request) => {
    await request.body?.cancel();
    count++;
    await gate.promise;
    return new Response();
  });
  assertEquals((await api(http, "/endpoints", { body: { url: receiver.origin } })).status, 201);
  assertEquals((await api(http, "/events", EVENT)).status, 202);
  await until("the request", () => count === 1);
  await server.stop("immediate");
  gate.resolve();
  const refused = await api(http, "/events", EVENT);
  assertEquals([refused.status, refused.body.code], [503, "store_unavailable"]);
  assertEquals(refused.headers.get("retry-after"), "1");
  assertEquals(await service.decision(), 200);
  await until("its health", async () => (await service.healthPage()).startsWith("webhooks: "));
  await server.start();
  const delivery = await until("the result", async () => {
    const { status, body } = await api(http, "/deliveries");
    return status === 200 && body.items[0]?.["state"] === "acknowledged" && body.items[0];
  });
  assertEquals([(delivery["attempts"] as unknown[] | undefined)?.length, count], [1, 1]);
  await eventually("OK", () => service.healthPage());
});

postgres.test("a wall clock that is an hour off, one way and then the other, is in nothing that is stored", async (database) => {
  await using receiver = await WebhookReceiver.start();
  const clock = FakeClock.ofMachine({ aheadMs: HOUR });
  const logger = new RecordedLogger();
  const store = { kind: "postgres", address: database.url(), poolSize: 4, ...NO_LIMITS } as const;
  await using service = await openService(store, { clock, logger });
  service.start();
  const begin = Date.now();
  for (const [index, next] of [-HOUR, 0].entries()) {
    await administer(service, "POST", "/endpoints", { url: receiver.url, events: [`kind${index}`] });
    const body = JSON.stringify({ event: `kind${index}`, data: {} });
    await service.acceptEvent({ requestId: "r", idempotencyKey: "k".repeat(index + 1), body });
    await until("the delivery", async () => {
      const { items } = await administer(service, "GET", "/deliveries");
      return items.length === index + 1 && items[0].state === "acknowledged";
    });
    const sentAt = Number(receiver.receptions[index]?.headers["x-svc-timestamp"]) * 1_000;
    assert(Math.abs(sentAt - clock.now()) < 60_000, "the receiver gets the time of the machine");
    const { gauges, note } = await service.metrics();
    assertEquals(Math.round((gauges["clock_offset_seconds"] ?? 0) / 60), clock.aheadMs / 60_000);
    const told = new RegExp(
      `^the clock of this machine is (\\d+) s ${
        clock.aheadMs > 0 ? "ahead of" : "behind"
      } that of the database$`,
    );
    assertEquals(Math.round(Number(told.exec(note ?? "")?.[1]) / 60), 60, note);
    clock.aheadMs = next;
  }
  const lists = ["endpoints", "deliveries", "events", "audit"];
  const stored = await Promise.all(lists.map((list) => administer(service, "GET", `/${list}`)));
  const times = [...JSON.stringify(stored).matchAll(/"(\d{4}-\d\d-\d\dT[\d:.]+Z)"/g)].map(([, text]) =>
    Date.parse(text ?? "")
  );
  assert(times.length > 10);
  assertEquals(times.filter((time) => time < begin - 1_000 || time > Date.now() + 1_000), []);
  assertEquals((await service.metrics()).note, undefined);
  const isWarning = logger.lines.some(({ level, message }) =>
    level === "warning" && message.startsWith("Wall clock differs")
  );
  assert(isWarning);
});
