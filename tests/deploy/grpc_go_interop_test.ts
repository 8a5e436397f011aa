import { assertEquals, assertMatch } from "#assert";
import { type GrpcCallOptions, GrpcConnection } from "../../src/grpc/client/grpc_connection.ts";
import type { GrpcTls } from "../../src/grpc/client/dial.ts";
import type { GrpcError } from "../../src/grpc/grpc_service.ts";
import { makeCertificates } from "../harness/certificates.ts";
import { ChildProcess } from "../harness/child_process.ts";
import { outcomeOf } from "../harness/client_bed.ts";
import { freePort } from "../harness/free_port.ts";
import { concatBytes } from "../harness/h2_peer.ts";
import { needing, requireTool } from "../harness/tools.ts";
import { until } from "../harness/until.ts";

/** Cases of gRPC's interoperability tests, with the names that they have there, against the server of grpc-go. */
const path = (method: string): string => `/grpc.testing.TestService/${method}`;
const TIMEOUT_MS = 60_000;
const NO_BYTES = new Uint8Array(0);
const SPECIAL = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";

function varint(value: number): number[] {
  return value < 128 ? [value] : [value % 128 + 128, ...varint(Math.floor(value / 128))];
}

/** A field of a number, bytes or a text. */
function field(number: number, value: number | Uint8Array | string): Uint8Array {
  if (typeof value === "number") return Uint8Array.from([...varint(number * 8), ...varint(value)]);
  const bytes = typeof value === "string" ? new TextEncoder().encode(value) : value;
  return concatBytes(Uint8Array.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes);
}

const payload = (size: number): Uint8Array => field(3, field(2, new Uint8Array(size)));
const status = (code: number, text: string): Uint8Array =>
  field(7, concatBytes(field(1, code), field(2, text)));
/** Fields of the request of a stream: a message of this size is to be sent. */
const asked = (size: number): Uint8Array => field(2, field(1, size));

/** A running server, and a client that is connected to it. */
async function running(args: readonly string[] = [], tls?: GrpcTls) {
  const port = freePort();
  const child = new ChildProcess(requireTool("grpc-go-interop"), { args: [`--port=${port}`, ...args] });
  const client = await until("the server of grpc-go", () => {
    return GrpcConnection.open({ address: { host: "127.0.0.1", port }, tls });
  });
  return {
    client,
    call: (method: string, request: Uint8Array, options: GrpcCallOptions = {}) =>
      client.unary(path(method), request, { timeoutMs: TIMEOUT_MS, ...options }),
    async [Symbol.asyncDispose]() {
      await client.close();
      await child[Symbol.asyncDispose]();
    },
  };
}

const { test } = needing("grpc-go-interop");

test("grpc-go: empty_unary and large_unary", async () => {
  await using server = await running();
  assertEquals(await server.call("EmptyCall", NO_BYTES), NO_BYTES);
  const large = await server.call("UnaryCall", concatBytes(field(2, 314_159), payload(271_828)));
  assertEquals(large.length, 314_159 + 8);
});

test("grpc-go: ping_pong and server_streaming on a stream", async () => {
  await using server = await running();
  const stream = server.client.stream(path("FullDuplexCall"), { timeoutMs: TIMEOUT_MS });
  const reader = stream[Symbol.asyncIterator]();
  const sizes: number[] = [];
  for (const [asks, sends] of [[31_415, 27_182], [9, 8], [2_653, 1_828], [58_979, 45_904]] as const) {
    await stream.send(concatBytes(asked(asks), payload(sends)));
    sizes.push((await reader.next()).value?.length ?? -1);
  }
  stream.closeSend();
  assertEquals([sizes, (await reader.next()).done], [[31_423, 13, 2_659, 58_987], true]);
});

test("grpc-go: status_code_and_message, special_status_message and unimplemented", async () => {
  await using server = await running();
  const outcomes = [];
  for (const text of ["test status message", SPECIAL]) {
    outcomes.push(await outcomeOf(server.call("UnaryCall", status(2, text))));
  }
  assertEquals(outcomes, ["UNKNOWN: test status message", `UNKNOWN: ${SPECIAL}`]);
  assertMatch(await outcomeOf(server.call("UnimplementedCall", NO_BYTES)), /^UNIMPLEMENTED: /);
  const service = "/grpc.testing.UnimplementedService/UnimplementedCall";
  assertMatch(await outcomeOf(server.client.unary(service, NO_BYTES)), /^UNIMPLEMENTED: /);
  const stream = server.client.stream(path("FullDuplexCall"), { timeoutMs: TIMEOUT_MS });
  await stream.send(status(2, "of a stream"));
  const ended = outcomeOf((async () => {
    for await (const _ of stream);
    return undefined;
  })());
  assertEquals(await ended, "UNKNOWN: of a stream");
});

test("grpc-go: custom_metadata", async () => {
  await using server = await running();
  const metadata = [["x-grpc-test-echo-initial", "test_initial"], [
    "x-grpc-test-echo-trailing-bin",
    "q6ur",
  ]] as const;
  const refused = await server.call("UnaryCall", status(3, "no"), { metadata })
    .then(() => undefined, (error: GrpcError) => error);
  assertEquals([refused?.code, refused?.metadata.get("x-grpc-test-echo-trailing-bin")], [
    "INVALID_ARGUMENT",
    "q6ur",
  ]);
});

test("grpc-go: timeout_on_sleeping_server, cancel_after_begin and cancel_after_first_response", async () => {
  await using server = await running();
  const open = (options: GrpcCallOptions) => server.client.stream(path("FullDuplexCall"), options);
  const late = open({ timeoutMs: 1 });
  assertEquals(
    await outcomeOf((async () => (await late[Symbol.asyncIterator]().next()).value ?? undefined)()),
    "DEADLINE_EXCEEDED: no answer before the deadline",
  );
  open({}).cancel();
  const stream = open({});
  await stream.send(asked(10));
  for await (const message of stream) {
    assertEquals(message.length, 14);
    break;
  }
  assertEquals([stream.status?.code, await server.call("EmptyCall", NO_BYTES)], ["CANCELLED", NO_BYTES]);
});

test("grpc-go: two thousand calls that run concurrently, and TLS", async () => {
  await using certificates = await makeCertificates();
  const { certFile, keyFile } = certificates.server;
  const ca = await Deno.readTextFile(certificates.authority.certFile);
  const args = ["--use_tls", `--tls_cert_file=${certFile}`, `--tls_key_file=${keyFile}`];
  await using server = await running(args, { ca });
  const sizes = Array.from({ length: 2_000 }, (_, index) => 1 + index % 100);
  const answers = await Promise.all(sizes.map((size) => server.call("UnaryCall", field(2, size))));
  assertEquals(answers.map(({ length }) => length), sizes.map((size) => size + 4));
});
