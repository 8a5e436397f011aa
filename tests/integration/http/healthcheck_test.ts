import { assertEquals } from "@std/assert";
import { Health } from "../../../src/base/health.ts";
import { healthRoutes } from "../../../src/http/healthcheck.ts";
import { createRouter } from "../../../src/http/router.ts";
import { ServedHttp } from "../../harness/http_fixture.ts";

function serveHealth(health: Health): ServedHttp {
  return new ServedHttp(({ log, clock }) => createRouter(healthRoutes(health), { logger: log, clock }));
}

Deno.test("HEAD tells the length that GET has", async () => {
  await using served = serveHealth(new Health());
  using raw = await served.dial();
  await raw.write("HEAD /healthcheck HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const text = await raw.read();
  assertEquals([/content-length: (\d+)/i.exec(text)?.[1], text.split("\r\n\r\n")[1]], ["2", ""]);
});
