import { ADMINISTRATOR } from "../../harness/administrators.ts";
import { assert, assertEquals } from "@std/assert";
import { FakeClock } from "../../harness/fake_clock.ts";
import { openWebhookService } from "../../../src/webhooks/service/opening.ts";
import { PostgresServer } from "../../harness/postgres_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { eventually, until } from "../../harness/until.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { api, WebhookFolder, WebhookReceiver } from "../../harness/webhook_weir.ts";

const HOUR = 3_600_000;
const KEY = new Uint8Array(32).fill(7).toBase64();
const PASSWORD = "a-password-that-nobody-may-see";
const EVENT = { body: { event: "a", data: {} } };

/** Services in this process that share a database. */
class Fleet implements AsyncDisposable {
  readonly services: ServeFixture[] = [];
  readonly receiver = new WebhookReceiver();
  readonly #stack = new AsyncDisposableStack();
  #env: Record<string, string> = {};

  static async open(server: PostgresServer): Promise<Fleet> {
    const fleet = new Fleet();
    fleet.#stack.use(fleet.receiver);
    const folder = fleet.#stack.use(await WebhookFolder.make());
    const user = "shared";
    await server.psql(`CREATE ROLE ${user} LOGIN PASSWORD '${PASSWORD}'`);
    await server.psql(`CREATE DATABASE ${user} OWNER ${user}`);
    const WEBHOOK_STORE = `postgres://${user}:${PASSWORD}@127.0.0.1:${server.port}/${user}`;
    fleet.#env = { ...folder.env, WEBHOOK_STORE, WEBHOOK_ENCRYPTION_KEY: KEY, LOG_LEVEL: "info" };
    return fleet;
  }

  /** Starts one more; answers its HTTP address. */
  async start(): Promise<string> {
    const service = this.#stack.use(await ServeFixture.start({ env: this.#env }));
    this.services.push(service);
    return service.running.addresses.http;
  }

  /** Everything that they tell. */
  async told(): Promise<string> {
    const pages = this.services.flatMap((service) =>
      ["/healthcheck", "/stats"].map((path) => service.page(path))
    );
    return [...await Promise.all(pages), ...this.services.flatMap(({ log }) => log)].join("\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

const status = async (http: string) => (await api(http, "/endpoints")).status;
/** Posts an event, and does as it is told where it is to ask again: the first one with its key may still be under way. */
const posted = (http: string, idempotencyKey: string) =>
  until("an answer", async () => {
    const answer = await api(http, "/events", { ...EVENT, idempotencyKey });
    return answer.headers.get("retry-after") === null && answer;
  });
const decide = (service: ServeFixture | undefined) =>
  service?.ask({ domain: "d", descriptors: [{ entries: [{ key: "k", value: "v" }] }] });

Deno.test({
  ...needs(
    ["postgres"],
    "a shared store that is away at the start is waited for, and everything else goes on",
  ),
  async fn() {
    await using server = await PostgresServer.start();
    await using fleet = await Fleet.open(server);
    await server.stop();
    const http = await fleet.start();
    const refused = await api(http, "/events", EVENT);
    assertEquals([refused.status, refused.headers.get("retry-after")], [503, "1"]);
    const [service] = fleet.services;
    assertEquals((await decide(service))?.status, 200);
    const health = await until("the reason", async () => {
      const page = await service?.page("/healthcheck") ?? "";
      return /webhooks: Cannot (?:connect|use)/.test(page) && page;
    });
    assert(!health.includes(PASSWORD));
    await server.start();
    await until("the service", async () => await status(http) === 200);
    await until("its health", async () => await service?.page("/healthcheck") === "OK");
    assert(!(await fleet.told()).includes(PASSWORD), "the password is told nowhere");
  },
});

Deno.test({
  ...needs(["postgres"], "two services share a store: each accepts and works, nothing is made twice"),
  async fn() {
    await using server = await PostgresServer.start();
    await using fleet = await Fleet.open(server);
    const [one = "", other = ""] = await Promise.all([fleet.start(), fleet.start()]);
    await until("both", async () => await status(one) === 200 && await status(other) === 200);
    const { url } = fleet.receiver;
    assertEquals((await api(one, "/endpoints", { body: { url, concurrency: 8 } })).status, 201);
    assertEquals((await api(other, "/endpoints")).body.items.map((endpoint) => endpoint["url"]), [url]);
    const answers = await Promise.all(
      Array.from(
        { length: 60 },
        (_, n) => posted(n % 2 === 0 ? one : other, `${n % 30}`),
      ),
    );
    assertEquals(new Set(answers.map((answer) => answer.status)), new Set([202]));
    assertEquals(new Set(answers.map(({ body }) => body["eventId"] ?? body.id)).size, 30);
    await until("all of them", () => fleet.receiver.received.length >= 30);
    await until("the results", async () => {
      const { items } = (await api(other, "/deliveries?limit=100")).body;
      return items.length === 30 && items.every((delivery) => delivery["state"] === "acknowledged");
    });
    await eventually(30, () => fleet.receiver.received.length);
    for (const service of fleet.services) {
      const stats = await until("the metrics", async () => {
        const all = await service.stats();
        return all["ratelimit.webhooks.deliveries.acknowledged"] === 30 && all;
      });
      assertEquals([stats["ratelimit.webhooks.is_dispatcher"], stats["ratelimit.webhooks.store_errors"]], [
        1,
        0,
      ]);
      assertEquals(Math.abs(stats["ratelimit.webhooks.clock_offset_seconds"] ?? 99) < 10, true);
    }
    assert(!(await fleet.told()).includes(PASSWORD), "the password is told nowhere");
  },
});

Deno.test({
  ...needs(
    ["postgres"],
    "a shared store that goes away: 503 meanwhile, and a result that came is written when it is back",
  ),
  async fn() {
    await using server = await PostgresServer.start();
    await using fleet = await Fleet.open(server);
    const http = await fleet.start();
    await until("the service", async () => await status(http) === 200);
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    let count = 0;
    await using receiver = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      async (request) => {
        await request.body?.cancel();
        count++;
        asked.resolve();
        await gate.promise;
        return new Response();
      },
    );
    const url = `http://127.0.0.1:${receiver.addr.port}/`;
    assertEquals((await api(http, "/endpoints", { body: { url } })).status, 201);
    assertEquals((await api(http, "/events", EVENT)).status, 202);
    await asked.promise;
    await server.stop("immediate");
    gate.resolve();
    const refused = await api(http, "/events", EVENT);
    assertEquals([refused.status, refused.body.code, refused.headers.get("retry-after")], [
      503,
      "store_unavailable",
      "1",
    ]);
    const [service] = fleet.services;
    assertEquals((await decide(service))?.status, 200);
    await until(
      "its health",
      async () => (await service?.page("/healthcheck"))?.startsWith("webhooks: "),
    );
    await server.start();
    const delivery = await until("the result", async () => {
      const { status, body } = await api(http, "/deliveries");
      return status === 200 && body.items[0]?.["state"] === "acknowledged" && body.items[0];
    });
    assertEquals([(delivery["attempts"] as unknown[] | undefined)?.length, count], [1, 1]);
    await until("its health", async () => await service?.page("/healthcheck") === "OK");
    assert(!(await fleet.told()).includes(PASSWORD), "the password is told nowhere");
  },
});

Deno.test({
  ...needs(
    ["postgres"],
    "a wall clock that is an hour off, one way and then the other, is in nothing that is stored",
  ),
  async fn() {
    await using server = await PostgresServer.start();
    await using receiver = new WebhookReceiver();
    const clock = FakeClock.ofMachine({ aheadMs: HOUR });
    const logger = new RecordedLogger();
    const service = await openWebhookService({
      options: {
        store: {
          ...{ kind: "postgres", address: server.url(await server.createDatabase()), poolSize: 4 },
          ...{ connectTimeoutMs: 60_000, statementTimeoutMs: 300_000, lockTimeoutMs: 300_000 },
        },
        ...{ encryptionKeys: [KEY], timeoutMs: 60_000, connectTimeoutMs: 60_000, retentionMs: 86_400_000 },
        ...{ maxInFlight: 10, allowCidrs: ["127.0.0.0/8"], workflowEnv: {}, workflowAllowCidrs: [] },
        ...{ maxRunning: 10, isTraced: false, version: "test", disableAfterMs: 0 },
      },
      limit: () => Promise.resolve({ code: "OK" }),
      clock,
      logger,
    });
    const call = async (method: string, path: string, sent?: unknown) => {
      const body = sent === undefined ? {} : { body: JSON.stringify(sent) };
      const asked = { requestId: "r", administrator: ADMINISTRATOR, method, path, query: "", ...body };
      const answer = await service.administer(asked);
      return JSON.parse(answer.body);
    };
    try {
      service.start();
      const begin = Date.now();
      for (const [index, next] of [-HOUR, 0].entries()) {
        await call("POST", "/endpoints", { url: receiver.url, events: [`kind${index}`] });
        const body = JSON.stringify({ event: `kind${index}`, data: {} });
        await service.acceptEvent({ requestId: "r", idempotencyKey: "k".repeat(index + 1), body });
        await until("the delivery", async () => {
          const { items } = await call("GET", "/deliveries");
          return items.length === index + 1 && items[0].state === "acknowledged";
        });
        const sentAt = Number(receiver.received[index]?.headers.get("x-svc-timestamp")) * 1_000;
        assert(Math.abs(sentAt - clock.now()) < 60_000, "the receiver is told the time of the machine");
        const { gauges, note } = await service.metrics();
        assertEquals(Math.round((gauges["clock_offset_seconds"] ?? 0) / 60), clock.aheadMs / 60_000);
        const side = clock.aheadMs > 0 ? "ahead of" : "behind";
        const [, offSeconds] =
          new RegExp(`^the clock of this machine is (\\d+) s ${side} that of the database$`).exec(
            note ?? "",
          ) ?? [];
        assertEquals(Math.round(Number(offSeconds) / 60), 60, note);
        clock.aheadMs = next;
      }
      const stored = await Promise.all(
        ["endpoints", "deliveries", "events", "audit"].map((list) => call("GET", `/${list}`)),
      );
      const times = [...JSON.stringify(stored).matchAll(/"(\d{4}-\d\d-\d\dT[\d:.]+Z)"/g)].map(([, text]) =>
        Date.parse(text ?? "")
      );
      assert(times.length > 10);
      assertEquals(times.filter((time) => time < begin - 1_000 || time > Date.now() + 1_000), []);
      assertEquals((await service.metrics()).note, undefined);
      assert(
        logger.lines.some(([level, message]) =>
          level === "warning" && message.startsWith("Wall clock differs")
        ),
      );
    } finally {
      await service.stop(60_000);
    }
  },
});
