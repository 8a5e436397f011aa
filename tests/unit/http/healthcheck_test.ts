import { assertEquals } from "@std/assert";
import { Health } from "../../../src/base/health.ts";
import { healthRoutes } from "../../../src/http/healthcheck.ts";
import { createRouter } from "../../../src/http/router.ts";
import { HandledHttp } from "../../harness/http_fixture.ts";

function serveHealth(health: Health): HandledHttp {
  return new HandledHttp(({ log, clock }) => createRouter(healthRoutes(health), { logger: log, clock }));
}

async function seen(response: Response): Promise<{ status: number; body: string }> {
  return { status: response.status, body: await response.text() };
}

const FAILING = "config: no rules loaded\nsigterm: not healthy\nkv: one line\n";

const CASES: readonly { method: string; path: string; healthy: boolean; status: number; body: string }[] = [
  { method: "GET", path: "/healthcheck", healthy: true, status: 200, body: "OK" },
  { method: "HEAD", path: "/healthcheck", healthy: true, status: 200, body: "" },
  { method: "GET", path: "/healthcheck", healthy: false, status: 503, body: FAILING },
  { method: "HEAD", path: "/healthcheck", healthy: false, status: 503, body: "" },
  { method: "GET", path: "/livez", healthy: true, status: 200, body: "OK" },
  { method: "GET", path: "/livez", healthy: false, status: 200, body: "OK" },
  { method: "HEAD", path: "/livez", healthy: false, status: 200, body: "" },
];

for (const { method, path, healthy, status, body } of CASES) {
  Deno.test(`${method} ${path} while ${healthy ? "healthy" : "not healthy"} is ${status}`, async () => {
    const health = new Health();
    health.set("config", healthy, "no rules loaded");
    health.set("sigterm", healthy);
    health.set("cache", true);
    health.set("kv", healthy, "one\r\n line");
    const served = serveHealth(health);
    assertEquals(await seen(await served.fetch(path, { method })), { status, body });
  });
}

Deno.test("what a healthy component has to say stands behind the OK, until it is taken back", async () => {
  const health = new Health();
  const served = serveHealth(health);
  const look = async () => Object.values(await seen(await served.fetch("/healthcheck")));
  health.set("webhooks", true);
  assertEquals(await look(), [200, "OK"]);
  health.degrade("webhooks", ["the clock\nis off", "no endpoint answers"]);
  assertEquals(await look(), [200, "OK\nwebhooks: the clock is off\nwebhooks: no endpoint answers\n"]);
  health.set("webhooks", false, "no store");
  assertEquals(await look(), [503, "webhooks: no store\n"]);
  health.set("webhooks", true);
  health.degrade("webhooks", []);
  assertEquals(await look(), [200, "OK"]);
});

Deno.test("POST /healthcheck is 405 with what is allowed", async () => {
  const served = serveHealth(new Health());
  const response = await served.fetch("/healthcheck", { method: "POST", body: "x" });
  await response.body?.cancel();
  assertEquals([response.status, response.headers.get("allow")], [405, "GET, HEAD"]);
});
