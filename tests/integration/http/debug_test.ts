import { assertEquals } from "#assert";
import { until } from "../../harness/until.ts";
import { debugHandler, ServedHttp } from "../../harness/http_fixture.ts";

function serveDebug(allowedHosts: readonly string[] = []): ServedHttp {
  return new ServedHttp(debugHandler({ allowedHosts, newRequestId: () => "made" }));
}

/** A host, and whether `/stats` is answered for it; the health always is. */
const HOSTS: readonly (readonly [host: string, status: number])[] = [
  ["localhost", 200],
  ["a.localhost:6070", 200],
  ["127.0.0.1:6070", 200],
  ["[::1]:6070", 200],
  ["10.1.2.3", 200],
  ["weir.example", 200],
  ["WEIR.example.", 200],
  ["evil.example", 403],
  ["weir.example.evil.example", 403],
  ["127.0.0.1.evil.example", 403],
];

for (const [host, status] of HOSTS) {
  Deno.test(`a request to the host ${host} is ${status}`, async () => {
    await using served = serveDebug(["weir.example"]);
    for (
      const [path, expected] of [["/stats", status], ["/", status], ["/livez", 200], ["/healthcheck", 200]]
    ) {
      using raw = await served.dial();
      await raw.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      assertEquals([path, Number((await raw.read()).split(" ")[1])], [path, expected]);
    }
  });
}

Deno.test("a profile ends when its client leaves", async () => {
  await using served = serveDebug();
  const raw = await served.dial();
  await raw.write("GET /debug/pprof/profile?seconds=300 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await until("the recording to run", () => served.clock.waiting === 1);
  raw.close();
  await until("the recording to end", () => served.clock.waiting === 0);
  const next = fetch(served.url("/debug/pprof/profile?seconds=1"));
  await until("the next recording to run", () => served.clock.waiting === 1);
  served.clock.advance(1_000);
  const response = await next;
  await response.body?.cancel();
  assertEquals([response.status, served.log.lines], [200, []]);
});

Deno.test("a profile ends when the listener is closed", async () => {
  const served = new ServedHttp(debugHandler(), { isTimed: true });
  const answer = fetch(served.url("/debug/pprof/profile?seconds=300"));
  await until("the recording to run", () => served.clock.waiting === 2);
  const closed = served.listener.close(1_000);
  served.clock.advance(1_000);
  const response = await answer;
  await response.body?.cancel();
  assertEquals(response.status, 503);
  await closed;
  await until("the recording to end", () => served.clock.waiting === 0);
});
