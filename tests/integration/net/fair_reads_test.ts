import { assert, assertEquals } from "#assert";
import net from "node:net";
import type { GrpcTarget } from "../../../src/grpc/client/dial.ts";
import { CallSource } from "../../../src/load/call_source.ts";
import { LoadConnection } from "../../../src/load/load_connection.ts";
import { encodeRateLimitRequest, RATE_LIMIT_PATH } from "../../../src/wire/rls.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { percentile } from "../../harness/percentile.ts";
import { startWeir } from "../../harness/weir_process.ts";

/** More than a turn of the runtime serves; each has one call in flight, from the first to the last one. */
const CONNECTIONS = 512;
const CALLS = CONNECTIONS * 40;
/** The most calls that overtake one call in a hundred, in multiples of the connections: one is fair. */
const MOST_OVERTAKEN = 3;

const RULES = `domain: fair
descriptors: [{ key: user, rate_limit: { unit: year, requests_per_unit: 4000000000 } }]
`;
const DESCRIPTOR = { entries: [{ key: "user", value: "one" }] };

/** Counts the calls that are answered while a call waits for its answer. */
class Overtaken {
  readonly errors: string[] = [];
  readonly #counts: number[] = [];
  #answered = 0;

  get isOver(): boolean {
    return this.#answered >= CALLS || this.errors.length > 0;
  }

  /** Begins a call; the returned function notes its answer. */
  begin(): () => void {
    const before = this.#answered;
    return () => void this.#counts.push(this.#answered++ - before);
  }

  assertFair(): void {
    assertEquals(this.errors, []);
    assert(this.#answered >= CALLS);
    const found = percentile(this.#counts, 99) / CONNECTIONS;
    assert(found <= MOST_OVERTAKEN, `p99 of overtaking calls is ${found.toFixed(1)} x the connections`);
  }
}

async function callGrpc(peer: GrpcTarget, overtaken: Overtaken): Promise<void> {
  const message = encodeRateLimitRequest({ domain: "fair", descriptors: [DESCRIPTOR], hitsAddend: 0 });
  const source = new CallSource({ variants: 1, message: () => message });
  const deadline = AbortSignal.timeout(60_000);
  const connections = Array.from({ length: CONNECTIONS }, () => {
    let answered = () => {};
    const error = (text: string) => void overtaken.errors.push(text);
    const record = {
      begin: () => void (answered = overtaken.begin()),
      goodAnswer: () => answered(),
      badAnswer: error,
      lost: error,
      error,
    };
    const nextCall = () => overtaken.isOver ? undefined : source.next();
    const checkMessage = () => undefined;
    const path = RATE_LIMIT_PATH;
    return new LoadConnection({ peer, path, inFlight: 1, checkMessage, record, nextCall, deadline });
  });
  await Promise.all(connections.map(({ ready }) => ready));
  for (const connection of connections) connection.resume();
  await Promise.all(connections.map(({ closed }) => closed));
}

async function callJson(address: string, overtaken: Overtaken): Promise<void> {
  const body = JSON.stringify({ domain: "fair", descriptors: [DESCRIPTOR] });
  const request = `POST /json HTTP/1.1\r\nhost: weir\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const [host = "", port = ""] = address.split(":");
  await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
    const socket = net.connect({ host, port: Number(port) }).setEncoding("latin1");
    const closed = new Promise((resolve) => socket.once("close", resolve));
    let answered = () => {};
    const call = () => {
      if (overtaken.isOver) return void socket.destroy();
      answered = overtaken.begin();
      socket.write(request);
    };
    socket.once("connect", call).on("error", (error) => overtaken.errors.push(String(error)));
    // Small enough for one read, and one at a time.
    socket.on("data", (answer) => {
      if (!String(answer).startsWith("HTTP/1.1 200")) overtaken.errors.push(String(answer));
      answered();
      call();
    });
    await closed;
  }));
}

function addressOf(address: string): { host: string; port: number } {
  const [host = "", port = ""] = address.split(":");
  return { host, port: Number(port) };
}

Deno.test("fair reads: no connection is overtaken again and again by hundreds of busy ones", async (test) => {
  await using weir = await startWeir({ rules: { "fair.yaml": RULES } });
  await test.step("gRPC", async () => {
    const overtaken = new Overtaken();
    await callGrpc({ address: addressOf(weir.grpcAddress) }, overtaken);
    overtaken.assertFair();
  });
  await test.step("/json", async () => {
    const overtaken = new Overtaken();
    await callJson(weir.httpAddress, overtaken);
    overtaken.assertFair();
  });
});

Deno.test("fair reads: with gRPC over TLS", async () => {
  await using certificates = await makeCertificates();
  const { server, authority } = certificates;
  const env = {
    GRPC_SERVER_USE_TLS: "true",
    GRPC_SERVER_TLS_CERT: server.certFile,
    GRPC_SERVER_TLS_KEY: server.keyFile,
  };
  await using weir = await startWeir({ rules: { "fair.yaml": RULES }, env });
  const overtaken = new Overtaken();
  const ca = await Deno.readTextFile(authority.certFile);
  await callGrpc({ address: addressOf(weir.grpcAddress), tls: { ca } }, overtaken);
  overtaken.assertFair();
});
