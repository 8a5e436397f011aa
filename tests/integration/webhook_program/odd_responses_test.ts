/** Receivers and APIs that answer in odd ways, over TCP: with the status line the outcome is known, and settles it. */
import { assertEquals } from "#assert";
import type { Socket } from "node:net";
import { RawServer } from "../../harness/rest_fixture.ts";
import { until } from "../../harness/until.ts";
import type { AnswerBody } from "../../harness/webhook_client.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const LENGTH = "content-length: 2\r\n\r\nok";
const FIELDS = (count: number) => "x-field: value\r\n".repeat(count);
/** Ends the connection behind the text, unless it is a function. */
type Answer = string | ((socket: Socket) => void);

/** Texts that may follow a status line. */
const ODD: Readonly<Record<string, Answer>> = {
  "a length and chunks": `content-length: 9\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
  "two equal lengths": `content-length: 2\r\n${LENGTH}`,
  "two lengths": `content-length: 3\r\n${LENGTH}`,
  "a length below zero": "content-length: -1\r\n\r\nok",
  "a head of 40 kB": `x-long: ${"x".repeat(40_000)}\r\n${LENGTH}`,
  "500 headers": `${FIELDS(500)}${LENGTH}`,
  "a folded line": `x-folded: a\r\n  b\r\n${LENGTH}`,
  "a blank before the colon": "Content-Length : 2\r\n\r\nok",
  "a line without a colon": `no colon\r\n${LENGTH}`,
  "a line without a name": `: value\r\n${LENGTH}`,
  "a NUL": `x-odd: a\0b\r\n${LENGTH}`,
  "a header beyond ASCII": `x-\xe4: \xfc\r\n${LENGTH}`,
  "a bad chunk": "transfer-encoding: chunked\r\n\r\nnone\r\nok\r\n",
  "chunks in chunks": "transfer-encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
  "a body that is cut": "content-length: 100\r\n\r\nok",
  "an end in the head": "content-le",
  "a reset in the head": (socket) => socket.write("x-a: b\r\n", () => socket.resetAndDestroy()),
  "an odd head and no end": (socket) => socket.write("no colon\r\n\r\n"),
  "gzip that is none": "content-encoding: gzip\r\ncontent-length: 2\r\n\r\nok",
  "an unknown coding": "content-encoding: zstd\r\ncontent-length: 2\r\n\r\nok",
};

/** Texts that may precede the status line, and ends of that line. */
const LINES: Readonly<Record<string, string>> = {
  "LF": "HTTP/1.1 200 OK\ncontent-length: 2\n\nok",
  "no reason": `HTTP/1.1 200\r\n${LENGTH}`,
  "a reason beyond ASCII": `HTTP/1.1 200 \xc3\xa4\r\n${LENGTH}`,
  "a NUL in the reason": `HTTP/1.1 200 O\0K\r\n${LENGTH}`,
  "HTTP/1.0": "HTTP/1.0 200 OK\r\n\r\nok",
  "odd hints": `HTTP/1.1 103 Early\r\nno colon\r\n\r\nHTTP/1.1 200 OK\r\n${LENGTH}`,
  "204 and a body": `HTTP/1.1 204 No\r\n${LENGTH}`,
};

function answering(statusLine: string, answer: Answer): (socket: Socket) => void {
  return (socket) => {
    if (typeof answer === "string") return void socket.end(`${statusLine}${answer}`, "latin1");
    socket.write(statusLine);
    answer(socket);
  };
}

/** Delivers one event to each of these receivers, and answers with what is shown of each delivery after its attempt. */
async function delivered(
  address: string,
  acts: Readonly<Record<string, (socket: Socket) => void>>,
): Promise<Record<string, unknown>> {
  const shown: Record<string, unknown> = {};
  const stack = new AsyncDisposableStack();
  await using _ = stack;
  const pending: (readonly [name: string, endpoint: string, server: RawServer])[] = [];
  for (const [name, act] of Object.entries(acts)) {
    const server = stack.use(await RawServer.start(act));
    const { body } = await api(address, "/endpoints", { body: { url: server.origin, events: ["odd.head"] } });
    pending.push([name, body.id, server]);
  }
  await api(address, "/events", { body: { event: "odd.head", data: {} } });
  for (const [name, endpointId, server] of pending) {
    const delivery = await until(`the attempt for ${name}`, async () => {
      const { body: { items: [item] } } = await api(address, `/deliveries?endpointId=${endpointId}`);
      const isTried = item?.attempts.some(({ finishedAt }) => finishedAt);
      return isTried && item;
    });
    const [attempt] = delivery.attempts;
    shown[name] = [delivery.state, attempt?.status, server.accepted];
    await api(address, `/endpoints/${endpointId}`, { method: "DELETE" });
  }
  return shown;
}

/** The same result for each name. */
function each(names: readonly string[], result: unknown): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, result]));
}

Deno.test("odd responses: a receiver that answers 200 gets its delivery once", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve({ WEBHOOK_TIMEOUT: "60s" });
  const acts = {
    ...Object.fromEntries(
      Object.entries(ODD).map(([name, answer]) => [name, answering("HTTP/1.1 200 OK\r\n", answer)]),
    ),
    ...Object.fromEntries(Object.entries(LINES).map(([name, text]) => [name, answering("", text)])),
  };
  const expected = each(Object.keys(acts), ["acknowledged", 200, 1]);
  assertEquals(await delivered(weir.running.addresses.http, acts), {
    ...expected,
    "204 and a body": ["acknowledged", 204, 1],
  });
});

Deno.test("odd responses: a status that is no success is that of the attempt", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve({ WEBHOOK_TIMEOUT: "60s" });
  const { http } = weir.running.addresses;
  for (const status of [301, 404, 429]) {
    const acts = Object.fromEntries(
      Object.entries(ODD).map(([name, answer]) => [name, answering(`HTTP/1.1 ${status} No\r\n`, answer)]),
    );
    assertEquals(await delivered(http, acts), each(Object.keys(acts), ["retrying", status, 1]));
  }
});

const UNREADABLE: Readonly<Record<string, string>> = {
  "two lengths": "the response is not valid HTTP (HPE_INVALID_CONTENT_LENGTH)",
  "a length below zero": "the response is not valid HTTP (HPE_INVALID_CONTENT_LENGTH)",
  "a bad chunk": "the response is not valid HTTP (HPE_INVALID_CHUNK_SIZE)",
  "chunks in chunks": "the response is not valid HTTP (HPE_INVALID_TRANSFER_ENCODING)",
  "a body that is cut": "the connection closed before the end of the response body",
  "an end in the head": "the connection closed before the end of the response body",
  "a reset in the head": "the connection closed before the end of the response body",
  "gzip that is none": "the response body is not valid gzip",
  "an unknown coding": "the response body has a content coding other than gzip, deflate, br",
};

/** A workflow that calls each of these servers, and the executions that come of it. */
async function executed(
  statusLine: string,
  names: readonly string[],
): Promise<Record<string, unknown>> {
  await using stack = new AsyncDisposableStack();
  const servers = new Map<string, RawServer>();
  const files: Record<string, string> = {};
  for (const [index, name] of names.entries()) {
    const server = stack.use(await RawServer.start(answering(statusLine, ODD[name] ?? "")));
    servers.set(name, server);
    const request = `request: { method: POST, url: "${server.origin}/", timeout: 60s }`;
    files[`w${index}.yaml`] =
      `workflow: w${index}\nsteps:\n- { name: call, ${request}, retry: { attempts: 3, backoff: 1ms } }\n`;
  }
  const folder = stack.use(await WebhookFolder.make(files));
  const weir = stack.use(await folder.serve());
  const { http } = weir.running.addresses;
  const shown: Record<string, unknown> = {};
  for (const [index, [name, server]] of [...servers].entries()) {
    const { body: { key } } = await api(http, "/triggers", {
      body: { name: `t${index}`, workflow: `w${index}` },
    });
    const { body } = await api(http, `/workflows/triggers/t${index}`, { token: key, body: {} });
    const { status, error, output } = await until(name, async () => {
      const { body: execution } = await api(http, `/executions/${body.executionId}`);
      return execution["finishedAt"] !== undefined && execution;
    });
    const text = typeof error === "string"
      ? error.replace(/^.*?request failed: |^.*? failed: /, "")
      : undefined;
    shown[name] = [status, text ?? (output as AnswerBody)["body"], server.accepted];
  }
  return shown;
}

Deno.test("odd responses: a step is done with what can be read, and fails once with what cannot", async () => {
  const names = Object.keys(ODD).filter((name) => name !== "an odd head and no end");
  assertEquals(await executed("HTTP/1.1 200 OK\r\n", names), {
    ...each(names, ["succeeded", "ok", 1]),
    ...Object.fromEntries(Object.entries(UNREADABLE).map(([name, error]) => [name, ["failed", error, 1]])),
  });
});

Deno.test("odd responses: a status that is no success is that of the step", async () => {
  const names = Object.keys(ODD);
  const error = "the server responded with 404";
  assertEquals(await executed("HTTP/1.1 404 No\r\n", names), each(names, ["failed", error, 1]));
});
