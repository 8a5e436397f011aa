import { assertEquals, assertThrows } from "#assert";
import { HeadEncoder, requestHead, timeoutText } from "../../../../src/grpc/client/request_head.ts";
import { SETTING } from "../../../../src/grpc/native/frames.ts";
import { HpackDecoder } from "../../../../src/grpc/native/hpack_decoder.ts";
import { dynamicTableOf } from "../../../harness/dynamic_table.ts";
import { ClientBed } from "../../../harness/client_bed.ts";
import { settledTurns } from "../../../harness/until.ts";

const ONE = requestHead({ path: "/a.B/One", authority: "peer", scheme: "https" });
const TWO = requestHead({ path: "/a.B/Two", authority: "peer", scheme: "https" });
const LONG = requestHead({ path: `/a.B/${"x".repeat(2_000)}`, authority: "peer", scheme: "http" });

for (const tableBytes of [4_096, 10_000, 300, 100, 0]) {
  Deno.test(`request head: blocks that a peer with a table of ${tableBytes} bytes reads`, () => {
    const encoder = new HeadEncoder();
    encoder.limitTable(tableBytes);
    const decoder = new HpackDecoder(4_096);
    const lengths: number[] = [];
    for (const head of [ONE, ONE, TWO, LONG, ONE, TWO, LONG]) {
      for (const more of [[], [["authorization", "secret"]] as const]) {
        const block = encoder.encode(head, more);
        if (more.length === 0) lengths.push(block.length);
        assertEquals(decoder.decode(block), [...head.fields, ...more]);
      }
    }
    // Later blocks are short where the table has room.
    assertEquals(lengths[1] === ONE.fields.length, tableBytes >= 4_096);
    const { table, bytes } = dynamicTableOf(decoder);
    assertEquals([table.some(([name]) => name === "authorization"), bytes <= tableBytes], [false, true]);
  });
}

Deno.test("request head: a table that becomes smaller between two calls", () => {
  const encoder = new HeadEncoder();
  const decoder = new HpackDecoder(4_096);
  const seen: number[] = [];
  for (const limit of [4_096, 200, 200, 0, 4_096]) {
    encoder.limitTable(limit);
    assertEquals(decoder.decode(encoder.encode(ONE)), [...ONE.fields]);
    seen.push(dynamicTableOf(decoder).bytes);
  }
  assertEquals(seen.slice(1), [0, 0, 0, 0]);
});

Deno.test("request head: the block of a call without metadata is known from the second time on", () => {
  const encoder = new HeadEncoder();
  const known = () => encoder.known(ONE) !== undefined;
  const states = [known()];
  for (const head of [ONE, ONE, TWO, ONE]) {
    encoder.encode(head);
    states.push(known());
  }
  // A head that adds to the table moves the entries of others.
  assertEquals(states, [false, false, true, false, true]);
});

Deno.test("request head: timeouts have at most eight digits, and are never zero", () => {
  const texts = [-5, 0, 0.2, 1, 99_999_999, 100_000_000, 1e12, 1e15, Infinity].map(timeoutText);
  assertEquals(texts, [
    "1m",
    "1m",
    "1m",
    "1m",
    "99999999m",
    "100000S",
    "16666667M",
    "99999999H",
    "99999999H",
  ]);
});

Deno.test("request head: a path or authority that cannot be sent", () => {
  const messages = ([["/a b", "peer"], ["", "peer"], ["/a", "pe\nér"], ["/".repeat(2_049), "peer"]] as const)
    .map(([path, authority]) => assertThrows(() => requestHead({ path, authority, scheme: "http" })).message);
  assertEquals(messages.map((text) => text.replace(/\/{9,}/, "…")), [
    'Cannot call path "/a b": expected up to 2048 visible ASCII characters',
    'Cannot call path "": expected up to 2048 visible ASCII characters',
    'Cannot call authority "pe\\nér": expected up to 2048 visible ASCII characters',
    'Cannot call path "…": expected up to 2048 visible ASCII characters',
  ]);
});

Deno.test("request head: a server whose table is smaller gets an update before the first field", async () => {
  const { bed, client } = await ClientBed.open([[SETTING.HEADER_TABLE_SIZE, 0]]);
  bed.socket.written.length = 0;
  client.unary("/a.B/One", new Uint8Array(0)).catch(() => {});
  await settledTurns();
  // The first byte of the first block behind its frame header.
  assertEquals(bed.socket.written[0]?.[9], 0x20);
  await client.close();
});
