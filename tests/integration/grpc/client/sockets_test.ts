import { assertEquals, assertMatch } from "#assert";
import { systemClock } from "../../../../src/base/clock.ts";
import { GrpcConnection } from "../../../../src/grpc/client/grpc_connection.ts";
import { startNative } from "../../../../src/grpc/native/native_engine.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import {
  answerHeaders,
  answerTrailers,
  CALL_PATH,
  outcomeOf,
  PING,
  serverGreeting,
  SETTINGS_ACK,
} from "../../../harness/client_bed.ts";
import { heapMegabytes } from "../../../harness/garbage.ts";
import {
  concatBytes,
  content,
  message,
  PEER_SETTING,
  repeated,
  windowUpdate,
} from "../../../harness/h2_peer.ts";
import { Probe, probePath } from "../../../harness/probe.ts";
import { eventually } from "../../../harness/until.ts";

const NO_BYTES = new Uint8Array(0);
const GREETING = concatBytes(serverGreeting([[PEER_SETTING.INITIAL_WINDOW_SIZE, 2 ** 31 - 1]]), SETTINGS_ACK);

/** A server on a real socket that has accepted one client, sent its greeting, and read nothing. */
async function accepted() {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const opening = GrpcConnection.open({ address: { host: "127.0.0.1", port: listener.addr.port } });
  const connection = await listener.accept();
  listener.close();
  await connection.write(GREETING);
  const client = await opening;
  return {
    client,
    connection,
    /** Reads what the client has sent at least up to the request of its first call. */
    async readRequest() {
      const buffer = new Uint8Array(65_536);
      for (let count = 0; count < 200;) count += await connection.read(buffer) ?? Infinity;
    },
    async [Symbol.asyncDispose]() {
      await client.close();
      try {
        connection.close();
      } catch {
        // The test closed it.
      }
    },
  };
}

Deno.test("a server that closes its direction only: calls end, and the client closes", async () => {
  await using server = await accepted();
  const call = outcomeOf(server.client.unary(CALL_PATH, NO_BYTES));
  await server.readRequest();
  await server.connection.write(answerHeaders(1));
  await server.connection.closeWrite();
  assertEquals(await call, "UNAVAILABLE: the server closed the connection");
  assertEquals((await server.client.closed)?.code, "UNAVAILABLE");
});

Deno.test("a server that closes with unread bytes, which resets the connection", async () => {
  await using server = await accepted();
  const calls = Array.from(
    { length: 20 },
    () => outcomeOf(server.client.unary(CALL_PATH, new Uint8Array(1_000))),
  );
  await server.connection.write(answerHeaders(1));
  server.connection.close();
  for (const outcome of await Promise.all(calls)) assertMatch(outcome, /^UNAVAILABLE: /);
  assertEquals((await server.client.closed)?.code, "UNAVAILABLE");
});

Deno.test("a server that grants every window and reads nothing: memory does not grow with what is sent", async () => {
  await using server = await accepted();
  await server.connection.write(windowUpdate(0, 2 ** 31 - 1 - 65_535));
  const stream = server.client.stream(CALL_PATH);
  const before = heapMegabytes();
  let sent = 0;
  const sending = outcomeOf((async () => {
    // 400 megabytes.
    for (; sent < 4_000; sent++) await stream.send(new Uint8Array(100_000));
    return undefined;
  })());
  // It stops for good once the kernel and the client have taken what they may.
  let last = -1;
  await eventually(true, () => {
    const [isSame, now] = [sent === last && sent > 0, sent];
    last = now;
    return isSame;
  }, { intervalMs: 100 });
  assertEquals([sent < 400, heapMegabytes() - before < 40], [true, true]);
  server.connection.close();
  assertMatch(await sending, /^UNAVAILABLE: /);
});

Deno.test("a server that floods for as long as it can: the client ends the connection", async () => {
  for (const flood of [PING, concatBytes(answerHeaders(1), answerTrailers(1)), content(1, NO_BYTES)]) {
    await using server = await accepted();
    const call = outcomeOf(server.client.unary(CALL_PATH, NO_BYTES));
    await server.readRequest();
    await server.connection.write(answerHeaders(1));
    const bytes = repeated(5_000, flood);
    const flooding = (async () => {
      try {
        for (;;) await server.connection.write(bytes);
      } catch (error) {
        return error instanceof Error ? error.name : "";
      }
    })();
    assertMatch(await call, /^(?:UNAVAILABLE|INTERNAL|UNIMPLEMENTED): /);
    assertMatch(await flooding, /^(?:BrokenPipe|ConnectionReset)$/);
    assertEquals((await server.client.closed)?.code, "UNAVAILABLE");
  }
});

Deno.test("a server that answers a stream in single bytes", async () => {
  await using server = await accepted();
  const stream = server.client.stream(CALL_PATH);
  await stream.send(NO_BYTES);
  stream.closeSend();
  await server.readRequest();
  const answer = concatBytes(
    answerHeaders(1),
    content(1, message("one")),
    content(1, message("two")),
    answerTrailers(1),
  );
  for (const byte of answer) await server.connection.write(Uint8Array.of(byte));
  const messages: string[] = [];
  for await (const received of stream) messages.push(new TextDecoder().decode(received));
  assertEquals(messages, ["one", "two"]);
});

Deno.test("a server that drains under load: each call is answered, or was not begun by the server", async () => {
  const probe = new Probe();
  const engine = await startNative({
    services: [probe.service],
    target: { kind: "tcp", host: "127.0.0.1", port: 0 },
    maxConnectionAgeMs: 0,
    maxConnectionAgeGraceMs: 0,
    logger: createLogger({ level: "error", format: "text", clock: systemClock, write: () => {} }),
    clock: systemClock,
    random: () => 0.5,
  });
  const port = Number(engine.address.split(":").at(-1));
  const client = await GrpcConnection.open({ address: { host: "127.0.0.1", port } });
  const outcomes = new Map<string, number>();
  const caller = async () => {
    for (let count = 0; count < 100_000 && client.isOpen; count++) {
      const outcome = await outcomeOf(client.unary(probePath("Echo"), new TextEncoder().encode("x")));
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  };
  const callers = Promise.all(Array.from({ length: 50 }, caller));
  await eventually(true, () => probe.calls > 1_000);
  await engine.close(10_000);
  await callers;
  const { x = 0, ...others } = Object.fromEntries(outcomes);
  assertEquals(x, probe.calls);
  const known = /^UNAVAILABLE: the server closed the connection with NO_ERROR/;
  assertEquals(Object.keys(others).filter((outcome) => !known.test(outcome)), []);
  assertEquals((await client.closed)?.code, "UNAVAILABLE");
});
