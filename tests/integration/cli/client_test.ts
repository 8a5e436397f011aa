import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { ServerCredentials, status } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { runCommand } from "../../../src/cli/commands.ts";
import {
  decodeRateLimitRequest,
  encodeRateLimitResponse,
  type WireRateLimitResponse,
} from "../../../src/wire/rls.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { freePort } from "../../harness/free_port.ts";
import { type GrpcPeerOptions, startGrpcPeer } from "../../harness/grpc_peer.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs, requireTool } from "../../harness/tools.ts";

const METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const QUESTION = ["-domain", "d", "-descriptors", "a=b"];
// After a connection that failed grpc-js lets its backoff timer of a second run out, even on a closed client.
// It holds nothing up, so nobody waits for it.
const BACKOFF_STAYS = { sanitizeOps: false, sanitizeResources: false } as const;
const OK: WireRateLimitResponse = {
  overallCode: 1,
  statuses: [{ code: 1, limitRemaining: 0 }],
  responseHeadersToAdd: [],
};

const ANSWERS: {
  name: string;
  args: string[];
  response: WireRateLimitResponse;
  code: number;
  lines: string[];
}[] = [
  {
    name: "no limit",
    args: QUESTION,
    response: OK,
    code: 0,
    lines: ["overall code: OK", "descriptor a=b: OK, no limit"],
  },
  {
    name: "an unlimited descriptor",
    args: QUESTION,
    response: { ...OK, statuses: [{ code: 1, limitRemaining: 4_294_967_295 }] },
    code: 0,
    lines: ["overall code: OK", "descriptor a=b: OK, unlimited"],
  },
  {
    name: "as YAML",
    args: ["-domain", "d", "-descriptors", "a=b", "-descriptors", "c=d", "-output", "yaml"],
    response: {
      overallCode: 2,
      statuses: [
        {
          code: 2,
          currentLimit: { name: "", requestsPerUnit: 5, unit: 2 },
          limitRemaining: 0,
          secondsUntilReset: 42,
        },
        { code: 1, limitRemaining: 4_294_967_295 },
      ],
      responseHeadersToAdd: [],
    },
    code: 3,
    lines: [
      ...["overallCode: OVER_LIMIT", "descriptors:", "  - entries:", "      - key: a", "        value: b"],
      ...["    code: OVER_LIMIT", "    limit:", "      requestsPerUnit: 5", "      unit: MINUTE"],
      ...[
        "    remaining: 0",
        "    secondsUntilReset: 42",
        "  - entries:",
        "      - key: c",
        "        value: d",
      ],
      ...["    code: OK", "    unlimited: true", "headers: []"],
    ],
  },
  {
    name: "one of two descriptors over its limit, with headers",
    args: ["-domain", "d", "-descriptors", "a=b,c=", "--descriptors=e=f"],
    response: {
      overallCode: 2,
      statuses: [
        {
          code: 1,
          currentLimit: { name: "", requestsPerUnit: 5, unit: 2 },
          limitRemaining: 4,
          secondsUntilReset: 42,
        },
        {
          code: 2,
          currentLimit: { name: "strict", requestsPerUnit: 1, unit: 7 },
          limitRemaining: 0,
          secondsUntilReset: 7,
        },
      ],
      responseHeadersToAdd: [{ key: "RateLimit-Limit", value: "1" }],
    },
    code: 3,
    lines: [
      "overall code: OVER_LIMIT",
      "descriptor a=b,c=: OK, limit 5 per MINUTE, remaining 4, reset in 42 s",
      "descriptor e=f: OVER_LIMIT, limit 1 per WEEK (strict), remaining 0, reset in 7 s",
      "header RateLimit-Limit: 1",
    ],
  },
  {
    name: "a code that decides nothing",
    args: QUESTION,
    response: { ...OK, overallCode: 0, statuses: [] },
    code: 1,
    lines: ["overall code: UNKNOWN"],
  },
];

for (const { name, args, response, code, lines } of ANSWERS) {
  Deno.test(`client prints ${name}`, async () => {
    const answer = () => encodeRateLimitResponse(response);
    assertEquals(await runAgainstPeer(args, { answer }), { code, out: lines, err: [] });
  });
}

Deno.test("client sends domain, descriptors and hits", async () => {
  const requests: unknown[] = [];
  const answer = (request: Uint8Array) => {
    const { domain, descriptors, hitsAddend } = decodeRateLimitRequest(request);
    requests.push({ domain, entries: descriptors.map((descriptor) => descriptor.entries), hitsAddend });
    return encodeRateLimitResponse(OK);
  };
  await runAgainstPeer(["-domain=", "-descriptors", "a=b,c=", "-descriptors=é=f"], { answer });
  await runAgainstPeer([...QUESTION, "--hits_addend", "7"], { answer });
  assertEquals(requests, [
    {
      domain: "",
      entries: [[{ key: "a", value: "b" }, { key: "c", value: "" }], [{ key: "é", value: "f" }]],
      hitsAddend: 1,
    },
    { domain: "d", entries: [[{ key: "a", value: "b" }]], hitsAddend: 7 },
  ]);
});

for (const engine of ["native", "grpc-js"]) {
  Deno.test({
    name: `client tells that a domain is unknown: ${engine}`,
    ...BACKOFF_STAYS,
    async fn() {
      const rule = "{ key: k, rate_limit: { unit: day, requests_per_unit: 5 } }";
      const rules = { "a.yaml": `domain: shop\ndescriptors: [${rule}]\n` };
      await using weir = await ServeFixture.start({ rules, env: { GRPC_ENGINE: engine } });
      const ask = async (...args: string[]) => {
        const { code, out, err } = await run([...args, "-dial_string", weir.grpcAddress]);
        return [code, out, err];
      };
      const none = ["overall code: OK", "descriptor a=b: OK, no limit"];
      assertEquals(await ask("-domain", "nope", "-descriptors", "a=b"), [
        0,
        [...none, 'the domain "nope" is unknown: no rules are loaded for it'],
        [],
      ]);
      assertEquals(await ask("-domain", "shop", "-descriptors", "a=b"), [0, none, []]);
      const [, out] = await ask("-domain", "nope", "-descriptors", "a=b", "-output", "json");
      assertStringIncludes(JSON.stringify(out), "unknownDomain");
    },
  });
}

Deno.test("client reaches a server by an IPv6 address", async () => {
  using peer = await startGrpcPeer(METHOD, { listen: "[::1]:0", answer: () => encodeRateLimitResponse(OK) });
  assertEquals((await run([...QUESTION, "-dial_string", `[::1]:${peer.port}`])).code, 0);
});

Deno.test("client reaches a server by a unix socket", async () => {
  const folder = await Deno.makeTempDir();
  const address = `unix:${join(folder, "rls.sock")}`;
  {
    using _peer = await startGrpcPeer(METHOD, { listen: address, answer: () => encodeRateLimitResponse(OK) });
    assertEquals((await run([...QUESTION, "-dial_string", address])).code, 0);
  }
  await Deno.remove(folder, { recursive: true });
});

Deno.test({
  ...needs(["openssl"], "client speaks TLS with a certificate of its own"),
  ...BACKOFF_STAYS,
  async fn() {
    const folder = await Deno.makeTempDir();
    const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    await makeCertificate(cert, key);
    const [certChain, privateKey] = [
      Buffer.from(await Deno.readFile(cert)),
      Buffer.from(await Deno.readFile(key)),
    ];
    const credentials = ServerCredentials.createSsl(certChain, [{
      cert_chain: certChain,
      private_key: privateKey,
    }], true);
    {
      using peer = await startGrpcPeer(METHOD, { credentials, answer: () => encodeRateLimitResponse(OK) });
      const args = [...QUESTION, "-dial_string", `localhost:${peer.port}`];
      const tls = ["-tls", "-ca", cert, "-cert", cert, "-key", key];
      const codes = [];
      for (const more of [tls, ["-tls"], ["-tls", "-ca", cert], []]) {
        codes.push((await run([...args, ...more])).code);
      }
      assertEquals(codes, [0, 1, 1, 1]);
    }
    await Deno.remove(folder, { recursive: true });
  },
});

Deno.test("client tells why it was refused", async () => {
  const answer = () => ({ code: status.INVALID_ARGUMENT, details: "rate limit domain must not be empty" });
  const { code, out, err } = await runAgainstPeer(QUESTION, { answer });
  assertEquals([code, out], [1, []]);
  assertMatch(
    err.join(),
    /^Cannot call "127\.0\.0\.1:\d+": INVALID_ARGUMENT: rate limit domain must not be empty$/,
  );
});

Deno.test({
  name: "client gives up on a server that does not answer",
  ...BACKOFF_STAYS,
  async fn() {
    const args = [...QUESTION, "-timeout", "100ms"];
    const { code, err } = await runAgainstPeer(args, { answer: () => undefined });
    assertEquals(code, 1);
    assertStringIncludes(err.join(), ": DEADLINE_EXCEEDED: ");
  },
});

Deno.test({
  name: "client tells that nobody listens",
  ...BACKOFF_STAYS,
  async fn() {
    const address = `127.0.0.1:${freePort()}`;
    const { code, err } = await run([...QUESTION, "-dial_string", address]);
    assertEquals([code, err], [1, [
      `Cannot call "${address}": UNAVAILABLE: connection refused`,
    ]]);
  },
});

Deno.test({
  name: "client tells that a unix socket is not there",
  ...BACKOFF_STAYS,
  async fn() {
    const { code, err } = await run([...QUESTION, "-dial_string", "unix:/does/not/exist.sock"]);
    assertEquals([code, err], [1, [
      'Cannot call "unix:/does/not/exist.sock": UNAVAILABLE: no connection: connect ENOENT /does/not/exist.sock',
    ]]);
  },
});

Deno.test({
  name: "client tells that a connection is cut by whoever listens",
  ...BACKOFF_STAYS,
  async fn() {
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const closing = (async () => {
      for await (const connection of listener) connection.close();
    })();
    const address = `127.0.0.1:${listener.addr.port}`;
    const { code, err } = await run([...QUESTION, "-dial_string", address]);
    listener.close();
    await closing;
    assertEquals([code, err.join().includes("Resolution note")], [1, false]);
    assertMatch(err.join(), /^Cannot call "127\.0\.0\.1:\d+": UNAVAILABLE: no connection: ./);
  },
});

Deno.test("client tells which file it cannot read", async () => {
  const { code, err } = await run([...QUESTION, "-tls", "-ca", "/does/not/exist.pem"]);
  assertEquals(code, 1);
  assertStringIncludes(err.join(), 'Cannot use --ca "/does/not/exist.pem": ');
});

/** What a run of the client left behind. */
interface Ran {
  readonly code: number;
  readonly out: string[];
  readonly err: string[];
}

async function run(args: readonly string[]): Promise<Ran> {
  const out: string[] = [];
  const err: string[] = [];
  const output = {
    stdout: (text: string) => void out.push(text),
    stderr: (text: string) => void err.push(text),
  };
  const code = await runCommand(["client", ...args], { environment: {}, output });
  return { code, out, err };
}

async function runAgainstPeer(args: readonly string[], options: GrpcPeerOptions): Promise<Ran> {
  using peer = await startGrpcPeer(METHOD, options);
  return await run([...args, "-dial_string", `127.0.0.1:${peer.port}`]);
}

async function makeCertificate(cert: string, key: string): Promise<void> {
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const args = ["req", "-x509", ...kind, "-keyout", key, "-out", cert, ...names];
  await using openssl = new ChildProcess(requireTool("openssl"), { args });
  assertEquals((await openssl.exited).code, 0);
}
