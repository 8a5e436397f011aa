import { assertEquals } from "@std/assert";
import { createSender } from "../../src/webhooks/sender.ts";
import { EchoServer } from "../rest/rest_fixture.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { LOOPBACK } from "./sender_fixture.ts";

Deno.test("a receiver that repeats the endpoint's own headers does not get them kept", async () => {
  await using server = new EchoServer((_, request) =>
    new Response(JSON.stringify(Object.fromEntries(request.headers)), { status: 400 })
  );
  const sender = createSender({
    ...{ allow: LOOPBACK, connectTimeoutMs: 1_000, userAgent: "Weir/test", clock: new FakeClock() },
  });
  const headers = {
    authorization: "Bearer hidden-token-1",
    "x-tenant": "short",
    "content-type": "application/json",
    "x-svc-event": "order.created",
  };
  const request = { url: `${server.origin}/`, headers, body: new Uint8Array(), timeoutMs: 5_000 };
  const { status, response = "" } = await sender.send(request, { signal: new AbortController().signal });
  await sender.close();
  const told = JSON.parse(response);
  assertEquals([status, told.authorization, told["x-tenant"]], [400, "Bearer ***", "short"]);
  assertEquals([told["content-type"], told["x-svc-event"]], ["application/json", "order.created"]);
});
