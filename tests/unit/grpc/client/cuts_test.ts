import { assertEquals, assertMatch } from "#assert";
import {
  answerHeaders,
  answerTrailers,
  CALL_PATH,
  ClientBed,
  outcomeOf,
  serverGreeting,
  SETTINGS_ACK,
  wholeAnswer,
} from "../../../harness/client_bed.ts";
import { concatBytes, content, message } from "../../../harness/h2_peer.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";
import type { GrpcConnection } from "../../../../src/grpc/client/grpc_connection.ts";

const NO_BYTES = new Uint8Array(0);
const CLOSED = "UNAVAILABLE: the server closed the connection";

/** The messages of a stream, and how it ended. */
async function streamed(client: GrpcConnection): Promise<string> {
  const seen: string[] = [];
  const end = outcomeOf((async () => {
    const stream = client.stream(CALL_PATH);
    await stream.send(new TextEncoder().encode("hello"));
    for await (const bytes of stream) seen.push(new TextDecoder().decode(bytes));
    return undefined;
  })());
  return `${await end}|${seen.join("|")}`;
}

/** A recorded answer, by a call that was answered before, so that equal blocks are known. */
const RECORDED = {
  "unary call": {
    bytes: wholeAnswer(3, "hello"),
    begin: (client: GrpcConnection) => outcomeOf(client.unary(CALL_PATH, NO_BYTES)),
    whole: "hello",
    cut: /^UNAVAILABLE: the server closed the connection$/,
  },
  "stream": {
    bytes: concatBytes(
      answerHeaders(3),
      content(3, concatBytes(message("one"), message("two"))),
      content(3, message("three")),
      answerTrailers(3, { "grpc-message": "fine" }),
    ),
    begin: streamed,
    whole: "|one|two|three",
    cut: /^UNAVAILABLE: the server closed the connection\|(?:one\|two(?:\|three)?)?$/,
  },
} as const;

/** A client that has had one answer, and a call whose answer is recorded. */
async function begun(begin: (client: GrpcConnection) => Promise<string>) {
  const { bed, client } = await ClientBed.open();
  await bed.answered(client, wholeAnswer(1, "first"));
  const call = begin(client);
  await bed.frames();
  return { bed, client, call };
}

for (const [name, { bytes, begin, whole, cut }] of Object.entries(RECORDED)) {
  Deno.test(`${name}: an answer that is cut at any byte fails, and is never taken for a whole one`, async () => {
    for (let at = 0; at < bytes.length; at++) {
      const { bed, client, call } = await begun(begin);
      bed.send(bytes.subarray(0, at));
      bed.end();
      assertMatch(await call, cut, `cut at ${at}`);
      assertEquals(await outcomeOf(client.closed.then((error) => Promise.reject(error))), CLOSED);
      assertEquals([bed.socket.destroyed, bed.clock.waiting], [true, 0]);
    }
  });

  Deno.test(`${name}: an answer in two reads, whatever is in the first`, async () => {
    for (let at = 0; at <= bytes.length; at++) {
      const { bed, client, call } = await begun(begin);
      bed.send(bytes.subarray(0, at), bytes.subarray(at));
      assertEquals(await call, whole);
      await client.close();
    }
  });

  Deno.test(`${name}: an answer that arrives byte by byte`, async () => {
    const { bed, call } = await begun(begin);
    for (const byte of bytes) bed.send(Uint8Array.of(byte));
    assertEquals(await call, whole);
  });

  Deno.test(`${name}: answers with wrong bytes end the call in some way, and nothing else`, async () => {
    const random = seededRandom(1);
    for (let round = 0; round < 600; round++) {
      const { bed, client, call } = await begun(begin);
      const wrong = bytes.slice();
      for (let count = 0; count < 1 + random() * 3; count++) {
        wrong[Math.floor(random() * wrong.length)] = Math.floor(random() * 256);
      }
      bed.send(wrong);
      bed.end();
      // An error without a code would be one of the client itself.
      assertMatch(await call, /^(?!undefined)/, `round ${round}`);
      await client.closed;
      assertEquals([bed.socket.destroyed, bed.clock.waiting], [true, 0]);
    }
  });
}

Deno.test("greeting: one that is cut at any byte fails, and one byte by byte is taken", async () => {
  const bytes = concatBytes(serverGreeting([[3, 100], [4, 65_535]]), SETTINGS_ACK);
  const settingsEnd = serverGreeting([[3, 100], [4, 65_535]]).length;
  for (let at = 0; at < settingsEnd; at++) {
    const bed = new ClientBed();
    bed.send(bytes.subarray(0, at));
    bed.end();
    assertEquals(await outcomeOf(bed.opening.then(() => undefined)), CLOSED);
    assertEquals([bed.socket.destroyed, bed.clock.waiting], [true, 0]);
  }
  const bed = new ClientBed();
  for (const byte of bytes) bed.send(Uint8Array.of(byte));
  assertEquals((await bed.opening).isOpen, true);
});
