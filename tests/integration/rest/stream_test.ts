import { Client, type ClientOptions, Get, Head, type SendOptions, sendStream } from "@weir/rest";
import { ScriptedTransport } from "@weir/rest/testing";
import { assert, assertEquals } from "#assert";
import { brotliCompressSync, constants } from "node:zlib";
import { FakeClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";
import {
  assertKeepsSecrets,
  CountedAbort,
  EchoServer,
  failure,
  RawServer,
  SECRET,
} from "../../harness/rest_fixture.ts";

/** Both limits, so that both have to be released. */
const LIMITS = { timeoutMs: 1_000, totalTimeoutMs: 2_000 };
const HALF = `HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n${SECRET}`;

Deno.test("sendStream: the body comes as it is sent, and its end releases the timers", async () => {
  let push: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
  const sent = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => void (push = controller),
  });
  await using server = new EchoServer(() => new Response(sent, { status: 201, headers: { "x-a": "b" } }));
  const clock = new FakeClock();
  const client = new Client({ clock, ...LIMITS });
  const { statusCode, headers, bodyStream } = await client.sendStream({
    method: Get,
    baseURL: server.origin,
  });
  assertEquals([statusCode, headers["x-a"]], [201, ["b"]]);
  const reader = bodyStream.getReader();
  for (const bytes of [[0, 255], [1, 2, 3]]) {
    push?.enqueue(Uint8Array.from(bytes));
    assertEquals([...(await reader.read()).value ?? []], bytes);
  }
  assertEquals(clock.waiting, 2);
  push?.close();
  assertEquals([(await reader.read()).done, clock.waiting], [true, 0]);
});

Deno.test("sendStream: a brotli bomb comes in pieces of some megabytes", async () => {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 5 };
  const bomb = new Uint8Array(brotliCompressSync(new Uint8Array(100_000_000), { params }));
  const headers = { "content-encoding": "identity, br" };
  await using server = new EchoServer(() => new Response(bomb, { headers }));
  const { bodyStream } = await sendStream({ method: Get, baseURL: server.origin });
  const reader = bodyStream.getReader();
  const { value = new Uint8Array() } = await reader.read();
  await reader.cancel();
  assert(value.byteLength > 0 && value.byteLength < 20_000_000, `${value.byteLength} bytes`);
});

Deno.test("sendStream: an answer without a body holds no timer, read or not", async () => {
  await using server = new EchoServer(() => new Response(null, { status: 204 }));
  const clock = new FakeClock();
  const abort = new CountedAbort();
  const client = new Client({ clock, ...LIMITS, maxResponseBytes: 0 });
  for (const method of [Get, Head]) {
    const request = { method, baseURL: server.origin };
    const { bodyStream } = await client.sendStream(request, { signal: abort.signal });
    assertEquals([clock.waiting, abort.listening], [0, 0]);
    assertEquals(await new Response(bodyStream).text(), "");
  }
});

Deno.test("sendStream: who cancels lets go of the timers and of the connection", async () => {
  await using server = await RawServer.writing(HALF, { end: false });
  const clock = new FakeClock();
  const abort = new CountedAbort();
  const client = new Client({ clock, ...LIMITS });
  const request = { method: Get, baseURL: server.origin };
  for (const isRead of [false, true]) {
    const { bodyStream } = await client.sendStream(request, { signal: abort.signal });
    const reader = bodyStream.getReader();
    if (isRead) assertEquals(new TextDecoder().decode((await reader.read()).value), SECRET);
    assertEquals([clock.waiting, abort.listening], [2, 1]);
    await reader.cancel();
    assertEquals([clock.waiting, abort.listening], [0, 0]);
    await until("the connection is closed", () => server.open === 0);
  }
});

/** Ways in which a stream fails after its first part, whose length is that of the secret. */
const FAILS:
  readonly (readonly [string, ClientOptions, (clock: FakeClock, abort: CountedAbort) => void, string])[] = [
    ["timeout", LIMITS, (clock) => clock.advance(1_000), "timed out after 1000 ms"],
    [
      "timeout",
      { totalTimeoutMs: 2_000 },
      (clock) => clock.advance(2_000),
      "timed out after 2000 ms in total",
    ],
    ["aborted", LIMITS, (_, abort) => abort.abort("left"), "the request was aborted"],
    ["aborted", {}, (_, abort) => abort.abort("left"), "the request was aborted"],
  ];

for (const [code, options, end, state] of FAILS) {
  for (const isWaiting of [true, false]) {
    Deno.test(`sendStream: ${code} in its midst, ${JSON.stringify(options)}, read waiting: ${isWaiting}`, async () => {
      await using server = await RawServer.writing(HALF, { end: false });
      const clock = new FakeClock();
      const abort = new CountedAbort();
      const request = { method: Get, baseURL: `${server.origin}/?${SECRET}` };
      const client = new Client({ clock, ...options });
      const { bodyStream } = await client.sendStream(request, { signal: abort.signal });
      const reader = bodyStream.getReader();
      assertEquals((await reader.read()).value?.byteLength, SECRET.length);
      if (isWaiting) {
        const failed = failure(() => reader.read());
        end(clock, abort);
        await failed;
      } else end(clock, abort);
      const error = await failure(() => reader.read());
      assertEquals([error.code, error.message], [code, `Cannot send GET "${server.origin}/": ${state}`]);
      assert(error.request === request);
      assertKeepsSecrets(error);
      assertEquals([clock.waiting, abort.listening], [0, 0]);
      await until("the connection is closed", () => server.open === 0);
    });
  }
}

Deno.test("sendStream: a body that breaks off or grows too large fails when it does", async () => {
  const chunk = `7\r\n${SECRET}\r\n`;
  const table: [string, ClientOptions, string, number][] = [
    [HALF, {}, "body_interrupted", 1],
    [`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunk}`, {}, "body_interrupted", 1],
    [HALF, { maxResponseBytes: 99 }, "body_too_large", 0],
    [
      `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunk}`,
      { maxResponseBytes: 6 },
      "body_too_large",
      0,
    ],
  ];
  for (const [text, options, code, parts] of table) {
    await using server = await RawServer.writing(text);
    const clock = new FakeClock();
    // One that breaks off was handed over already: it is not asked for again.
    const client = new Client({ clock, ...LIMITS, retry: {}, ...options });
    const { bodyStream } = await client.sendStream({ method: Get, baseURL: server.origin });
    let read = 0;
    const error = await failure(async () => {
      for await (const _ of bodyStream) read++;
    });
    assertEquals([error.code, read, server.accepted, clock.waiting], [code, parts, 1, 0]);
    assertKeepsSecrets(error);
  }
});

Deno.test("sendStream: a status is tried again before the body is handed over", async () => {
  const transport = new ScriptedTransport([{ status: 503, body: "busy" }, { fail: "dns" }, { body: "ok" }]);
  const client = new Client({ fetch: transport.fetch, clock: FakeClock.byWaits(), retry: {} });
  const request = { method: Get, baseURL: "https://api.example.com/" };
  const options: SendOptions = { throwOnStatus: true };
  const { bodyStream } = await client.sendStream(request, options);
  assertEquals(await new Response(bodyStream).text(), "ok");
  transport.assertDone();
});

Deno.test("sendStream: a failure before the headers releases the timers", async () => {
  const clock = new FakeClock();
  for (const fail of ["dns", "hang"] as const) {
    const transport = new ScriptedTransport([{ fail }]);
    const client = new Client({ fetch: transport.fetch, clock, ...LIMITS });
    const failed = failure(() => client.sendStream({ method: Get, baseURL: "https://api.example.com/" }));
    await until("it is sent", () => transport.requests.length === 1);
    clock.advance(1_000);
    assertEquals([(await failed).code, clock.waiting], [fail === "dns" ? "network" : "timeout", 0]);
  }
});
