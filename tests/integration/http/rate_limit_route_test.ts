import { assertEquals, assertMatch } from "#assert";
import type { Caller } from "../../../src/ratelimit/decision/counter_cache.ts";
import type { Decision } from "../../../src/ratelimit/decision.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { decisionHandler, OK_DECISION, ServedHttp, wholeJson } from "../../harness/http_fixture.ts";

const BODY = `{"domain":"d"}`;
const MIB = 1_048_576;

function post(served: ServedHttp, body: BodyInit): Promise<Response> {
  return fetch(served.url("/json"), { method: "POST", body });
}

Deno.test("a body whose second half comes later is read whole", async () => {
  await using served = new ServedHttp(decisionHandler(() => OK_DECISION));
  using raw = await served.dial();
  await raw.write(`POST /json HTTP/1.1\r\nHost: a\r\nContent-Length: 14\r\n\r\n${BODY.slice(0, 6)}`);
  await until("the rest to be awaited", () => served.clock.waiting === 1);
  served.clock.advance(9_999);
  await raw.write(BODY.slice(6));
  assertMatch(await raw.read(wholeJson), /^HTTP\/1\.1 200 /);
  assertEquals(served.clock.waiting, 0);
});

for (const early of [true, false]) {
  const title = `a caller that leaves is seen to be gone${early ? "" : ", also without an earlier look"}`;
  Deno.test(title, async () => {
    const hold = Promise.withResolvers<Decision>();
    let caller: Caller | undefined;
    await using served = new ServedHttp(decisionHandler((_, asked) => {
      caller = asked;
      return hold.promise;
    }));
    const leave = new AbortController();
    const response = fetch(served.url("/json"), { method: "POST", body: BODY, signal: leave.signal });
    const left = response.then(() => "answered", (error: Error) => error.name);
    const asked = await until("the call", () => caller);
    if (early) assertEquals(asked.cancelled, false);
    leave.abort();
    assertEquals(await left, "AbortError");
    await until("the caller to be gone", () => asked.cancelled);
    hold.resolve(OK_DECISION);
  });
}

const UNFINISHED: readonly (readonly [name: string, request: string])[] = [
  ["half a body", `POST /json HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n${BODY}`],
  ["no body at all", "POST /json HTTP/1.1\r\nHost: a\r\nContent-Length: 14\r\n\r\n"],
  ["half a chunk", `POST /json HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n${BODY}`],
  ["no last chunk", `POST /json HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n${BODY}\r\n`],
];

for (const [name, request] of UNFINISHED) {
  // The runtime never ends a read of a body that still waits when the answer is sent.
  const options = { name: `${name} is 408 after 10 s`, sanitizeOps: false };
  Deno.test(options, async () => {
    await using served = new ServedHttp(decisionHandler(() => OK_DECISION));
    using raw = await served.dial();
    await raw.write(request);
    await until("the body to be awaited", () => served.clock.waiting === 1);
    served.clock.advance(9_999);
    assertEquals(served.clock.waiting, 1);
    served.clock.advance(1);
    const [head = "", body = ""] = (await raw.read(wholeJson)).split("\r\n\r\n");
    assertMatch(head, /^HTTP\/1\.1 408 /);
    assertMatch(head, /^connection: close$/im);
    assertEquals(JSON.parse(body), {
      type: "about:blank",
      title: "Request Timeout",
      status: 408,
      detail: `Cannot read "body": not whole after 10 s`,
      field: "body",
      reason: "not whole after 10 s",
      requestId: "made",
    });
    assertEquals(served.clock.waiting, 0);
  });
}

Deno.test("a length that announces too much is 413 before a byte of the body", async () => {
  await using served = new ServedHttp(decisionHandler(() => OK_DECISION));
  using raw = await served.dial();
  await raw.write(`POST /json HTTP/1.1\r\nHost: a\r\nContent-Length: ${MIB + 1}\r\n\r\n`);
  assertMatch(await raw.read(wholeJson), /^HTTP\/1\.1 413 /);
});

Deno.test("chunks without end are 413 as soon as they are too many", async () => {
  await using served = new ServedHttp(decisionHandler(() => OK_DECISION));
  using raw = await served.dial();
  await raw.write("POST /json HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  const chunk = `10000\r\n${" ".repeat(65_536)}\r\n`;
  for (let sent = 0; sent <= 16; sent++) await raw.write(chunk);
  assertMatch(await raw.read(wholeJson), /^HTTP\/1\.1 413 /);
});

Deno.test("a length that announces too little cuts the body off", async () => {
  await using served = new ServedHttp(decisionHandler(() => OK_DECISION));
  using raw = await served.dial();
  await raw.write(`POST /json HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\n${BODY}`);
  const text = await raw.read(wholeJson);
  assertMatch(text, /^HTTP\/1\.1 400 /);
  assertMatch(text, /"reason":"not valid JSON/);
});

Deno.test("a peer that leaves in the middle of its body is logged, and the server goes on", async () => {
  await using served = new ServedHttp(decisionHandler(() => OK_DECISION));
  const raw = await served.dial();
  await raw.write(`POST /json HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n${BODY}`);
  await until("the body to be awaited", () => served.clock.waiting === 1);
  raw.close();
  await until("the line in the log", () => served.log.lines.length === 1);
  assertEquals(served.log.lines[0]?.fields.reason, "the body ended early");
  const response = await post(served, BODY);
  await response.body?.cancel();
  assertEquals([response.status, served.clock.waiting], [200, 0]);
});

Deno.test("the limit headers of a decision are headers of the response, and a 429 says when to retry", async () => {
  const rule = "{ key: k, rate_limit: { unit: day, requests_per_unit: 1 } }";
  await using weir = await ServeFixture.start({
    clock: new FakeClock(Date.UTC(2026, 0, 1, 12)),
    rules: { "a.yaml": `domain: a\ndescriptors: [${rule}]\n` },
    env: {
      LIMIT_RESPONSE_HEADERS_ENABLED: "true",
      LIMIT_STANDARD_HEADERS_ENABLED: "true",
      LIMIT_LIMIT_HEADER: "X-RateLimit-Limit",
    },
  });
  const body = JSON.stringify({ domain: "a", descriptors: [{ entries: [{ key: "k", value: "v" }] }] });
  const names = ["x-ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "ratelimit", "retry-after"];
  const seen: unknown[] = [];
  for (let call = 0; call < 2; call++) {
    const response = await fetch(`http://${weir.httpAddress}/json`, { method: "POST", body });
    await response.body?.cancel();
    seen.push([response.status, ...names.map((name) => response.headers.get(name))]);
  }
  assertEquals(seen, [
    [200, "1", "0", "43200", '"k";r=0;t=43200', null],
    [429, "1", "0", "43200", '"k";r=0;t=43200', "43200"],
  ]);
});
