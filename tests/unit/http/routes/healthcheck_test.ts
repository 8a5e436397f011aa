import { assertEquals } from "#assert";
import { Health } from "../../../../src/base/health.ts";
import { healthRoutes } from "../../../../src/http/routes/healthcheck.ts";
import { createRouter } from "../../../../src/http/server/router.ts";
import { HandledHttp } from "../../../harness/http_fixture.ts";

function serveHealth(health: Health): HandledHttp {
  return new HandledHttp(({ log, clock }) => createRouter(healthRoutes(health), { logger: log, clock }));
}

async function seen(response: Response): Promise<{ status: number; body: string }> {
  return { status: response.status, body: await response.text() };
}

const FAILING = "config: no rules loaded\nsigterm: not healthy\nkv: one line\n";

const CASES: readonly (readonly [request: string, isHealthy: boolean, status: number, body: string])[] = [
  ["GET /healthcheck", true, 200, "OK"],
  ["HEAD /healthcheck", true, 200, ""],
  ["GET /healthcheck", false, 503, FAILING],
  ["HEAD /healthcheck", false, 503, ""],
  ["GET /livez", true, 200, "OK"],
  ["GET /livez", false, 200, "OK"],
  ["HEAD /livez", false, 200, ""],
];

for (const [request, isHealthy, status, body] of CASES) {
  Deno.test(`${request} while ${isHealthy ? "healthy" : "not healthy"} is ${status}`, async () => {
    const health = new Health();
    health.set("config", isHealthy, "no rules loaded");
    health.set("sigterm", isHealthy);
    health.set("cache", true);
    health.set("kv", isHealthy, "one\r\n line");
    const [method = "", path = ""] = request.split(" ");
    assertEquals(await seen(await serveHealth(health).fetch(path, { method })), { status, body });
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
