import { request } from "node:http";
import { gzipSync } from "node:zlib";
import { assert, assertEquals, assertMatch } from "#assert";
import { signature } from "../../../src/webhooks/model/signature.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { until } from "../../harness/until.ts";
import { weirCommand } from "../../harness/weir_command.ts";
import { NOW, type Ran, ran } from "../../harness/administration_fixture.ts";
import { receiving } from "./webhooks_fixture.ts";

const SECRET = "whsec_c2VjcmV0";
const BODY = '{"event":"a.b","data":{"x":1}}';
const AT = "2026-01-31T12:00:00.000Z";

/** Runs the command while `use` sends to it, then stops it. */
async function listening(
  args: readonly string[],
  use: (url: string, lines: readonly string[]) => Promise<void>,
): Promise<Ran> {
  const { stdout, ...rest } = await receiving(args, ({ url, lines }) => use(url, lines));
  return { ...rest, stdout: stdout.replace(/127\.0\.0\.1:\d+/, "HOST") };
}

/** Aborted once the delivery was printed, so that its client gives up. */
function printed(lines: readonly string[], delivery: string): AbortSignal {
  const seen = new AbortController();
  const isSeen = () => lines.some((line) => line.includes(`delivery ${delivery},`));
  until(`delivery ${delivery} to be printed`, isSeen).then(
    () => seen.abort(),
    () => {},
  );
  return seen.signal;
}

/** Parts of a delivery that differ between tests. */
interface Difference {
  readonly method?: string;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Gives up. */
  readonly signal?: AbortSignal;
}

/** Sends once, over its own connection: `fetch` would send again what was cut. Answers the status. */
async function deliver(url: string, delivery: string, difference: Difference = {}): Promise<number | string> {
  const signed = {
    "x-svc-event": "a.b",
    "x-svc-delivery": delivery,
    "x-svc-timestamp": `${NOW / 1_000}`,
    "x-svc-signature": await signature(SECRET, new TextEncoder().encode(BODY)),
  };
  const { method = "POST", body = BODY, headers = signed, signal } = difference;
  const { promise, resolve } = Promise.withResolvers<number | string>();
  const sent = request(url, { method, headers, agent: false }, (response) => {
    response.resume().on("close", () => resolve(response.statusCode ?? 0));
  });
  // Longer than the wait for what is printed: who hears nothing for so long is neither answered nor cut.
  sent.setTimeout(90_000, () => {
    resolve("silence");
    sent.destroy();
  });
  sent.on("error", () => resolve(signal?.aborted === true ? "gave up" : "cut"));
  signal?.addEventListener("abort", () => sent.destroy(new Error("gave up")));
  sent.end(method === "GET" ? "" : body);
  return await promise;
}

Deno.test("weir webhooks listen: prints each delivery as a line of JSON, and nothing else there", async () => {
  const { code, stdout, stderr } = await receiving(
    ["--secret", SECRET, "--json", "--fail", "503:1"],
    async ({ url }) => {
      await deliver(url, "d1");
      await deliver(url, "d1", { body: "{}" });
    },
  );
  const one = { at: AT, event: "a.b", delivery: "d1" };
  assertEquals(code, 0);
  assertEquals(stdout.trimEnd().split("\n").map((line) => JSON.parse(line)), [
    { ...one, times: 1, verified: true, response: 503, body: BODY },
    {
      ...one,
      times: 2,
      verified: false,
      problem: "the signature matches no secret",
      response: 200,
      body: "{}",
    },
  ]);
  assertMatch(stderr, /^Listening on http:\/\/127\.0\.0\.1:\d+\nEnded: 2 received, 1 verified\n$/);
});

Deno.test("weir webhooks listen: a body that is not UTF-8 is shown as such", async () => {
  const { stdout } = await receiving(["--json"], async ({ url }) => {
    await deliver(url, "d1", { body: gzipSync(BODY) });
    await deliver(url, "d2", { body: new Uint8Array([0x7b, 0xe4, 0x7d]) });
  });
  const bodies = stdout.trimEnd().split("\n").map((line) => JSON.parse(line).body);
  assertEquals(bodies, [
    `(${gzipSync(BODY).byteLength} bytes that are not UTF-8)`,
    "(3 bytes that are not UTF-8)",
  ]);
});

Deno.test("weir webhooks listen: prints each delivery and whether it is verified, and answers 200", async () => {
  const statuses: (number | string)[] = [];
  const result = await listening(["--secret", "whsec_b2xk", "--secret", SECRET], async (url) => {
    statuses.push(await deliver(url, "d1"), await deliver(url, "d1"));
    statuses.push(await deliver(url, "d2", { body: "no\u001b[2J\n" + "x".repeat(500) }));
    statuses.push(await deliver(url, "d3", { headers: {} }));
    statuses.push(await deliver(`${url}/there`, "d4", { method: "GET" }));
  });
  assertEquals(statuses, [200, 200, 200, 200, 405]);
  assertEquals(result, {
    code: 0,
    stderr: "",
    stdout: `Listening on http://HOST
${AT} a.b, delivery d1, verified, responded with 200
  ${BODY}
${AT} a.b, delivery d1 (received 2 times), verified, responded with 200
  ${BODY}
${AT} a.b, delivery d2, NOT verified: the signature matches no secret, responded with 200
  no\\u001b[2J\\n${"x".repeat(399 - 13)}…
${AT} (no x-svc-event), delivery (no x-svc-delivery), NOT verified: the header x-svc-signature is missing, responded with 200
  ${BODY}
${AT} GET /there: not a delivery, responded with 405
Ended: 4 received, 2 verified
`,
  });
});

Deno.test("weir webhooks listen: fails as the flags say, in that order, and answers 200 after it", async () => {
  const statuses: (number | string)[] = [];
  const args = ["--fail", "503:2", "--fail", "reset:1", "--fail", "timeout:1", "--fail", "307:1"];
  const { code, stdout } = await listening(args, async (url, lines) => {
    for (const delivery of ["1", "2", "3"]) statuses.push(await deliver(url, delivery));
    const signal = printed(lines, "4");
    statuses.push(await deliver(url, "4", { signal }), await deliver(url, "5"), await deliver(url, "6"));
  });
  assertEquals([code, statuses], [0, [503, 503, "cut", "gave up", 307, 200]]);
  assertEquals(stdout.split("\n").filter((line) => line.startsWith(AT)), [
    `${AT} a.b, delivery 1, not verified (no secret given), responded with 503`,
    `${AT} a.b, delivery 2, not verified (no secret given), responded with 503`,
    `${AT} a.b, delivery 3, not verified (no secret given), connection reset`,
    `${AT} a.b, delivery 4, not verified (no secret given), no response`,
    `${AT} a.b, delivery 5, not verified (no secret given), responded with 307`,
    `${AT} a.b, delivery 6, not verified (no secret given), responded with 200`,
  ]);
  assertMatch(stdout, /\nEnded: 6 received\n$/);
});

Deno.test("weir webhooks listen: a failure without a number lasts, and the end cuts who still waits", async () => {
  let waiting: Promise<number | string> = Promise.resolve(0);
  const { stdout } = await listening(["--fail", "timeout"], async (url, lines) => {
    waiting = deliver(url, "1");
    assertEquals(await deliver(url, "2", { signal: printed(lines, "2") }), "gave up");
    await until("the first one to be printed", () => lines.some((line) => line.includes("delivery 1,")));
  });
  assertEquals(await waiting, "cut");
  assertMatch(stdout, /Ended: 2 received\n$/);
});

Deno.test("weir webhooks listen: a body that breaks off is reported and ends nothing", async () => {
  const lines = await listening([], async (url) => {
    const { hostname, port } = new URL(url);
    const connection = await Deno.connect({ hostname, port: Number(port) });
    const head = "POST /half HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf";
    await connection.write(new TextEncoder().encode(head));
    connection.close();
    assertEquals(await deliver(url, "1"), 200);
  });
  assertEquals(lines.code, 0);
  assertMatch(lines.stdout, /delivery 1, .* responded with 200/);
});

Deno.test("weir webhooks listen: a port that is taken is one line", async () => {
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { code, stderr } = await ran(["webhooks", "listen", "--port", `${taken.addr.port}`]);
  assertEquals(code, 1);
  assert(stderr.startsWith(`Cannot listen on "127.0.0.1:${taken.addr.port}": `), stderr);
  assertEquals(stderr.trimEnd().split("\n").length, 1);
});

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.test(`weir webhooks listen: ends on ${signal}`, async () => {
    const { command, args } = weirCommand(["webhooks", "listen", "--port", "0"]);
    await using weir = new ChildProcess(command, { args });
    await until("it to listen", () => weir.stdoutLines.length > 0);
    weir.signal(signal);
    assertEquals(await weir.exited, { code: 0, signal: null });
    assertEquals(weir.stdoutLines.at(-1), "Ended: 0 received");
  });
}
