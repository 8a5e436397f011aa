import { Client, type ClientOptions, Get, Head, Post } from "@weir/rest";
import { type ScriptedStep, ScriptedTransport } from "@weir/rest/testing";
import { assertEquals, assertThrows } from "#assert";
import { FakeClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";
import { failure } from "../../harness/rest_fixture.ts";

const REQUEST = { method: Get, baseURL: "https://api.example.com/items" };

function scripted(steps: readonly ScriptedStep[], options: ClientOptions = {}) {
  const transport = new ScriptedTransport(steps);
  return { transport, client: new Client({ fetch: transport.fetch, ...options }) };
}

Deno.test("ScriptedTransport: it answers step by step and keeps what was sent", async () => {
  const bytes = Uint8Array.from([0, 255, 128]);
  const { transport, client } = scripted([
    {},
    { status: 404, headers: { "X-A": "1", "set-cookie": ["a=1", "b=2"] }, body: "no" },
    { body: bytes },
    { status: 204, body: "left out" },
    ({ method, url, headers, body }) => ({ body: [method, url, headers["x-a"], body].join(" ") }),
  ]);
  const outcomes = [];
  for (let step = 0; step < 4; step++) {
    const { statusCode, headers, bodyBytes } = await client.send(REQUEST);
    outcomes.push([statusCode, headers, [...bodyBytes]]);
  }
  assertEquals(outcomes, [
    [200, {}, []],
    [404, { "x-a": ["1"], "set-cookie": ["a=1", "b=2"] }, [110, 111]],
    [200, {}, [0, 255, 128]],
    [204, {}, []],
  ]);
  assertEquals([...bytes], [0, 255, 128]);
  const request = { ...REQUEST, method: Post, headers: { "X-A": "1" }, queryParams: { b: "c" }, body: "ü" };
  assertEquals((await client.send(request)).body, `POST ${REQUEST.baseURL}?b=c 1 ü`);
  assertEquals(transport.requests[4], {
    method: "POST",
    url: `${REQUEST.baseURL}?b=c`,
    headers: { "content-type": "application/json", "x-a": "1" },
    body: "ü",
  });
  transport.assertDone();
});

Deno.test("ScriptedTransport: each failure is that of a platform", async () => {
  const table: [ScriptedStep, unknown[]][] = [
    [{ fail: "dns" }, ["network", "dns"]],
    [{ fail: "connect" }, ["network", "connect"]],
    [{ fail: "tls" }, ["network", "tls"]],
    [{ fail: "reset" }, ["network", undefined]],
    [() => ({ fail: "dns" }), ["network", "dns"]],
    [{ body: "part", interrupted: true }, ["body_interrupted", undefined]],
    [{ interrupted: true }, ["body_interrupted", undefined]],
    [{ status: 302, headers: { location: "ftp://host/" } }, ["network", "redirect"]],
  ];
  for (const [step, expected] of table) {
    const { transport, client } = scripted([step]);
    const error = await failure(() => client.send(REQUEST));
    assertEquals([error.code, error.kind], expected);
    transport.assertDone();
  }
});

Deno.test("ScriptedTransport: a step that hangs ends with the time or the signal", async () => {
  const clock = new FakeClock();
  const { transport, client } = scripted([{ fail: "hang" }, { fail: "hang" }], { clock, timeoutMs: 100 });
  const late = failure(() => client.send(REQUEST));
  await until("it is sent", () => transport.requests.length === 1);
  clock.advance(100);
  assertEquals((await late).code, "timeout");
  const abort = new AbortController();
  const cancelled = failure(() => client.send(REQUEST, { signal: abort.signal }));
  await until("it is sent", () => transport.requests.length === 2);
  abort.abort();
  assertEquals([(await cancelled).code, clock.waiting], ["aborted", 0]);
});

Deno.test("ScriptedTransport: redirects take a step each", async () => {
  const { transport, client } = scripted([{ status: 302, headers: { location: "/there" } }, { body: "ok" }]);
  assertEquals((await client.send({ ...REQUEST, method: Head })).statusCode, 200);
  assertEquals(transport.requests.map(({ method, url }) => `${method} ${url}`), [
    `HEAD ${REQUEST.baseURL}`,
    "HEAD https://api.example.com/there",
  ]);
});

Deno.test("ScriptedTransport: a request too many and a step too many are errors", async () => {
  const { transport, client } = scripted([{ status: 500 }, {}], { clock: FakeClock.byWaits() });
  assertEquals(
    assertThrows(() => transport.assertDone()).message,
    "Unused steps: 2",
  );
  await client.send(REQUEST);
  await client.send(REQUEST);
  transport.assertDone();
  const error = await failure(() => client.send({ ...REQUEST, queryParams: { token: "secret" } }));
  const words = `Cannot answer GET "${REQUEST.baseURL}": no step left`;
  assertEquals(error.message, `Cannot send GET "${REQUEST.baseURL}": the connection failed (${words})`);
});
