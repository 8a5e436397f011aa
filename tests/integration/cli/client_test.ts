import { assertEquals, assertMatch, assertStringIncludes } from "#assert";
import { status } from "@grpc/grpc-js";
import {
  decodeRateLimitRequest,
  encodeRateLimitResponse,
  type WireRateLimitResponse,
} from "../../../src/wire/rls.ts";
import { type Ran, ran } from "../../harness/administration_fixture.ts";
import { type CertificateFiles, makeCertificates } from "../../harness/certificates.ts";
import { freePort } from "../../harness/free_port.ts";
import { type GrpcPeerOptions, startGrpcPeer } from "../../harness/grpc_peer.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";

const METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const QUESTION = "-domain d -descriptors a=b";
const OK: WireRateLimitResponse = {
  overallCode: 1,
  statuses: [{ code: 1, limitRemaining: 0 }],
  responseHeadersToAdd: [],
};

const FIVE_PER_MINUTE = {
  currentLimit: { name: "", requestsPerUnit: 5, unit: 2 },
  secondsUntilReset: 42,
} as const;

interface AnswerCase {
  readonly line?: string;
  readonly response: WireRateLimitResponse;
  readonly code?: number;
  readonly stdout: string;
}

const ANSWERS: Readonly<Record<string, AnswerCase>> = {
  "no limit": { response: OK, stdout: "overall code: OK\ndescriptor a=b: OK, no limit\n" },
  "an unlimited descriptor": {
    response: { ...OK, statuses: [{ code: 1, limitRemaining: 4_294_967_295 }] },
    stdout: "overall code: OK\ndescriptor a=b: OK, unlimited\n",
  },
  "as YAML": {
    line: "-domain d -descriptors a=b -descriptors c=d -output yaml",
    response: {
      overallCode: 2,
      statuses: [
        { code: 2, ...FIVE_PER_MINUTE, limitRemaining: 0 },
        { code: 1, limitRemaining: 4_294_967_295 },
      ],
      responseHeadersToAdd: [],
    },
    code: 3,
    stdout: `overallCode: OVER_LIMIT
descriptors:
  - entries:
      - key: a
        value: b
    code: OVER_LIMIT
    limit:
      requestsPerUnit: 5
      unit: MINUTE
    remaining: 0
    secondsUntilReset: 42
  - entries:
      - key: c
        value: d
    code: OK
    unlimited: true
headers: []
`,
  },
  "one of two descriptors over its limit, with headers": {
    line: "-domain d -descriptors a=b,c= --descriptors=e=f",
    response: {
      overallCode: 2,
      statuses: [
        { code: 1, ...FIVE_PER_MINUTE, limitRemaining: 4 },
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
    stdout: `overall code: OVER_LIMIT
descriptor a=b,c=: OK, limit 5 per MINUTE, remaining 4, reset in 42 s
descriptor e=f: OVER_LIMIT, limit 1 per WEEK (strict), remaining 0, reset in 7 s
header RateLimit-Limit: 1
`,
  },
  "a code that decides nothing": {
    response: { ...OK, overallCode: 0, statuses: [] },
    code: 1,
    stdout: "overall code: UNKNOWN\n",
  },
};

for (const [name, { line = QUESTION, response, code = 0, stdout }] of Object.entries(ANSWERS)) {
  Deno.test(`client prints ${name}`, async () => {
    const answer = () => encodeRateLimitResponse(response);
    assertEquals(await askPeer(line, { answer }), { code, stdout, stderr: "" });
  });
}

Deno.test("client sends domain, descriptors and hits", async () => {
  const requests: unknown[] = [];
  const answer = (request: Uint8Array) => {
    const { domain, descriptors, hitsAddend } = decodeRateLimitRequest(request);
    requests.push({ domain, entries: descriptors.map((descriptor) => descriptor.entries), hitsAddend });
    return encodeRateLimitResponse(OK);
  };
  await askPeer("-domain=é -descriptors a=b,c= -descriptors=é=f", { answer });
  await askPeer(`${QUESTION} --hits_addend 7`, { answer });
  assertEquals(requests, [
    {
      domain: "é",
      entries: [[{ key: "a", value: "b" }, { key: "c", value: "" }], [{ key: "é", value: "f" }]],
      hitsAddend: 1,
    },
    { domain: "d", entries: [[{ key: "a", value: "b" }]], hitsAddend: 7 },
  ]);
});

for (const engine of ["native", "grpc-js"]) {
  Deno.test({
    name: `client tells that a domain is unknown: ${engine}`,
    async fn() {
      const rule = "{ key: k, rate_limit: { unit: day, requests_per_unit: 5 } }";
      const rules = { "a.yaml": `domain: shop\ndescriptors: [${rule}]\n` };
      await using weir = await ServeFixture.start({ rules, env: { GRPC_ENGINE: engine } });
      const ask = (line: string) => ran(`client ${line} -dial_string ${weir.grpcAddress}`);
      const none = "overall code: OK\ndescriptor a=b: OK, no limit\n";
      const note = 'the domain "nope" is unknown: no rules are loaded for it\n';
      assertEquals(await ask("-domain nope -descriptors a=b"), { code: 0, stdout: none + note, stderr: "" });
      assertEquals(await ask("-domain shop -descriptors a=b"), { code: 0, stdout: none, stderr: "" });
      const { stdout } = await ask("-domain nope -descriptors a=b -output json");
      assertStringIncludes(stdout, "unknownDomain");
    },
  });
}

Deno.test("client reaches a server by an IPv6 address, and by a unix socket", async () => {
  const folder = await Deno.makeTempDir();
  const answer = () => encodeRateLimitResponse(OK);
  {
    using numbered = await startGrpcPeer(METHOD, { listen: "[::1]:0", answer });
    using _named = await startGrpcPeer(METHOD, { listen: `unix:${folder}/rls.sock`, answer });
    for (const address of [`[::1]:${numbered.port}`, `unix:${folder}/rls.sock`]) {
      assertEquals((await ran(`client ${QUESTION} -dial_string ${address}`)).code, 0);
    }
  }
  await Deno.remove(folder, { recursive: true });
});

Deno.test("client tells why it was refused, and lets no server steer the terminal", async () => {
  const details = "rate limit domain must not be empty\u001b[2J";
  const answer = () => ({ code: status.INVALID_ARGUMENT, details });
  const { code, stdout, stderr } = await askPeer(QUESTION, { answer });
  assertEquals([code, stdout], [1, ""]);
  assertMatch(
    stderr,
    /^Cannot call "127\.0\.0\.1:\d+": INVALID_ARGUMENT: rate limit domain must not be empty\\u001b\[2J\n$/,
  );
});

/** Servers that cannot be asked, and what is said after their address. */
const UNREACHABLE: Readonly<Record<string, (ask: (address: string) => Promise<Ran>) => Promise<string>>> = {
  async "a server that does not answer: DEADLINE_EXCEEDED: "(ask) {
    using peer = await startGrpcPeer(METHOD, { answer: () => undefined });
    return (await ask(`127.0.0.1:${peer.port} -timeout 100ms`)).stderr;
  },
  "no server: UNAVAILABLE: connection refused\n": async (ask) =>
    (await ask(`127.0.0.1:${freePort()}`)).stderr,
  "no socket: UNAVAILABLE: no connection: there is no such socket\n": async (ask) =>
    (await ask("unix:/does/not/exist.sock")).stderr,
  async "one that cuts every connection: UNAVAILABLE: no connection: "(ask) {
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const closing = (async () => {
      for await (const connection of listener) connection.close();
    })();
    const { stderr } = await ask(`127.0.0.1:${listener.addr.port}`);
    listener.close();
    await closing;
    return stderr;
  },
};

for (const [name, meet] of Object.entries(UNREACHABLE)) {
  Deno.test({
    name: `client meets ${name.trim()}`,
    async fn() {
      const stderr = await meet(async (address) => {
        const answer = await ran(`client ${QUESTION} -dial_string ${address}`);
        assertEquals([answer.code, answer.stdout], [1, ""]);
        return answer;
      });
      const said = stderr.replace(/^Cannot call "[^"]+"/, "");
      assertStringIncludes(said, name.slice(name.indexOf(": ")));
    },
  });
}

Deno.test("client tells which file it cannot read", async () => {
  const { code, stderr } = await ran(`client ${QUESTION} -tls -ca /does/not/exist.pem`);
  assertEquals(code, 2);
  assertStringIncludes(stderr, 'Cannot use --ca "/does/not/exist.pem": ');
});

function tlsEnv({ certFile, keyFile }: CertificateFiles): Record<string, string> {
  return { GRPC_SERVER_USE_TLS: "true", GRPC_SERVER_TLS_CERT: certFile, GRPC_SERVER_TLS_KEY: keyFile };
}

Deno.test({
  ...needs(
    ["openssl"],
    "client: TLS to an IP address, client certificates, and the cause when only one side uses TLS",
  ),
  async fn() {
    await using certificates = await makeCertificates();
    const { server, elsewhere, authority, client } = certificates;
    await using plain = await ServeFixture.start();
    await using secure = await ServeFixture.start({ env: tlsEnv(server) });
    const ask = async (address: string, flags = "") => {
      const { code, stderr } = await ran(`client ${QUESTION} -dial_string ${address} ${flags}`);
      return [code, stderr.replace(`"${address}"`, "ADDRESS")];
    };
    const trust = `-tls -ca ${authority.certFile}`;
    assertEquals(await ask(plain.grpcAddress, trust), [
      1,
      "Cannot call ADDRESS: UNAVAILABLE: no connection: the port does not use TLS; remove --tls, or correct the address\n",
    ]);
    // Of a port that is not for plain gRPC, the client sees the end or an answer in another protocol.
    for (const address of [secure.grpcAddress, plain.httpAddress]) {
      const [code, text] = await ask(address);
      assertEquals(code, 1);
      assertMatch(
        String(text),
        /UNAVAILABLE: no connection: .+; is it a gRPC port, and does it use TLS\? See --tls and --cert\n$/,
      );
    }
    assertEquals((await ask(secure.grpcAddress, "-tls"))[0], 1);

    // The address is an IP address, which the certificate must contain.
    assertEquals(await ask(secure.grpcAddress, trust), [0, ""]);
    await using other = await ServeFixture.start({ env: tlsEnv(elsewhere) });
    const [code, text] = await ask(other.grpcAddress, trust);
    assertEquals(code, 1);
    assertMatch(String(text), /IP: 127\.0\.0\.1 is not in the cert's list/);

    const env = { ...tlsEnv(server), GRPC_CLIENT_TLS_CACERT: authority.certFile };
    await using mutual = await ServeFixture.start({ env });
    const own = `-cert ${client.certFile} -key ${client.keyFile}`;
    assertEquals(await ask(mutual.grpcAddress, `${trust} ${own}`), [0, ""]);
    assertEquals((await ask(mutual.grpcAddress, trust))[0], 1);
  },
});

async function askPeer(line: string, options: GrpcPeerOptions): Promise<Ran> {
  using peer = await startGrpcPeer(METHOD, options);
  return await ran(`client ${line} -dial_string 127.0.0.1:${peer.port}`);
}
