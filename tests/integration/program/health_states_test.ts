import { assertEquals, assertMatch } from "#assert";
import { join } from "node:path";
import { HEALTH_CHECK_REQUEST, HEALTH_CHECK_RESPONSE, SERVING_STATUS } from "../../../src/wire/health.ts";
import { callUnary, readServer } from "../../../src/cli/client.ts";
import { ran } from "../../harness/administration_fixture.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { freePort } from "../../harness/free_port.ts";
import { startMemcached } from "../../harness/memcached.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import { badConfig, shopConfig, XdsServer } from "../../harness/xds_server.ts";
import { shopRequest } from "../settings/settings_bed.ts";

const RULE =
  "domain: shop\ndescriptors:\n  - { key: open, rate_limit: { unit: day, requests_per_unit: 9 } }\n";
const RULES = { "shop.yaml": RULE };
const BROKEN = RULE.replace("unit: day", "unit: fortnight");
const MEANWHILE = {
  error: "calls fail",
  allow: "hits are allowed",
  deny: "hits are denied",
  local: "every instance counts for itself",
} as const;
const STATES = ["ok", "degraded", "failing"] as const;

/** Waits for a state, and compares what every place shows of it; answers the lines of the health check. */
async function stateIs(weir: ServeFixture, state: typeof STATES[number]): Promise<string[]> {
  const ask = async () => {
    const response = await fetch(`http://${weir.httpAddress}/healthcheck`);
    return { status: response.status, lines: (await response.text()).trimEnd().split("\n") };
  };
  const { status, lines } = await until(state, async () => {
    const seen = await ask();
    const isOk = seen.lines[0] === "OK";
    return (isOk ? (seen.lines.length > 1 ? "degraded" : "ok") : "failing") === state && seen;
  });
  const url = `http://${weir.httpAddress}`;
  const exit = async (...flags: string[]) => (await ran(["health", "--url", url, ...flags])).code;
  const { status: serving } = await callUnary({
    ...readServer(weir.grpcAddress),
    method: "/grpc.health.v1.Health/Check",
    timeoutMs: 60_000,
    tls: undefined,
    request: HEALTH_CHECK_REQUEST.encode({ service: "" }),
    decode: (bytes) => HEALTH_CHECK_RESPONSE.decode(bytes),
  });
  const stats = await weir.stats();
  // The page gets a snapshot each second.
  const page = await until("the page", async () => {
    const shown = await pageState(weir);
    return shown === state && shown;
  });
  assertEquals({
    status,
    exit: await exit(),
    strict: await exit("--strict"),
    serving: serving === SERVING_STATUS.SERVING,
    metric: STATES.filter((name) => stats[`ratelimit.process.health.${name}`] === 1),
    page,
  }, {
    status: state === "failing" ? 503 : 200,
    exit: state === "failing" ? 1 : 0,
    strict: state === "ok" ? 0 : 1,
    serving: state !== "failing",
    metric: [state],
    page: state,
  });
  return lines.filter((line) => line !== "OK");
}

/** The state that is sent to the web page. */
async function pageState(weir: ServeFixture): Promise<string> {
  const response = await fetch(`http://${weir.debugAddress}/ui/live`);
  let text = "";
  for await (const part of (response.body ?? new Blob().stream()).pipeThrough(new TextDecoderStream())) {
    text += part;
    const [, state] = /"health":\{"state":"(\w+)"/.exec(text) ?? [];
    if (state !== undefined) return state;
  }
  throw new Error("Cannot read the state of the page");
}

for (const [mode, words] of Object.entries(MEANWHILE)) {
  Deno.test({
    ...needs(["redis-server"], `health: the cache away without a call, CACHE_ON_FAILURE=${mode}`),
    async fn() {
      await using redis = await startRedis();
      const env = { BACKEND_TYPE: "kv", KV_URL: redis.url, CACHE_ON_FAILURE: mode };
      await using weir = await ServeFixture.start({ env, rules: RULES });
      await stateIs(weir, "ok");
      await redis.kill();
      const [line = "", ...others] = await stateIs(weir, "degraded");
      assertMatch(line, /^cache: no connection to 127\.0\.0\.1:\d+: /);
      assertEquals([line.endsWith(`; meanwhile ${words} (CACHE_ON_FAILURE=${mode})`), others], [true, []]);
      await redis.restartOnSamePort();
      await stateIs(weir, "ok");
    },
  });
}

Deno.test({
  ...needs(
    ["redis-server"],
    "health: the cache away at the start, with and without KV_HEALTH_CHECK_ACTIVE_CONNECTION",
  ),
  async fn() {
    for (const [setting, state] of [["false", "degraded"], ["true", "failing"]] as const) {
      const KV_URL = `redis://:a-password@127.0.0.1:${freePort()}`;
      const env = { BACKEND_TYPE: "kv", KV_URL, KV_HEALTH_CHECK_ACTIVE_CONNECTION: setting };
      await using weir = await ServeFixture.start({ env, rules: RULES });
      const lines = (await stateIs(weir, state)).join();
      assertEquals([lines.startsWith("cache: no connection to "), lines.includes("a-password")], [
        true,
        false,
      ]);
    }
  },
});

Deno.test({
  ...needs(["redis-server"], "health: the cache of limits per second away"),
  async fn() {
    await using redis = await startRedis();
    await using perSecond = await startRedis();
    const env = {
      BACKEND_TYPE: "kv",
      KV_URL: redis.url,
      KV_PERSECOND: "true",
      KV_PERSECOND_URL: perSecond.url,
      CACHE_ON_FAILURE: "allow",
    };
    await using weir = await ServeFixture.start({ env, rules: RULES });
    await stateIs(weir, "ok");
    await perSecond.kill();
    assertEquals((await stateIs(weir, "degraded")).length, 1);
  },
});

Deno.test({
  ...needs(["redis-server"], "health: a cache that has a connection and cannot count"),
  async fn() {
    await using redis = await startRedis();
    const env = { BACKEND_TYPE: "kv", KV_URL: redis.url };
    await using weir = await ServeFixture.start({ env, rules: RULES });
    await redis.command("CONFIG", "SET", "maxmemory", "1");
    const calling = setInterval(() => void weir.ask(shopRequest("open=a")).catch(() => {}), 50);
    try {
      const [line = ""] = await stateIs(weir, "degraded");
      assertMatch(
        line,
        /^decisions: the cache failed for \d+ decisions? in the last 5 s; meanwhile calls fail /,
      );
    } finally {
      clearInterval(calling);
    }
    await redis.command("CONFIG", "SET", "maxmemory", "0");
    await stateIs(weir, "ok");
  },
});

Deno.test({
  ...needs(["memcached"], "health: one of two nodes of memcached away"),
  async fn() {
    await using one = await startMemcached();
    await using other = await startMemcached();
    const MC_HOST_PORT = `127.0.0.1:${one.port},127.0.0.1:${other.port}`;
    const env = { BACKEND_TYPE: "mc", MC_HOST_PORT, KV_HEALTH_CHECK_ACTIVE_CONNECTION: "true" };
    await using weir = await ServeFixture.start({ env, rules: RULES });
    await stateIs(weir, "ok");
    await other.kill();
    assertMatch(
      (await stateIs(weir, "degraded")).join(),
      new RegExp(`^cache: no connection to 127.0.0.1:${other.port}: `),
    );
    await one.kill();
    await stateIs(weir, "failing");
  },
});

Deno.test("health: rejected rules are named with file and line, without their folder", async () => {
  await using weir = await ServeFixture.start({ rules: RULES });
  await stateIs(weir, "ok");
  const file = join(weir.rulesFolder, "shop.yaml");
  await Deno.writeTextFile(file, BROKEN);
  const [line = ""] = await stateIs(weir, "degraded");
  assertMatch(line, /^config: rules rejected, the previous rules stay: shop\.yaml:3:38: .*fortnight/);
  await Deno.writeTextFile(file, RULE);
  await stateIs(weir, "ok");
});

Deno.test("health: a start that waits for valid rules says so, and weir health finds it", async () => {
  await using weir = await ServeFixture.begin({ rules: { "shop.yaml": BROKEN } });
  const page = () => weir.page("/healthcheck");
  const reason = /^start: waiting for valid rules: shop\.yaml:3:38: .*fortnight.*\n$/;
  await until("the reason", async () => reason.test(await page()));
  const [DEBUG_HOST = "", DEBUG_PORT = ""] = weir.debugAddress.split(":");
  const environment = { PORT: `${freePort()}`, DEBUG_HOST, DEBUG_PORT };
  const { code, stderr } = await ran(["health"], { environment });
  assertEquals(code, 1);
  assertMatch(stderr, /: 503: start: waiting for valid rules: shop\.yaml:3:38: .*fortnight/);
  await Deno.writeTextFile(join(weir.rulesFolder, "shop.yaml"), RULE);
  await weir.opened;
  await stateIs(weir, "ok");
});

Deno.test("health: a configuration server that is unavailable, that sends bad rules, and that works", async () => {
  await using server = new XdsServer({ port: freePort() });
  const env = {
    CONFIG_TYPE: "GRPC_XDS_SOTW",
    CONFIG_GRPC_XDS_SERVER_URL: server.url,
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: "100ms",
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: "100ms",
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: "200ms",
  };
  await using weir = await ServeFixture.begin({ env });
  const startIs = (what: string) =>
    until(what, async () => (await weir.page("/healthcheck")).startsWith(`start: waiting for ${what}`));
  await startIs("the configuration server: ");
  await server.listen();
  await startIs("the first rules");
  server.set("1", badConfig());
  await startIs('valid rules: resource "shop": ');
  server.set("2", shopConfig({ open: 1 }));
  await weir.opened;
  await stateIs(weir, "ok");
  server.set("3", badConfig());
  assertMatch(
    (await stateIs(weir, "degraded")).join(),
    /^config: rules rejected, the previous rules stay: resource "shop"/,
  );
  server.set("4", shopConfig({ open: 1 }));
  await stateIs(weir, "ok");
  await server[Symbol.asyncDispose]();
  assertMatch((await stateIs(weir, "degraded")).join(), /^configuration_server: no connection: /);
});

Deno.test({
  ...needs(["openssl"], "health: certificates that expire soon, that have expired, and that were renewed"),
  async fn() {
    await using certificates = await makeCertificates();
    const soon = await certificates.issue("soon", { names: "DNS:localhost", days: 13 });
    const env = {
      GRPC_SERVER_USE_TLS: "false",
      HTTP_SERVER_USE_TLS: "false",
      WEBHOOK_STORE: join(certificates.folder, "weir.db"),
      WEBHOOK_CA_FILE: soon.certFile,
    };
    await using weir = await ServeFixture.start({ env });
    assertMatch(
      (await stateIs(weir, "degraded")).join(),
      /^certificates: WEBHOOK_CA_FILE expires in 12 days, on 20\d\d-[-\dT:.]+Z$/,
    );
    const { "ratelimit.certificates.expires_in_seconds.WEBHOOK_CA_FILE": left = 0 } = await weir.stats();
    assertEquals([left > 12 * 86_400, left < 13 * 86_400], [true, true]);
    await certificates.issue("soon", { names: "DNS:localhost", isExpired: true });
    await until(
      "an expired certificate",
      async () => (await weir.page("/healthcheck")).includes("certificates: WEBHOOK_CA_FILE expired on "),
    );
    await certificates.issue("soon", { names: "DNS:localhost" });
    await stateIs(weir, "ok");
  },
});

Deno.test({
  ...needs(
    ["redis-server", "openssl"],
    "health: files for TLS to the cache that became unusable keep their last good content",
  ),
  async fn() {
    await using certificates = await makeCertificates();
    await using redis = await startRedis({ tls: certificates.redisTls() });
    const { authority, client, otherClient, folder } = certificates;
    const [cert, key, ca] = [join(folder, "used.pem"), join(folder, "used.key"), join(folder, "ca.pem")];
    const use = async () => {
      await Deno.copyFile(client.certFile, cert);
      await Deno.copyFile(client.keyFile, key);
      await Deno.copyFile(authority.certFile, ca);
    };
    await use();
    const env = {
      BACKEND_TYPE: "kv",
      KV_URL: redis.tlsUrl,
      KV_TLS: "true",
      KV_TLS_CACERT: ca,
      KV_TLS_CLIENT_CERT: cert,
      KV_TLS_CLIENT_KEY: key,
    };
    await using weir = await ServeFixture.start({ env, rules: RULES });
    await stateIs(weir, "ok");
    await Deno.copyFile(otherClient.keyFile, key);
    await Deno.truncate(ca);
    // Every new connection reads the files.
    await redis.command("CLIENT", "KILL", "TYPE", "normal");
    const causes = [
      "certificates: KV_TLS_CLIENT_CERT cannot be used with KV_TLS_CLIENT_KEY",
      "certificates: KV_TLS_CACERT cannot be read",
    ];
    const isShown = async () => (await stateIs(weir, "degraded")).join() === causes.join();
    await until("the causes without one of the cache", isShown);
    await weir.ask(shopRequest("open=a"));
    const kept = weir.log.filter((line) => line.includes("TLS files cannot be used"));
    assertEquals(kept.length, 2, kept.join("\n"));
    await use();
    await stateIs(weir, "ok");
  },
});

Deno.test("health: as soon as it is ok, a trigger is accepted", async () => {
  await using folder = await WebhookFolder.make();
  const key = await (async () => {
    await using weir = await folder.serve();
    return (await api(weir.running.addresses.http, "/triggers", { body: { name: "echo", workflow: "echo" } }))
      .body.key;
  })();
  await using weir = await folder.serve({}, { isAwaited: false });
  const { http } = weir.running.addresses;
  await until("a good health", async () => {
    const response = await fetch(`http://${http}/healthcheck`);
    await response.body?.cancel();
    return response.ok;
  }, { intervalMs: 1 });
  const { status } = await api(http, "/workflows/triggers/echo", { token: key, body: { total: 1 } });
  assertEquals(status, 202);
});
