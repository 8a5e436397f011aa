import { Client, Get, RestError, type SendOptions } from "@weir/rest";
import { assert, assertEquals } from "@std/assert";
import type { Socket } from "node:net";
import { freePort } from "../../harness/free_port.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";
import { CountedAbort, failure, RawServer } from "../../harness/rest_fixture.ts";

const ANSWERS: Readonly<Record<string, string>> = {
  "/ok": "200 OK\r\ncontent-length: 5\r\n\r\nhello",
  "/missing": "404 Not Found\r\ncontent-length: 2\r\n\r\nno",
  "/busy": "503 Busy\r\ncontent-length: 4\r\n\r\nbusy",
  "/endless": "200 OK\r\ncontent-length: 1000000\r\n\r\nhello",
  "/chunks": "200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
  "/moved": "307 Moved\r\ncontent-length: 5\r\nlocation: /ok\r\n\r\nthere",
  "/silent": "",
};

function answer(socket: Socket, head: string): void {
  const path = /^\S+ (\S+)/.exec(head)?.[1] ?? "";
  if (path === "/cut") return void socket.end("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello");
  if (path === "/reset") return void socket.resetAndDestroy();
  const text = ANSWERS[path] ?? "400 Bad\r\ncontent-length: 0\r\n\r\n";
  if (text !== "") socket.write(`HTTP/1.1 ${text}`);
}

type Run = (path: string, options?: SendOptions) => Promise<unknown>;

/** Sorts of requests, each with how many of a hundred are of it, and what has to come of it. */
interface Sort {
  readonly share: number;
  readonly outcome: string;
  readonly run: (
    call: { readonly send: Run; readonly stream: Run; readonly limits: SendOptions },
  ) => Promise<unknown>;
}

const SORTS: readonly Sort[] = [
  { share: 40, outcome: "200 bare", run: async ({ send }) => `${await send("/ok")} bare` },
  { share: 38, outcome: "200", run: ({ send, limits }) => send("/ok", limits) },
  { share: 9, outcome: "404", run: ({ send, limits }) => send("/missing", limits) },
  { share: 1, outcome: "timeout", run: ({ send }) => send("/silent", { timeoutMs: 5 }) },
  {
    share: 1,
    outcome: "timeout in all",
    run: async ({ send, limits }) =>
      await send("/endless", { ...limits, totalTimeoutMs: 5 }).catch((error) => `${error.code} in all`),
  },
  {
    share: 1,
    outcome: "aborted",
    run: async ({ send, limits }) => {
      const abort = new AbortController();
      const sent = send("/endless", { ...limits, signal: abort.signal });
      queueMicrotask(() => abort.abort());
      return await sent;
    },
  },
  { share: 1, outcome: "body_interrupted", run: ({ send, limits }) => send("/cut", limits) },
  { share: 1, outcome: "network", run: ({ send, limits }) => send("/reset", limits) },
  {
    share: 2,
    outcome: "body_too_large",
    run: ({ send, limits }) => send("/endless", { ...limits, maxResponseBytes: 100 }),
  },
  {
    share: 1,
    outcome: "503",
    run: ({ send, limits }) => send("/busy", { ...limits, retry: { attempts: 2, backoffMs: 1 } }),
  },
  {
    share: 2,
    outcome: "200 moved",
    run: async ({ send, limits }) => `${await send("/moved", limits)} moved`,
  },
  { share: 1, outcome: "cancelled", run: ({ stream, limits }) => stream("/chunks", limits) },
  { share: 1, outcome: "cancelled bare", run: async ({ stream }) => `${await stream("/endless")} bare` },
  {
    share: 1,
    outcome: "status",
    run: ({ stream, limits }) => stream("/missing", { ...limits, throwOnStatus: true }),
  },
];

const TOTAL = 1_000;
const PARALLEL = 20;

Deno.test("requests of every sort leave no timer, no listener, no body and no connection", async () => {
  await using server = await RawServer.start(answer);
  const clock = FakeClock.byTurns();
  const shared = new CountedAbort();
  const limits: SendOptions = { signal: shared.signal, timeoutMs: 60_000, totalTimeoutMs: 60_000 };
  const httpClient = Deno.createHttpClient({});
  const client = new Client({ httpClient, clock });
  const request = (path: string) => ({ method: Get, baseURL: `${server.origin}${path}` });
  const send: Run = async (path, options) => String((await client.send(request(path), options)).statusCode);
  const stream: Run = async (path, options) => {
    const reader = (await client.sendStream(request(path), options)).bodyStream.getReader();
    await reader.read();
    await reader.cancel();
    return "cancelled";
  };
  const sorts = SORTS.flatMap((sort) => Array.from({ length: sort.share }, () => sort));
  assertEquals(sorts.length, 100);
  const outcomes = new Map<string, number>();
  let begun = 0;
  const work = async (): Promise<void> => {
    while (begun < TOTAL) {
      // A step that shares no factor with the count mixes the sorts.
      const sort = sorts[begun++ * 37 % sorts.length];
      const outcome = await sort?.run({ send, stream, limits }).catch((error: unknown) =>
        error instanceof RestError ? error.code : String(error)
      );
      outcomes.set(String(outcome), (outcomes.get(String(outcome)) ?? 0) + 1);
    }
  };
  try {
    await Promise.all(Array.from({ length: PARALLEL }, work));
    const expected = SORTS.map(({ outcome, share }): [string, number] => [outcome, share * TOTAL / 100]);
    assertEquals([...outcomes].sort(), expected.sort());
    assert(
      clock.waits.length > TOTAL && shared.added > TOTAL / 3,
      "Expected that limits and signals were used",
    );
    assertEquals([clock.waiting, shared.listening], [0, 0]);
    await until("no more than the kept-alive connections are open", () => server.open <= PARALLEL);
  } finally {
    httpClient.close();
  }
  await until("no connection is open", () => server.open === 0);
});

Deno.test("requests that find nobody leave nothing either", async () => {
  const clock = FakeClock.byTurns();
  const shared = new CountedAbort();
  const client = new Client({ clock, timeoutMs: 60_000, totalTimeoutMs: 60_000, retry: { backoffMs: 0 } });
  const request = { method: Get, baseURL: `http://127.0.0.1:${freePort()}/` };
  for (let call = 0; call < 20; call++) {
    const code = await client.send(request, { signal: shared.signal }).catch(({ code }) => code);
    assertEquals([code, clock.waiting, shared.listening], ["network", 0, 0]);
  }
});

Deno.test("attempts whose answers are not taken let go of their connections", async () => {
  const endless = "HTTP/1.1 503 Busy\r\ncontent-length: 1000000\r\n\r\nbusy";
  await using server = await RawServer.writing(endless, { end: false });
  const client = new Client({ clock: FakeClock.byWaits(), retry: { attempts: 4 }, maxResponseBytes: 3 });
  const error = await failure(() => client.send({ method: Get, baseURL: server.origin }));
  assertEquals([error.code, server.accepted], ["body_too_large", 4]);
  await until("all connections are closed", () => server.open === 0);
});
