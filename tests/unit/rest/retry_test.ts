import { Client, type ClientOptions, Get, Post, type RetryOptions } from "@weir/rest";
import { type ScriptedStep, ScriptedTransport } from "@weir/rest/testing";
import { assertEquals } from "#assert";
import { attemptsFor, retryDelayMs, retryPolicy } from "../../../src/rest/retry.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";
import { failure } from "../../harness/rest_fixture.ts";

const REQUEST = { method: Get, baseURL: "https://api.example.com/items" };
const RANDOM_HALF = { random: () => 0.5 };

/** The outcome of a request whose answers are scripted: the status or the code, and the waits before it. */
async function outcome(
  steps: readonly ScriptedStep[],
  retry: RetryOptions,
  options: ClientOptions = {},
): Promise<{ result: number | string; waits: readonly number[] }> {
  const transport = new ScriptedTransport(steps);
  const clock = FakeClock.byWaits(Date.UTC(2030, 0, 1));
  const client = new Client({ fetch: transport.fetch, clock, retry, ...RANDOM_HALF, ...options });
  const result = await client.send(REQUEST).then(({ statusCode }) => statusCode, (error) => error.code);
  assertEquals(transport.requests.length, clock.waits.length + 1);
  return { result, waits: clock.waits };
}

Deno.test("retry: the waits are random parts of a bound that doubles, up to the longest", async () => {
  const steps = Array.from({ length: 5 }, () => ({ status: 503 }));
  const table: [RetryOptions, readonly number[]][] = [
    [{}, [125, 250]],
    [{ attempts: 1 }, []],
    [{ attempts: 2 }, [125]],
    [{ attempts: 5, backoffMs: 100 }, [50, 100, 200, 400]],
    [{ attempts: 5, backoffMs: 100, maxDelayMs: 300 }, [50, 100, 150, 150]],
    [{ attempts: 4, backoffMs: 0 }, [0, 0, 0]],
    [{ attempts: 3, backoffMs: 100, maxDelayMs: 0 }, [0, 0]],
  ];
  for (const [retry, waits] of table) assertEquals(await outcome(steps, retry), { result: 503, waits });
  const ended = await outcome([{ status: 503 }, { fail: "reset" }, { status: 201 }, {}], { attempts: 9 });
  assertEquals(ended, { result: 201, waits: [125, 250] });
});

Deno.test("retry: statuses that are tried again", async () => {
  const again = (status: number, retry: RetryOptions) =>
    outcome([{ status }, { status: 200 }], retry).then(({ waits }) => waits.length === 1);
  for (const status of [408, 429, 500, 502, 503, 504]) {
    assertEquals([status, await again(status, {})], [status, true]);
  }
  for (const status of [200, 301, 400, 401, 404, 409, 425, 501, 505]) {
    assertEquals([status, await again(status, {})], [status, false]);
  }
  assertEquals(await again(404, { statuses: [404] }), true);
  assertEquals(await again(503, { statuses: [404] }), false);
  assertEquals(await again(503, { statuses: undefined, attempts: undefined }), true);
});

Deno.test("retry: methods that are tried again, and those with an idempotency key", () => {
  const attempts = (method: string, headers: Record<string, string> = {}, retry: RetryOptions = {}) =>
    attemptsFor({ ...REQUEST, method, headers }, retryPolicy(retry));
  for (const method of ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "delete"]) {
    assertEquals(attempts(method), 3);
  }
  for (const method of ["POST", "PATCH", "PURGE"]) assertEquals(attempts(method), 1);
  for (const name of ["Idempotency-Key", "idempotency-key", "IDEMPOTENCY-KEY"]) {
    assertEquals(attempts(Post, { [name]: "1" }), 3);
  }
  assertEquals(attempts(Post, {}, { methods: ["post"] }), 3);
  assertEquals(attempts(Get, {}, { methods: ["post"] }), 1);
});

Deno.test("retry: failures that may pass, and those that do not", async () => {
  const table: [ScriptedStep, ClientOptions, string | number][] = [
    [{ fail: "dns" }, {}, 200],
    [{ fail: "connect" }, {}, 200],
    [{ fail: "reset" }, {}, 200],
    [{ body: "part", interrupted: true }, {}, 200],
    [{ body: "part", interrupted: true }, { maxResponseBytes: 10 }, 200],
    [{ fail: "tls" }, {}, "network"],
    [{ body: "part" }, { maxResponseBytes: 3 }, "body_too_large"],
    [{ status: 404 }, { throwOnStatus: true }, "status"],
    [{ status: 302, headers: { location: "ftp://elsewhere/" } }, {}, "network"],
  ];
  for (const [step, options, result] of table) {
    const waits = result === 200 ? [125] : [];
    assertEquals(await outcome([step, {}], {}, options), { result, waits }, JSON.stringify(step));
  }
});

Deno.test("retry: the last failure is thrown, and the last answer is the result", async () => {
  const steps: ScriptedStep[] = [{ status: 503 }, { fail: "dns" }, { fail: "connect" }];
  assertEquals(await outcome(steps, {}), { result: "network", waits: [125, 250] });
  assertEquals((await outcome(steps.toReversed(), {})).result, 503);
  const refused = await outcome(steps.toReversed(), {}, { throwOnStatus: true });
  assertEquals(refused.result, "status");
});

Deno.test("retry: a streamed body is never sent again", async () => {
  const transport = new ScriptedTransport([{ status: 503 }, {}]);
  const client = new Client({ fetch: transport.fetch, retry: { methods: [Post] } });
  const body = new Blob(["part"]).stream();
  const headers = { "idempotency-key": "1" };
  assertEquals((await client.send({ ...REQUEST, method: Post, body, headers })).statusCode, 503);
  assertEquals(transport.requests.map(({ body }) => body), ["part"]);
});

Deno.test("retryDelayMs: what a Retry-After header makes of the wait", () => {
  const now = Date.UTC(2030, 0, 1, 12);
  const table: [string | null, RetryOptions, number | undefined][] = [
    [null, {}, 125],
    ["2", {}, 2_000],
    [" 2 ", {}, 2_000],
    ["0", {}, 125],
    ["30", {}, 30_000],
    ["31", {}, undefined],
    ["9".repeat(400), {}, undefined],
    ["31", { maxDelayMs: 60_000 }, 31_000],
    ["2", { honorRetryAfter: false }, 125],
    ["31", { honorRetryAfter: false }, 125],
    ["Tue, 01 Jan 2030 12:00:05 GMT", {}, 5_000],
    ["Tuesday, 01-Jan-30 12:00:05 GMT", {}, 5_000],
    ["Tue Jan  1 12:00:05 2030", {}, 5_000],
    ["Tue, 01 Jan 2030 11:00:00 GMT", {}, 125],
    ["Tue, 01 Jan 2030 13:00:00 GMT", {}, undefined],
    ["", {}, 125],
    ["soon", {}, 125],
    ["-1", {}, 125],
    ["1.5", {}, 125],
    ["2030", { maxDelayMs: 1 }, undefined],
    ["2, 3", {}, 125],
    ["Tue, nonsense", {}, 125],
  ];
  for (const [retryAfter, options, delay] of table) {
    const moment = { attempt: 1, retryAfter, now, random: 0.5 };
    assertEquals([retryAfter, retryDelayMs(retryPolicy(options), moment)], [retryAfter, delay]);
  }
});

Deno.test("retryDelayMs: any attempt has a finite wait, from nothing to below the bound", () => {
  const policy = retryPolicy({ backoffMs: 100, maxDelayMs: 5_000 });
  const delay = (attempt: number, random: number) => retryDelayMs(policy, { attempt, now: 0, random });
  assertEquals([delay(1, 0), delay(1, 0.999), delay(6, 0.5), delay(7, 0.5), delay(2_000, 0.5)], [
    0,
    99.9,
    1_600,
    2_500,
    2_500,
  ]);
});

Deno.test("retry: a server that asks for patience gets it, and one that asks for too much ends the attempts", async () => {
  const busy = (after: string) => ({ status: 429, headers: { "retry-after": after } });
  assertEquals(await outcome([busy("3"), {}], {}), { result: 200, waits: [3_000] });
  assertEquals(await outcome([busy("3600"), {}], {}), { result: 429, waits: [] });
  assertEquals(await outcome([busy("3600"), {}], { honorRetryAfter: false }), { result: 200, waits: [125] });
});

Deno.test("retry: a wait that would outlast the total time is not begun", async () => {
  const transport = new ScriptedTransport([{ status: 503 }, { status: 503, body: "second" }, {}]);
  const clock = new FakeClock();
  const retry = { attempts: 5, backoffMs: 200 };
  const client = new Client({ fetch: transport.fetch, clock, retry, totalTimeoutMs: 300, ...RANDOM_HALF });
  const response = client.send(REQUEST);
  await until("it waits", () => clock.waiting === 2);
  clock.advance(100);
  // 100 have passed, and the next wait of 200 would end when everything does.
  assertEquals((await response).body, "second");
  assertEquals(clock.waiting, 0);
});

Deno.test("retry: each attempt has its own time, all of them have the total", async () => {
  const table: [ClientOptions, string, number][] = [
    [{ timeoutMs: 100 }, "timed out after 100 ms", 3],
    [{ timeoutMs: 100, totalTimeoutMs: 250 }, "timed out after 250 ms in total", 3],
    [{ totalTimeoutMs: 250 }, "timed out after 250 ms in total", 1],
  ];
  for (const [limits, state, attempts] of table) {
    const hang: ScriptedStep = { fail: "hang" };
    const transport = new ScriptedTransport([hang, hang, hang, hang]);
    const clock = new FakeClock();
    let isOver = false;
    const client = new Client({ fetch: transport.fetch, clock, retry: { backoffMs: 0 }, ...limits });
    const failed = failure(() => client.send(REQUEST)).finally(() => isOver = true);
    await until("it is over", () => {
      if (!isOver) clock.advance(10);
      return isOver;
    }, { intervalMs: 1 });
    const error = await failed;
    assertEquals([error.code, error.message.endsWith(state)], ["timeout", true], error.message);
    assertEquals([transport.requests.length, clock.waiting], [attempts, 0]);
  }
});

Deno.test("a redirect from https to http of the same host brings no credentials", async () => {
  const location = "http://api.example.com/end";
  const transport = new ScriptedTransport([{ status: 302, headers: { location } }, {}]);
  const client = new Client({ fetch: transport.fetch });
  const headers = { authorization: "Bearer KEY", cookie: "a=b", "x-mine": "kept" };
  await client.send({ method: Get, baseURL: "https://api.example.com/to", headers });
  assertEquals(transport.requests.map(({ url, headers }) => [url, headers]), [
    ["https://api.example.com/to", headers],
    [location, { "x-mine": "kept" }],
  ]);
});
