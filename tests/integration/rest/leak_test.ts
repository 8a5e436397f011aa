import { Client, Get, RestError, type SendOptions } from "@weir/rest";
import { assert, assertEquals } from "#assert";
import type { Socket } from "node:net";
import { freePort } from "../../harness/free_port.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { eventually, until } from "../../harness/until.ts";
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

/** Paths whose answers never end: their connections can serve nothing else. */
const UNENDED = ["/endless", "/chunks", "/silent"];

function answer(socket: Socket, head: string, unended: Set<Socket>): void {
  const path = /^\S+ (\S+)/.exec(head)?.[1] ?? "";
  if (UNENDED.includes(path)) {
    unended.add(socket);
    socket.once("close", () => unended.delete(socket));
  }
  if (path === "/cut") return void socket.end("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello");
  if (path === "/reset") return void socket.resetAndDestroy();
  const text = ANSWERS[path] ?? "400 Bad\r\ncontent-length: 0\r\n\r\n";
  if (text !== "") socket.write(`HTTP/1.1 ${text}`);
}

type Run = (path: string, options?: SendOptions) => Promise<unknown>;

/** A sort of requests: how many of a hundred are of it, what has to come of it, and how it is sent. */
type Sort = readonly [
  share: number,
  outcome: string,
  run: (call: { readonly send: Run; readonly stream: Run; readonly limits: SendOptions }) => Promise<unknown>,
];

const SORTS: readonly Sort[] = [
  [40, "200 bare", async ({ send }) => `${await send("/ok")} bare`],
  [38, "200", ({ send, limits }) => send("/ok", limits)],
  [9, "404", ({ send, limits }) => send("/missing", limits)],
  [1, "timeout", ({ send }) => send("/silent", { timeoutMs: 5 })],
  [
    1,
    "timeout in all",
    ({ send, limits }) =>
      send("/endless", { ...limits, totalTimeoutMs: 5 }).catch((error) => `${error.code} in all`),
  ],
  [1, "aborted", ({ send, limits }) => {
    const abort = new AbortController();
    const sent = send("/endless", { ...limits, signal: abort.signal });
    queueMicrotask(() => abort.abort());
    return sent;
  }],
  [1, "body_interrupted", ({ send, limits }) => send("/cut", limits)],
  [1, "network", ({ send, limits }) => send("/reset", limits)],
  [2, "body_too_large", ({ send, limits }) => send("/endless", { ...limits, maxResponseBytes: 100 })],
  [1, "503", ({ send, limits }) => send("/busy", { ...limits, retry: { attempts: 2, backoffMs: 1 } })],
  [2, "200 moved", async ({ send, limits }) => `${await send("/moved", limits)} moved`],
  [1, "cancelled", ({ stream, limits }) => stream("/chunks", limits)],
  [1, "cancelled bare", async ({ stream }) => `${await stream("/endless")} bare`],
  [1, "status", ({ stream, limits }) => stream("/missing", { ...limits, throwOnStatus: true })],
];

const TOTAL = 1_000;
const PARALLEL = 20;

Deno.test("requests of every sort leave no timer, no listener, no body and no connection", async () => {
  const unended = new Set<Socket>();
  await using server = await RawServer.start((socket, head) => answer(socket, head, unended));
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
  const sorts = SORTS.flatMap(([share, , run]) => Array.from({ length: share }, () => run));
  assertEquals(sorts.length, 100);
  const outcomes = new Map<string, number>();
  let begun = 0;
  const work = async (): Promise<void> => {
    while (begun < TOTAL) {
      // A step that shares no factor with the count mixes the sorts.
      const run = sorts[begun++ * 37 % sorts.length];
      const outcome = await run?.({ send, stream, limits }).catch((error: unknown) =>
        error instanceof RestError ? error.code : String(error)
      );
      outcomes.set(String(outcome), (outcomes.get(String(outcome)) ?? 0) + 1);
    }
  };
  try {
    await Promise.all(Array.from({ length: PARALLEL }, work));
    const expected = SORTS.map(([share, outcome]): [string, number] => [outcome, share * TOTAL / 100]);
    assertEquals([...outcomes].sort(), expected.sort());
    assert(
      clock.waits.length > TOTAL && shared.added > TOTAL / 3,
      "Expected that limits and signals were used",
    );
    assertEquals([clock.waiting, shared.listening], [0, 0]);
    await eventually(0, () => unended.size);
  } finally {
    httpClient.close();
  }
  await until("no connection is open", () => server.open === 0);
});

Deno.test("requests that are refused leave nothing either", async () => {
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
