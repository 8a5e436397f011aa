import { assert, assertEquals } from "#assert";
import { join } from "node:path";
import { verify } from "../../../src/webhooks/receiver.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { postgres } from "../../harness/postgres_fixture.ts";
import { eventually, until } from "../../harness/until.ts";
import { WebhookProcess } from "../../harness/webhook_process.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import { ServeFixture, type ServeFixtureOptions } from "../../harness/serve_fixture.ts";
import { WatchedWorkers } from "../../harness/deciding_workers.ts";
import { sharedRedis } from "../../harness/shared_servers.ts";
import { needs } from "../../harness/tools.ts";

const RULES = `domain: shop
descriptors:
  - key: tenant
    events: [over_limit, near_limit]
    rate_limit: { unit: second, unit_multiplier: 4, requests_per_unit: 5 }
  - key: hashed
    events: [over_limit]
    events_redact: hash
    detailed_metric: true
    rate_limit: { unit: second, requests_per_unit: 0 }
  - key: omitted
    events: [over_limit]
    events_redact: omit
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 60, algorithm: token_bucket, burst: 1 }
`;
/** A key is in one episode here for as long as a test may take: it has no window that ends. */
const ENDLESS_RULES = `domain: shop
descriptors:
  - key: tenant
    events: [over_limit]
    rate_limit: { unit: day, requests_per_unit: 1, algorithm: token_bucket }
`;
const REDIS = await sharedRedis();
const KEY = new Uint8Array(32).fill(9).toBase64();
function call(key: string, value: string, hitsAddend = 1) {
  return { domain: "shop", descriptors: [{ entries: [{ key, value }] }], hitsAddend };
}

/** A service with the rules, once it has its store. */
async function started(
  folder: WebhookFolder,
  options: Partial<ServeFixtureOptions> = {},
): Promise<ServeFixture> {
  const weir = await ServeFixture.start({ env: folder.env, rules: { "shop.yaml": RULES }, ...options });
  const { http } = weir.running.addresses;
  await until("the webhook service", async () => (await api(http, "/triggers?limit=1")).status === 200);
  return weir;
}

/** The events that came, without the times: the kind and the data. */
function came(receiver: WebhookReceiver) {
  return receiver.receptions.map(({ body }) => {
    const { event, data } = JSON.parse(body);
    const { at: _at, freeAt: _freeAt, startedAt: _startedAt, endedAt: _endedAt, episode: _episode, ...rest } =
      data;
    return { event, ...rest };
  });
}

Deno.test("events of rules are delivered to those that subscribe to them, and signed", async () => {
  await using folder = await WebhookFolder.make();
  await using receiver = await WebhookReceiver.start();
  await using others = await WebhookReceiver.start();
  // At the beginning of a window, which ends when the test moves the clock.
  const clock = new FakeClock(Date.UTC(2026, 0, 1, 12));
  await using weir = await started(folder, { clock });
  const { http } = weir.running.addresses;
  const { body: { secret } } = await api(http, "/endpoints", {
    body: { url: receiver.url, events: ["ratelimit.*"] },
  });
  await api(http, "/endpoints", { body: { url: others.url, events: ["*"] } });
  for (const hits of [5, 3, 1]) await weir.ask(call("tenant", "acme", hits));
  await weir.ask(call("hashed", "bob@shop.example"));
  for (let time = 0; time < 2; time++) await weir.ask(call("omitted", "carol@shop.example"));
  // The store, which has the clock of the machine, ends the episode without a window sooner or later.
  const expected = () =>
    came(receiver).filter(({ event, rule }) =>
      !(event.endsWith(".ended") && rule.metricKey === "shop.omitted")
    );
  await until("all events", () => {
    clock.advance(100);
    return expected().length === 6;
  });
  const file = join(weir.rulesFolder, "shop.yaml");
  const shared = { domain: "shop", algorithm: "fixed_window", shadow: false };
  const tenant = {
    ...shared,
    entries: [{ key: "tenant", value: "acme" }],
    rule: { file, line: 3, metricKey: "shop.tenant" },
    limit: { requestsPerUnit: 5, unit: "SECOND", windowSeconds: 4 },
  };
  const found = expected();
  const [hashed] = found.filter(({ rule }) => rule.metricKey === "shop.hashed");
  assert(/^hmac-sha256:[0-9a-f]{64}$/.test(hashed?.entries[0].value), hashed?.entries[0].value);
  const hidden = {
    ...shared,
    entries: hashed?.entries,
    rule: { file, line: 6, metricKey: "shop.hashed" },
    limit: { requestsPerUnit: 0, unit: "SECOND", windowSeconds: 1 },
  };
  const placeOf = ({ event, rule }: (typeof found)[number]) => `${rule.metricKey} ${event}`;
  assertEquals(found.toSorted((a, b) => placeOf(a) < placeOf(b) ? -1 : 1), [
    { event: "ratelimit.over_limit", ...hidden },
    { event: "ratelimit.over_limit.ended", ...hidden, refusedHits: 1 },
    {
      event: "ratelimit.over_limit",
      domain: "shop",
      entries: [{ key: "omitted" }],
      rule: { file, line: 11, metricKey: "shop.omitted" },
      limit: { requestsPerUnit: 60, unit: "MINUTE", windowSeconds: 60, burst: 1 },
      algorithm: "token_bucket",
      shadow: true,
    },
    { event: "ratelimit.near_limit", ...tenant },
    { event: "ratelimit.over_limit", ...tenant },
    { event: "ratelimit.over_limit.ended", ...tenant, refusedHits: 4 },
  ]);
  const [first] = receiver.receptions;
  const { body = "", headers = {} } = first ?? {};
  assertEquals((await verify({ body, headers, secrets: [secret] })).ok, true);
  assertEquals(others.receptions.length, 0);
  const stats = await weir.stats();
  const names = ["sent", "suppressed", "dropped"].map((name) => stats[`ratelimit.events.${name}`]);
  // With the rules and the workflow that were loaded.
  assertEquals(names, [4 + 1, 0, 0]);
  await weir.stop();
  assertEquals((await folder.storeText()).includes("@shop.example"), false);
});

Deno.test("events of the configuration: what was loaded and rejected, and why", async () => {
  await using folder = await WebhookFolder.make();
  await using receiver = await WebhookReceiver.start();
  await using weir = await started(folder);
  const { http } = weir.running.addresses;
  // Before anyone subscribes to them.
  await until("the events of the start", async () => {
    const { items } = (await api(http, "/workflows")).body;
    return items.length === 1 && (await weir.stats())["ratelimit.events.sent"] === 1;
  });
  assertEquals((await api(http, "/events")).body.items, []);
  await api(http, "/endpoints", { body: { url: receiver.url, events: ["config.*"] } });
  const arrived = (count: number) => until("the event", () => receiver.receptions.length === count);
  const file = join(weir.rulesFolder, "shop.yaml");
  const text = await Deno.readTextFile(file);
  await Deno.writeTextFile(file, text.replace("[over_limit]", "[above_limit]"));
  await arrived(1);
  await Deno.writeTextFile(file, text);
  await arrived(2);
  const workflow = join(folder.path, "workflows", "echo.yaml");
  await Deno.writeTextFile(workflow, "workflow: echo\nsteps: []\n");
  await arrived(3);
  await Deno.remove(workflow);
  await arrived(4);
  const rules = { what: "rules", from: weir.rulesFolder, version: "", warnings: 0 };
  const workflows = { what: "workflows", from: join(folder.path, "workflows") };
  assertEquals(came(receiver), [
    {
      event: "config.rejected",
      ...rules,
      kept: true,
      errors: 1,
      problems: [
        `${file}:7:14: descriptors[1].events[0]: expected one of over_limit, near_limit; got 'above_limit'`,
      ],
    },
    { event: "config.loaded", ...rules, domains: 1, limits: 3 },
    {
      event: "config.rejected",
      ...workflows,
      errors: 1,
      problems: [`${workflow}:2:8: steps: there are no steps; add a list of at least one under 'steps'`],
    },
    { event: "config.loaded", ...workflows, workflows: 0, changed: ["echo"] },
  ]);
});

Deno.test({
  ...needs(["redis-server"], "events of rules with workers: one for a key, whichever thread refused it"),
  async fn() {
    await using folder = await WebhookFolder.make();
    await using receiver = await WebhookReceiver.start();
    await using database = await REDIS.database();
    const workers = new WatchedWorkers();
    const counters = { BACKEND_TYPE: "kv", KV_URL: database.url, KV_TIMEOUT: "1m" };
    await using weir = await started(folder, {
      env: { ...folder.env, ...counters, WORKERS: "2" },
      createDecidingWorker: workers.create,
    });
    const { http } = weir.running.addresses;
    await api(http, "/endpoints", {
      body: { url: receiver.url, events: ["ratelimit.over_limit.*", "ratelimit.over_limit"] },
    });
    using clients = await workers.clients(weir, workers.all, "tenant=warm-up");
    const refused = (await clients.codes(100, "tenant=acme")).filter((code) => code === 2).length;
    const all = () => came(receiver).filter(({ entries }) => entries[0].value === "acme");
    const ends = () => all().filter(({ event }) => event === "ratelimit.over_limit.ended");
    // The calls are in one window, or in two where one ends between them: each has one begin and one end.
    await eventually(refused, () => ends().reduce((sum, { refusedHits }) => sum + refusedHits, 0));
    const windows = ends().length;
    assertEquals(all().length, 2 * windows);
    assert(windows <= 2 && refused <= 95 && refused >= 90, `${windows} windows, ${refused} refused`);
  },
});

postgres.test("two instances on one database report a key once; what a killed one had reported counts", async (database) => {
  const env = { WEBHOOK_STORE: database.url(), WEBHOOK_ENCRYPTION_KEY: KEY };
  await using receiver = await WebhookReceiver.start();
  await using first = await WebhookProcess.open({ env });
  await using second = await WebhookProcess.open({ env });
  await Promise.all([first, second].map((one) => one.start({ rules: { "shop.yaml": ENDLESS_RULES } })));
  await first.endpoint(receiver, "/hook", {
    events: ["ratelimit.over_limit", "ratelimit.over_limit.ended"],
  });
  const ask = async ({ base }: WebhookProcess, hits: number) => {
    const response = await fetch(`${base}/json`, {
      method: "POST",
      body: JSON.stringify(call("tenant", "acme", hits)),
    });
    await response.body?.cancel();
    assertEquals(response.status, 429);
  };
  const stored = (hits: number) =>
    eventually(String(hits), () => database.psql("SELECT hits FROM limit_episode"));
  await ask(first, 3);
  await stored(3);
  await ask(second, 4);
  await stored(3 + 4);
  // What the first one reports from now on is not stored before it is killed.
  const letGo = await database.begin("LOCK TABLE limit_episode IN EXCLUSIVE MODE");
  await ask(first, 100);
  first.weir.signal("SIGKILL");
  await first.ended();
  await letGo();
  await ask(second, 20);
  await stored(3 + 4 + 20);
  // The time that the episode has left is skipped.
  await database.psql("UPDATE limit_episode SET ends_at = 1");
  // A delivery of the first one may have ended with it, and is repeated.
  await until("the last event", () => receiver.byId.size === 2);
  const events = [...receiver.byId.values()].flatMap(([one]) =>
    one === undefined ? [] : JSON.parse(one.body)
  );
  // Deliveries of two events have no order.
  assertEquals(events.map(({ event, data }) => [event, data.refusedHits]).toSorted(), [
    ["ratelimit.over_limit", undefined],
    ["ratelimit.over_limit.ended", 3 + 4 + 20],
  ]);
  assertEquals(events[0].data.episode, events[1].data.episode);
  await second.stop();
});
