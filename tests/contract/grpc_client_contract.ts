import { gzipSync } from "node:zlib";
import { assertEquals, assertMatch } from "#assert";
import { GrpcConnection } from "../../src/grpc/client/grpc_connection.ts";
import { outcomeOf } from "../harness/client_bed.ts";
import { probePath } from "../harness/probe.ts";
import type { Tool } from "../harness/tool_register.ts";
import { needs } from "../harness/tools.ts";

/** A running server with the methods of `Probe`; ended at the end of an `await using`. */
export interface ProbeServer extends AsyncDisposable {
  readonly port: number;
  /** The bytes that the server queues for a slow client before it resets the call; without a limit when absent. */
  readonly maxQueuedBytes?: number;
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (message: Uint8Array): string => new TextDecoder().decode(message);
/** Longer than any test may take. */
const TIMEOUT_MS = 60_000;
const [ECHO, SIZE, ZEROS] = [probePath("Echo"), probePath("Size"), probePath("Zeros")];
const [REFUSE, HOLD] = [probePath("Refuse"), probePath("Hold")];
const [CHAT, ZEROES] = [probePath("Chat"), probePath("Zeroes")];

interface Case {
  readonly name: string;
  run(client: GrpcConnection, maxAnswerBytes: number): Promise<void>;
}

const CASES: readonly Case[] = [
  {
    name: "messages of every size arrive whole, both ways",
    async run(client, maxAnswerBytes) {
      for (const length of [0, 1, 100, 16_379, 16_380, 65_531, 300_000, 4_194_304]) {
        const message = new Uint8Array(length).map((_, index) => index);
        assertEquals(text(await client.unary(SIZE, message, { timeoutMs: TIMEOUT_MS })), String(length));
        if (length > maxAnswerBytes) continue;
        const zeros = await client.unary(ZEROS, bytes(`${length}`), { timeoutMs: TIMEOUT_MS });
        assertEquals(zeros.length, length);
        if (length > 300_000) continue;
        const echo = await client.unary(ECHO, message, { timeoutMs: TIMEOUT_MS });
        assertEquals([echo.length, echo.every((byte, index) => byte === message[index])], [length, true]);
      }
    },
  },
  {
    name: "a thousand calls that run concurrently are each answered with their own answer",
    async run(client) {
      const texts = Array.from({ length: 1_000 }, (_, index) => `call ${index}`);
      const answers = await Promise.all(
        texts.map((call) => client.unary(ECHO, bytes(call), { timeoutMs: TIMEOUT_MS })),
      );
      assertEquals(answers.map(text), texts);
    },
  },
  {
    name: "a compressed message arrives as it was",
    async run(client) {
      const message = bytes("again and again ".repeat(1_000));
      const echo = await client.unary(ECHO, gzipSync(message), { timeoutMs: TIMEOUT_MS, encoding: "gzip" });
      assertEquals(text(echo), text(message));
    },
  },
  {
    name: "a refusal has its code and its text, whatever characters are in it",
    async run(client) {
      const refusal = "wrong: 50 % of ключ\nnext line";
      assertEquals(await outcomeOf(client.unary(REFUSE, bytes(refusal))), `INVALID_ARGUMENT: ${refusal}`);
    },
  },
  {
    name: "a method that does not exist",
    async run(client) {
      assertMatch(await outcomeOf(client.unary("/no.Such/Method", bytes("x"))), /^UNIMPLEMENTED: /);
    },
  },
  {
    name: "metadata and binary metadata are accepted",
    async run(client) {
      const metadata = [["authorization", "Bearer token"], ["x-bin", "AAECAw=="], ["x-bin", "BA"]] as const;
      assertEquals(text(await client.unary(ECHO, bytes("x"), { metadata })), "x");
    },
  },
  {
    name: "a call without an answer ends at its deadline, or with its signal",
    async run(client) {
      const stop = new AbortController();
      const late = outcomeOf(client.unary(HOLD, bytes("x"), { timeoutMs: 50 }));
      const cancelled = outcomeOf(client.unary(HOLD, bytes("x"), { signal: stop.signal }));
      assertMatch(await late, /^DEADLINE_EXCEEDED: /);
      stop.abort();
      assertEquals(await cancelled, "CANCELLED: the call was cancelled");
      assertEquals(text(await client.unary(ECHO, bytes("after"))), "after");
    },
  },
  {
    name: "an answer above the limit of the client",
    async run(client) {
      const call = client.unary(ZEROS, bytes("1001"), { maxMessageBytes: 1_000 });
      assertMatch(await outcomeOf(call), /^RESOURCE_EXHAUSTED: /);
      assertEquals((await client.unary(ZEROS, bytes("1000"), { maxMessageBytes: 1_000 })).length, 1_000);
    },
  },
  {
    name: "a stream: each message is answered in turn, and it ends after the client has",
    async run(client) {
      const stream = client.stream(CHAT, { timeoutMs: TIMEOUT_MS });
      const reader = stream[Symbol.asyncIterator]();
      for (let count = 0; count < 100; count++) {
        await stream.send(bytes(`message ${count}`));
        assertEquals(text((await reader.next()).value ?? bytes("none")), `MESSAGE ${count}`);
      }
      stream.closeSend();
      assertEquals([(await reader.next()).done, stream.status?.code], [true, "OK"]);
    },
  },
  {
    name: "a stream: many megabytes for a reader that begins late",
    async run(client, maxAnswerBytes) {
      const messages = Math.min(40, Math.floor(maxAnswerBytes / 100_000));
      const stream = client.stream(ZEROES, { timeoutMs: TIMEOUT_MS });
      for (let count = 0; count < messages; count++) await stream.send(bytes("100000"));
      stream.closeSend();
      // Another call is not held up.
      assertEquals(text(await client.unary(ECHO, bytes("meanwhile"))), "meanwhile");
      const sizes = [];
      for await (const message of stream) sizes.push(message.length);
      assertEquals(sizes, Array.from({ length: messages }, () => 100_000));
    },
  },
  {
    name: "a stream: leaving it ends it on the server, and other calls go on",
    async run(client) {
      for (let count = 0; count < 20; count++) {
        const stream = client.stream(CHAT);
        await stream.send(bytes("x"));
        for await (const message of stream) {
          assertEquals(text(message), "X");
          break;
        }
      }
      assertEquals(text(await client.unary(ECHO, bytes("after"))), "after");
    },
  },
];

/** Runs the client against a server with the methods of `Probe`. */
export function grpcClientContract(
  name: string,
  start: () => Promise<ProbeServer>,
  tools: readonly Tool[] = [],
): void {
  Deno.test({
    ...needs(tools, `gRPC client with ${name}`),
    async fn(t) {
      await using server = await start();
      const address = { host: "127.0.0.1", port: server.port };
      for (const { name, run } of CASES) {
        await t.step(name, async () => {
          await using client = await GrpcConnection.open({ address });
          await run(client, server.maxQueuedBytes ?? Infinity);
        });
      }
    },
  });

  Deno.test({
    ...needs(tools, `gRPC client with ${name}: a server that ends loses no answer, and ends the connection`),
    async fn() {
      const server = await start();
      const client = await GrpcConnection.open({ address: { host: "127.0.0.1", port: server.port } });
      const held = outcomeOf(client.unary(HOLD, bytes("x"), { timeoutMs: TIMEOUT_MS }));
      assertEquals(text(await client.unary(ECHO, bytes("x"))), "x");
      await server[Symbol.asyncDispose]();
      assertMatch(await held, /^(?:UNAVAILABLE|CANCELLED|INTERNAL): /);
      assertEquals((await client.closed)?.code, "UNAVAILABLE");
      assertMatch(await outcomeOf(client.unary(ECHO, bytes("x"))), /^UNAVAILABLE: /);
    },
  });
}
