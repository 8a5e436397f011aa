import { assertEquals, assertMatch } from "#assert";
import { Metadata, status } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";
import tls from "node:tls";
import type { GrpcTls } from "../../../src/grpc/client/dial.ts";
import { OtlpGrpcTransport } from "../../../src/telemetry/otlp_grpc_transport.ts";
import { type CertificateFiles, type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { type PeerAnswer, startGrpcPeer } from "../../harness/grpc_peer.ts";
import { type RelayMode, startTcpRelay } from "../../harness/tcp_relay.ts";
import { until } from "../../harness/until.ts";

const PATH = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const DATA = Uint8Array.of(1, 2, 3);
const ACCEPTED = Uint8Array.of(10, 0);
/** Far away; by a quick clock, half a minute. */
const TIMEOUT_MS = 600_000;

/** A clock whose waits end twenty times sooner, and that keeps them. */
function quick(): FakeClock {
  return FakeClock.ofMachine({ factor: 1 / 20, fromMs: 0 });
}

function transportTo(
  port: number,
  clock = quick(),
  { secure, isCompressed = false }: { secure?: GrpcTls; isCompressed?: boolean } = {},
): OtlpGrpcTransport {
  const target = { address: { host: "127.0.0.1", port }, tls: secure };
  const options = { target, metadata: [["x-token", "a"]], path: PATH, isCompressed } as const;
  return new OtlpGrpcTransport({ ...options, clock, random: () => 1 });
}

function refusal(code: number, delaySeconds?: number): PeerAnswer {
  const metadata = new Metadata();
  if (delaySeconds !== undefined) {
    const type = new TextEncoder().encode("type.googleapis.com/google.rpc.RetryInfo");
    const info = [0x0a, 2, 0x08, delaySeconds];
    const any = [0x0a, type.length, ...type, 0x12, info.length, ...info];
    metadata.set("grpc-status-details-bin", Buffer.from([0x1a, any.length, ...any]));
  }
  return { code, details: "busy", metadata };
}

const EXHAUSTED = "RESOURCE_EXHAUSTED: busy";
const CASES: readonly {
  readonly title: string;
  /** In turn; the last one from then on. */
  readonly answers: readonly PeerAnswer[];
  readonly calls: number;
  /** The pauses between calls, in milliseconds. */
  readonly pauses: readonly number[];
  readonly problem?: string;
  readonly isCompressed?: boolean;
}[] = [
  { title: "accepted", answers: [ACCEPTED], calls: 1, pauses: [] },
  { title: "compressed and accepted", answers: [ACCEPTED], calls: 1, pauses: [], isCompressed: true },
  {
    title: "accepted after two refusals",
    answers: [refusal(status.UNAVAILABLE), refusal(status.ABORTED), ACCEPTED],
    calls: 3,
    pauses: [1_000, 2_000],
  },
  {
    title: "repeated when the collector asks for it",
    answers: [refusal(status.RESOURCE_EXHAUSTED, 3), ACCEPTED],
    calls: 2,
    pauses: [3_000],
  },
  {
    title: "exhausted without a delay",
    answers: [refusal(status.RESOURCE_EXHAUSTED)],
    calls: 1,
    pauses: [],
    problem: EXHAUSTED,
  },
  {
    title: "invalid",
    answers: [refusal(status.INVALID_ARGUMENT)],
    calls: 1,
    pauses: [],
    problem: "INVALID_ARGUMENT: busy",
  },
  {
    title: "never accepted",
    answers: [refusal(status.UNAVAILABLE)],
    calls: 6,
    pauses: [1_000, 2_000, 4_000, 5_000, 5_000],
    problem: "UNAVAILABLE: busy",
  },
];

for (const { title, answers, calls, pauses, problem, isCompressed } of CASES) {
  Deno.test(`OTLP over gRPC: an export that is ${title}`, async () => {
    const received: unknown[] = [];
    using peer = await startGrpcPeer(PATH, {
      answer(request, metadata) {
        received.push([[...request], metadata.get("x-token")]);
        return answers[Math.min(received.length, answers.length) - 1];
      },
    });
    const clock = quick();
    const transport = transportTo(peer.port, clock, { isCompressed: isCompressed === true });
    const response = await transport.send(DATA, TIMEOUT_MS);
    transport.shutdown();
    const answer = response.status === "success"
      ? [...response.data ?? []]
      : response.status === "failure" && response.error.message;
    assertEquals([answer, received.length], [problem ?? [...ACCEPTED], calls]);
    assertEquals(received, Array.from({ length: calls }, () => [[...DATA], ["a"]]));
    assertEquals(clock.waits.filter((ms) => ms <= 5_000), pauses);
  });
}

Deno.test("OTLP over gRPC: a delay beyond the timeout ends the export", async () => {
  let calls = 0;
  using peer = await startGrpcPeer(PATH, {
    answer: () => (calls++, refusal(status.UNAVAILABLE, 100)),
  });
  const transport = transportTo(peer.port, FakeClock.ofMachine());
  const response = await transport.send(DATA, 90_000);
  transport.shutdown();
  assertEquals([calls, response.status === "failure" && response.error.message], [1, "UNAVAILABLE: busy"]);
});

Deno.test("OTLP over gRPC: a timeout does not hide the reason of the attempt before", async () => {
  let calls = 0;
  using peer = await startGrpcPeer(PATH, {
    answer: () => ++calls === 1 ? refusal(status.UNAVAILABLE) : undefined,
  });
  const transport = transportTo(peer.port, FakeClock.ofMachine());
  const response = await transport.send(DATA, 1_500);
  transport.shutdown();
  assertEquals(response.status === "failure" && response.error.message, "UNAVAILABLE: busy");
});

const FAULTS: readonly [mode: RelayMode, title: string][] = [
  ["refuse", "closes connections"],
  ["garbage", "sends bytes of no protocol"],
  ["stall", "is silent"],
];

for (const [mode, title] of FAULTS) {
  Deno.test(`OTLP over gRPC: a collector that ${title} is connected to again`, async () => {
    using peer = await startGrpcPeer(PATH, { answer: () => ACCEPTED });
    await using relay = await startTcpRelay(peer.port);
    relay.setMode(mode);
    const transport = transportTo(relay.port);
    const sent = transport.send(DATA, TIMEOUT_MS);
    await until("the export to connect", () => relay.accepted > 0);
    relay.setMode("relay");
    assertEquals((await sent).status, "success");
    transport.shutdown();
  });
}

Deno.test("OTLP over gRPC: exports share a connection, and open one after its loss", async () => {
  using peer = await startGrpcPeer(PATH, { answer: () => ACCEPTED });
  await using relay = await startTcpRelay(peer.port);
  const transport = transportTo(relay.port);
  const both = await Promise.all([transport.send(DATA, TIMEOUT_MS), transport.send(DATA, TIMEOUT_MS)]);
  assertEquals([both.map(({ status }) => status), relay.accepted], [["success", "success"], 1]);
  relay.dropAll();
  assertEquals((await transport.send(DATA, TIMEOUT_MS)).status, "success");
  assertEquals(relay.accepted, 2);
  transport.shutdown();
});

Deno.test("OTLP over gRPC: a connection on which an export had no answer in time is not used again", async () => {
  using peer = await startGrpcPeer(PATH, { answer: () => ACCEPTED });
  await using relay = await startTcpRelay(peer.port);
  const transport = transportTo(relay.port, FakeClock.ofMachine());
  assertEquals((await transport.send(DATA, TIMEOUT_MS)).status, "success");
  relay.setMode("stall");
  const late = await transport.send(DATA, 100);
  relay.setMode("relay");
  assertEquals((await transport.send(DATA, TIMEOUT_MS)).status, "success");
  assertEquals([late.status, relay.accepted], ["failure", 2]);
  transport.shutdown();
});

Deno.test("OTLP over gRPC: connection refused, and the end does not wait for the next attempt", async () => {
  const clock = new FakeClock();
  const transport = transportTo(freePort(), clock);
  const sent = transport.send(DATA, TIMEOUT_MS);
  await until("the pause after the first attempt", () => clock.waits.includes(1_000));
  transport.shutdown();
  const response = await sent;
  assertEquals(response.status === "failure" && response.error.message, "UNAVAILABLE: connection refused");
});

/** Takes TLS off the connections to a server on another port. */
class TlsFront implements AsyncDisposable {
  readonly port: number;
  readonly #server: tls.Server;
  readonly #sockets: Set<Socket>;

  constructor(server: tls.Server, sockets: Set<Socket>, port: number) {
    [this.#server, this.#sockets, this.port] = [server, sockets, port];
  }

  static async start({ certFile, keyFile }: CertificateFiles, port: number): Promise<TlsFront> {
    const sockets = new Set<Socket>();
    const options = { cert: pem(certFile), key: pem(keyFile), ALPNProtocols: ["h2"] };
    const server = tls.createServer(options, (socket) => {
      const inner = connect(port, "127.0.0.1");
      for (const end of [socket, inner]) sockets.add(end.on("error", () => {}));
      socket.pipe(inner).pipe(socket);
    });
    server.on("tlsClientError", () => {});
    const own = freePort();
    await new Promise<void>((resolve) => server.listen(own, "127.0.0.1", () => resolve()));
    return new TlsFront(server, sockets, own);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

const pem = (path: string) => Deno.readTextFileSync(path);
const OUTCOMES: readonly [
  title: string,
  tls: (certificates: Certificates) => GrpcTls,
  server: "server" | "elsewhere" | "expired",
  problem: RegExp | undefined,
][] = [
  ["of the trusted authority", ({ authority }) => ({ ca: pem(authority.certFile) }), "server", undefined],
  [
    "of another authority",
    ({ otherAuthority }) => ({ ca: pem(otherAuthority.certFile) }),
    "server",
    /^UNAVAILABLE: .*it is not issued by a trusted authority$/,
  ],
  [
    "for another name",
    ({ authority }) => ({ ca: pem(authority.certFile) }),
    "elsewhere",
    /^UNAVAILABLE: .*127\.0\.0\.1 is not in the cert/,
  ],
  [
    "that has expired",
    ({ authority }) => ({ ca: pem(authority.certFile) }),
    "expired",
    /^UNAVAILABLE: the certificate expired on \d{4}-.* \(CERT_HAS_EXPIRED\)$/,
  ],
];

for (const [title, tlsOf, name, problem] of OUTCOMES) {
  Deno.test(`OTLP over gRPC: a certificate ${title}`, async () => {
    await using certificates = await makeCertificates();
    const names = "DNS:localhost,IP:127.0.0.1";
    const files = name === "expired"
      ? await certificates.issue("expired", { names, isExpired: true })
      : certificates[name];
    using peer = await startGrpcPeer(PATH, { answer: () => ACCEPTED });
    await using front = await TlsFront.start(files, peer.port);
    const transport = transportTo(front.port, quick(), { secure: tlsOf(certificates) });
    const response = await transport.send(DATA, TIMEOUT_MS);
    transport.shutdown();
    if (problem === undefined) assertEquals(response.status, "success");
    else assertMatch(response.status === "failure" ? response.error.message : "", problem);
  });
}
