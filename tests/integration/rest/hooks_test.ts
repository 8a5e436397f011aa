import { Client, type ClientOptions, Get, type HookContext, Post, send, type SendOptions } from "@weir/rest";
import { type ScriptedStep, ScriptedTransport } from "@weir/rest/testing";
import { assert, assertEquals, assertRejects, assertThrows } from "#assert";
import { until } from "../../harness/until.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { EchoServer, failure, RawServer } from "../../harness/rest_fixture.ts";

const REQUEST = { method: Get, baseURL: "https://api.example.com/items" };

Deno.test("hooks: they see each attempt, in their order", async () => {
  const seen: unknown[] = [];
  const transport = new ScriptedTransport([{ status: 503 }, { fail: "dns" }, { body: "ok" }]);
  const client = new Client({
    fetch: transport.fetch,
    clock: FakeClock.byWaits(),
    retry: {},
    onRequest: ({ method, url }, { attempt }) => void seen.push(["before", method, url, attempt]),
    onResponse: ({ status }, { attempt }: HookContext) => void seen.push(["after", status, attempt]),
  });
  assertEquals((await client.send({ ...REQUEST, queryParams: { a: "1" } })).body, "ok");
  const url = `${REQUEST.baseURL}?a=1`;
  assertEquals(seen, [
    ["before", "GET", url, 1],
    ["after", 503, 1],
    ["before", "GET", url, 2],
    ["before", "GET", url, 3],
    ["after", 200, 3],
  ]);
});

Deno.test("hooks: onRequest changes headers, later too, and each attempt starts afresh", async () => {
  const transport = new ScriptedTransport([{ status: 503 }, {}]);
  const client = new Client({
    fetch: transport.fetch,
    clock: FakeClock.byWaits(),
    retry: { methods: [Post] },
    async onRequest(request, { attempt }) {
      await Promise.resolve();
      request.headers.append("x-attempts", String(attempt));
      request.headers.delete("x-gone");
    },
  });
  await client.send({ ...REQUEST, method: Post, headers: { "X-Gone": "1" }, body: "body" });
  const sent = transport.requests.map(({ headers, body }) => ({ headers, body }));
  assertEquals(
    sent,
    ["1", "2"].map((attempt) => ({
      headers: { "content-type": "application/json", "x-attempts": attempt },
      body: "body",
    })),
  );
});

Deno.test("hooks: onRequest may answer another request, streamed bodies included", async () => {
  await using server = new EchoServer(({ body }) => new Response(body));
  const client = new Client({
    onRequest: (request) => new Request(`${server.origin}/other`, request),
  });
  const body = new Blob(["streamed"]).stream();
  const response = await client.send({ ...REQUEST, method: Post, headers: { "x-a": "1" }, body });
  assertEquals(response.body, "streamed");
  const [seen] = server.requests;
  assertEquals([seen?.method, seen?.path, seen?.headers["x-a"]], ["POST", "/other", "1"]);
});

Deno.test("hooks: onResponse may answer another response, and the first one lets go of its connection", async () => {
  const endless = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhello";
  await using server = await RawServer.writing(endless, { end: false });
  // Kept, because what is unreferenced is collected in any case, only later.
  const kept: Response[] = [];
  const client = new Client({
    onResponse(response) {
      kept.push(response);
      return new Response("other", { status: 202 });
    },
  });
  const { statusCode, body } = await client.send({ method: Get, baseURL: server.origin });
  assertEquals([statusCode, body], [202, "other"]);
  await until("the connection is closed", () => server.open === 0);
  assertEquals(kept.length, 1);
  await using echo = new EchoServer(() => new Response("body"));
  const shout = new TransformStream<string, string>({
    transform: (text, controller) => controller.enqueue(text.toUpperCase()),
  });
  const table: [NonNullable<SendOptions["onResponse"]>, string][] = [
    [(response) => new Response(response.body, { status: 203 }), "body"],
    [(response) => response, "body"],
    [(response) => response.clone(), "body"],
    [async (response) => new Response(`${await response.text()}!`), "body!"],
    [({ body }) =>
      new Response(
        body?.pipeThrough(new TextDecoderStream()).pipeThrough(shout).pipeThrough(new TextEncoderStream()),
      ), "BODY"],
  ];
  for (const [onResponse, text] of table) {
    assertEquals((await send({ method: Get, baseURL: echo.origin }, { onResponse })).body, text);
  }
});

Deno.test("hooks: what they throw ends the call as it is, and lets go of the connection", async () => {
  const endless = "HTTP/1.1 503 Busy\r\ncontent-length: 1000\r\n\r\nhello";
  await using server = await RawServer.writing(endless, { end: false });
  const thrown = new Error("not today");
  const throwing = (): never => {
    throw thrown;
  };
  const kept: Response[] = [];
  const table: [ClientOptions, number][] = [
    [{ onRequest: throwing }, 0],
    [{ onRequest: () => Promise.reject(thrown) }, 0],
    [{ onResponse: (response) => (kept.push(response), throwing()) }, 1],
    [{ onResponse: (response) => (kept.push(response), Promise.reject(thrown)) }, 2],
  ];
  for (const [options, accepted] of table) {
    const client = new Client({ ...options, retry: {} });
    assert(await assertRejects(() => client.send({ method: Get, baseURL: server.origin })) === thrown);
    assertEquals(server.accepted, accepted);
  }
  await until("the connections are closed", () => server.open === 0);
  assertEquals(kept.length, 2);
});

Deno.test("options: an invalid value is reported with what is expected", async () => {
  const whole = (most: string) => `expected an integer from 1 to ${most}`;
  const table: [ClientOptions, string][] = [
    [{ timeoutMs: 0 }, `timeoutMs 0: ${whole("2147483647")}`],
    [{ timeoutMs: 2 ** 31 }, `timeoutMs 2147483648: ${whole("2147483647")}`],
    [{ timeoutMs: NaN }, `timeoutMs NaN: ${whole("2147483647")}`],
    [{ totalTimeoutMs: 1.5 }, `totalTimeoutMs 1.5: ${whole("2147483647")}`],
    [{ maxResponseBytes: -1 }, "maxResponseBytes -1: expected an integer from 0 to 9007199254740991"],
    [{ retry: { attempts: 0 } }, `retry.attempts 0: ${whole("1000")}`],
    [{ retry: { backoffMs: -1 } }, "retry.backoffMs -1: expected an integer from 0 to 2147483647"],
    [{ retry: { maxDelayMs: 0.5 } }, "retry.maxDelayMs 0.5: expected an integer from 0 to 2147483647"],
    [{ retry: { statuses: [503, 600] } }, "retry.statuses 600: expected an integer from 100 to 599"],
    [{ redirect: JSON.parse('"error"') }, 'redirect "error": expected "follow" or "manual"'],
    [{ sensitiveHeaders: ["x-a", "x b"] }, 'sensitiveHeaders "x b": expected header names'],
  ];
  const transport = new ScriptedTransport([]);
  const client = new Client({ fetch: transport.fetch });
  for (const [options, text] of table) {
    // Those of a call are checked as well, and nothing is sent.
    for (
      const error of [
        assertThrows(() => new Client(options)),
        await assertRejects(() => client.send(REQUEST, options)),
      ]
    ) {
      assertEquals([error instanceof RangeError, error.message], [true, `Invalid ${text}`]);
    }
  }
  assertEquals(transport.requests.length, 0);
});

Deno.test("options: those of a call win over those of the client, and undefined takes one back", async () => {
  const busy: ScriptedStep = { status: 503, body: "busy" };
  const outcome = async (options: SendOptions | undefined): Promise<unknown> => {
    const transport = new ScriptedTransport([busy, busy, busy]);
    const client = new Client({
      fetch: transport.fetch,
      clock: FakeClock.byWaits(),
      retry: { attempts: 2 },
      throwOnStatus: true,
    });
    const result = await client.send(REQUEST, options).then(({ body }) => body, ({ code }) => code);
    return [result, transport.requests.length];
  };
  assertEquals(await outcome(undefined), ["status", 2]);
  assertEquals(await outcome({}), ["status", 2]);
  assertEquals(await outcome({ throwOnStatus: undefined }), ["busy", 2]);
  assertEquals(await outcome({ retry: undefined }), ["status", 1]);
  assertEquals(await outcome({ retry: { attempts: 3 }, throwOnStatus: false }), ["busy", 3]);
  assertEquals(await outcome({ maxResponseBytes: 3 }), ["body_too_large", 2]);
});

Deno.test("options: later changes of the object that a client was made of do not count", async () => {
  const transport = new ScriptedTransport([{ status: 500 }]);
  const options = { fetch: transport.fetch, throwOnStatus: true };
  const client = new Client(options);
  options.throwOnStatus = false;
  assertEquals((await failure(() => client.send(REQUEST))).code, "status");
});

Deno.test("hooks: an idempotency key that onRequest sets or removes counts for the retry", async () => {
  const table:
    readonly (readonly [NonNullable<ClientOptions["onRequest"]>, Record<string, string>, number])[] = [
      [({ headers }) => headers.set("Idempotency-Key", "k"), {}, 3],
      [(request) => new Request(request, { headers: { "idempotency-key": "k" } }), {}, 3],
      [(request) => new Request(request, { method: "PUT" }), {}, 3],
      [({ headers }) => headers.delete("idempotency-key"), { "Idempotency-Key": "k" }, 1],
      [() => {}, { "Idempotency-Key": "k" }, 3],
      [() => {}, {}, 1],
    ];
  for (const [onRequest, headers, attempts] of table) {
    const transport = new ScriptedTransport([{ status: 503 }, { fail: "reset" }, { status: 201 }]);
    const client = new Client({ fetch: transport.fetch, clock: FakeClock.byWaits(), retry: {}, onRequest });
    await client.send({ ...REQUEST, method: Post, headers, body: "{}" });
    assertEquals(transport.requests.length, attempts);
  }
});
