import { Client, Get, Put } from "@weir/rest";
import { assert, assertEquals } from "@std/assert";
import { until } from "../../harness/until.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { EchoServer, failure, RawServer } from "../../harness/rest_fixture.ts";

Deno.test("retry: a body that breaks off is asked for again", async () => {
  const cut = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello";
  let answered = 0;
  await using server = await RawServer.start((socket) => {
    socket.end(answered++ < 2 ? cut : "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  });
  const client = new Client({ clock: FakeClock.byWaits(), retry: {} });
  assertEquals((await client.send({ method: Get, baseURL: server.origin })).body, "ok");
  assertEquals(answered, 3);
});

Deno.test("retry: answers that are not taken let go of their connections", async () => {
  const endless = "HTTP/1.1 503 Busy\r\ncontent-length: 1000000\r\n\r\nbusy";
  await using server = await RawServer.writing(endless, { end: false });
  const client = new Client({ clock: FakeClock.byWaits(), retry: { attempts: 4 }, maxResponseBytes: 3 });
  const error = await failure(() => client.send({ method: Get, baseURL: server.origin }));
  assertEquals([error.code, server.accepted], ["body_too_large", 4]);
  await until("all connections are closed", () => server.open === 0);
});

Deno.test("retry: every attempt sends the same", async () => {
  await using server = new EchoServer(() => new Response(null, { status: 503 }));
  const client = new Client({ clock: FakeClock.byWaits(), retry: {} });
  await client.send({
    method: Put,
    baseURL: `${server.origin}/a?b=c`,
    headers: { "x-a": "1" },
    body: "body",
  });
  const [first, ...others] = server.requests;
  assertEquals([first?.path, first?.headers["x-a"], first?.body.byteLength], ["/a?b=c", "1", 4]);
  assert(first !== undefined);
  assertEquals(others, [first, first]);
});
