import { assert, assertEquals } from "#assert";
import net from "node:net";
import type { GrpcTarget } from "../../../src/grpc/client/dial.ts";
import { CallSource } from "../../../src/load/call_source.ts";
import { LoadConnection } from "../../../src/load/load_connection.ts";
import { encodeRateLimitRequest, RATE_LIMIT_PATH } from "../../../src/wire/rls.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { percentile } from "../../harness/percentile.ts";
import { needs } from "../../harness/tools.ts";
import { startWeir } from "../../harness/weir_process.ts";

/** More than a turn of the runtime serves; each has one call in flight, from the first to the last one. */
const CONNECTIONS = 256;
const CALLS = CONNECTIONS * 40;
/** A client without the CPU sends late, which looks the same: the order is fair if it is in one of these runs. */
const RUNS = 4;
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

  /** The p99, in multiples of the connections. */
  get p99(): number {
    assertEquals(this.errors, []);
    assert(this.#answered >= CALLS);
    return percentile(this.#counts, 99) / CONNECTIONS;
  }
}

async function assertFair(call: (overtaken: Overtaken) => Promise<void>): Promise<void> {
  const found: string[] = [];
  for (let run = 1; run <= RUNS; run++) {
    const overtaken = new Overtaken();
    await call(overtaken);
    if (overtaken.p99 <= MOST_OVERTAKEN) return;
    found.push(overtaken.p99.toFixed(1));
  }
  throw new Error(`p99 of overtaking calls is ${found.join(", ")} times the connections`);
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

Deno.test({
  ...needs(
    ["openssl"],
    "fair reads over TLS: no connection is overtaken again and again by hundreds of busy ones",
  ),
  async fn() {
    await using certificates = await makeCertificates();
    const { server: { certFile, keyFile }, authority } = certificates;
    const env = {
      GRPC_SERVER_USE_TLS: "true",
      GRPC_SERVER_TLS_CERT: certFile,
      GRPC_SERVER_TLS_KEY: keyFile,
    };
    await using weir = await startWeir({ rules: { "fair.yaml": RULES }, env });
    const ca = await Deno.readTextFile(authority.certFile);
    const peer = { address: addressOf(weir.grpcAddress), tls: { ca } };
    await assertFair((overtaken) => callGrpc(peer, overtaken));
  },
});

Deno.test("fair reads: no connection is overtaken again and again by hundreds of busy ones", async (test) => {
  await using weir = await startWeir({ rules: { "fair.yaml": RULES } });
  await test.step("gRPC", async () => {
    await assertFair((overtaken) => callGrpc({ address: addressOf(weir.grpcAddress) }, overtaken));
  });
  await test.step("/json", async () => {
    await assertFair((overtaken) => callJson(weir.httpAddress, overtaken));
  });
});
