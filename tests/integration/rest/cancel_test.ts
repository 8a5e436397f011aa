import {
  buildResponse,
  Client,
  type ClientOptions,
  Get,
  makeRequest,
  type Request as RestRequest,
  send,
  type SendOptions,
} from "@weir/rest";
import { assert, assertEquals, assertRejects } from "#assert";
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

const HALF = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello";

type Options = ClientOptions & { readonly scheme?: "https"; readonly answer?: string };

/** The progress of a call when it is cancelled, the sign of it, and its options. */
type Stage = readonly [
  when: string,
  reached: (server: RawServer, clock: FakeClock, hooks: readonly string[]) => unknown,
  options?: (hooks: string[]) => Options,
];

const forever = () => new Promise<undefined>(() => {});
const hasHook = (hook: string): Stage[1] => (_server, _clock, hooks) => hooks.includes(hook);
const BUSY = "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n";

const STAGES: readonly Stage[] = [
  ["while it connects", (server) => server.accepted === 1, () => ({ scheme: "https" })],
  ["before the headers", hasHook("asked")],
  ["in the headers", hasHook("asked"), () => ({ answer: "HTTP/1.1 200 OK\r\nx-a:" })],
  ["in the body", hasHook("answered"), (hooks) => {
    return { answer: HALF, onResponse: () => void hooks.push("answered") };
  }],
  ["in a bounded body", hasHook("answered"), (hooks) => {
    return { answer: HALF, maxResponseBytes: 100, onResponse: () => void hooks.push("answered") };
  }],
  ["between two attempts", (_, clock) => clock.waiting === 2, () => ({ answer: BUSY, retry: {} })],
  [
    "in the hook before",
    hasHook("before"),
    (hooks) => ({ onRequest: () => (hooks.push("before"), forever()) }),
  ],
  ["in the hook after", hasHook("after"), (hooks) => {
    return { answer: HALF, onResponse: () => (hooks.push("after"), forever()) };
  }],
];

for (const [when, reached, optionsOf = (): Options => ({})] of STAGES) {
  for (const limits of [{}, { timeoutMs: 1_000 }]) {
    Deno.test(`a call cancelled ${when}, ${JSON.stringify(limits)}: aborted, and nothing is left`, async () => {
      const hooks: string[] = [];
      const { scheme = "http", answer = "", ...options } = optionsOf(hooks);
      await using server = await RawServer.start((socket) => {
        hooks.push("asked");
        socket.write(answer);
      });
      const clock = new FakeClock();
      const abort = new CountedAbort();
      const request = { method: Get, baseURL: `${scheme}://127.0.0.1:${server.port}/?${SECRET}` };
      // The total time is a timer that every stage has to let go of.
      const client = new Client({ clock, totalTimeoutMs: 10_000, ...limits, ...options });
      const failed = failure(() => client.send(request, { signal: abort.signal }));
      await until("it is so far", () => reached(server, clock, hooks));
      assertEquals(abort.listening, 1);
      const reason = new Error("the user left");
      abort.abort(reason);
      const error = await failed;
      assertEquals([error.code, error.kind], ["aborted", undefined]);
      assertEquals(
        error.message,
        `Cannot send GET "${scheme}://127.0.0.1:${server.port}/": the request was aborted`,
      );
      assert(error.cause === reason && error.request === request);
      assertKeepsSecrets(error);
      assertEquals([clock.waiting, abort.listening], [0, 0]);
      if (!when.includes("attempts")) await until("the connection is closed", () => server.open === 0);
    });
  }
}

Deno.test("a call with a signal that is aborted already sends nothing", async () => {
  await using server = new EchoServer(() => {});
  const clock = new FakeClock();
  const signal = AbortSignal.abort("over");
  const table: SendOptions[] = [{}, { retry: {} }, { timeoutMs: 10, totalTimeoutMs: 10 }];
  for (const given of table) {
    const options = { ...given, signal };
    const client = new Client({ clock });
    const request = { method: Get, baseURL: server.origin };
    for (const run of [() => client.send(request, options), () => client.sendStream(request, options)]) {
      const error = await failure(run);
      assertEquals([error.code, error.cause, clock.waiting], ["aborted", "over", 0]);
    }
  }
  assertEquals(server.requests.length, 0);
});

Deno.test("a signal that is aborted after the end changes nothing", async () => {
  await using server = new EchoServer(() => new Response("done"));
  const abort = new CountedAbort();
  const response = await send({ method: Get, baseURL: server.origin }, { signal: abort.signal });
  assertEquals([abort.added, abort.listening], [1, 0]);
  abort.abort("late");
  assertEquals(response.body, "done");
});

Deno.test("makeRequest: the signal of the request and that of the options both end it", async () => {
  await using server = await RawServer.writing("HTTP/1.1 200 OK\r\nx-a:", { end: false });
  for (const which of ["request", "options"]) {
    const [inRequest, inOptions] = [new AbortController(), new AbortController()];
    const web = new Request(`${server.origin}/?${SECRET}`, { signal: inRequest.signal });
    const accepted = server.accepted;
    const failed = failure(() => makeRequest(web, { signal: inOptions.signal }));
    await until("it is sent", () => server.accepted > accepted);
    const reason = new Error("the user left");
    (which === "request" ? inRequest : inOptions).abort(reason);
    const error = await failed;
    assertEquals([error.code, error.url, error.cause], ["aborted", `${server.origin}/`, reason]);
  }
  await until("the connections are closed", () => server.open === 0);
});

Deno.test("buildResponse: its signal ends the reading with its reason", async () => {
  await using server = await RawServer.writing(HALF, { end: false });
  const abort = new CountedAbort();
  const request: RestRequest = { method: Get, baseURL: server.origin };
  const web = await fetch(server.origin);
  const reading = assertRejects(() => buildResponse(web, { request, signal: abort.signal }));
  await until("it listens", () => abort.listening === 1);
  const reason = new Error("the user left");
  abort.abort(reason);
  assert(await reading === reason);
  assertEquals(abort.listening, 0);
  await until("the connection is closed", () => server.open === 0);
});

Deno.test("a fetch that obeys no signal is not asked when it is too late, and its late answer is let go", async () => {
  let answer = (_response: Response): void => {};
  let asked = 0;
  let discarded: unknown;
  const client = new Client({
    fetch: () => {
      asked++;
      return new Promise((resolve) => answer = resolve);
    },
  });
  const request = { method: Get, baseURL: "https://api.example.com/" };
  assertEquals((await failure(() => client.send(request, { signal: AbortSignal.abort() }))).code, "aborted");
  assertEquals(asked, 0);
  const abort = new AbortController();
  const failed = failure(() => client.send(request, { signal: abort.signal }));
  await until("it is asked", () => asked === 1);
  abort.abort();
  assertEquals([(await failed).code, asked], ["aborted", 1]);
  answer(new Response(new ReadableStream({ cancel: () => void (discarded = true) })));
  await until("the late answer is let go", () => discarded);
});
