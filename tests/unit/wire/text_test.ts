import { assertEquals } from "#assert";
import { bytesOfText } from "../../../src/base/byte_text.ts";
import { decodeText } from "../../../src/wire/text.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { SOAK_SEED } from "../../soak/soak_options.ts";

const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const isHighHalf = (text: string) => /[\ud800-\udbff]/u.test(text);

function strictly(bytes: Uint8Array): string | undefined {
  try {
    return STRICT.decode(bytes);
  } catch {
    return undefined;
  }
}

/** Bytes on both sides of every boundary in the table of well-formed UTF-8. */
const EDGES = [
  ...[0x00, 0x61, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed],
  ...[0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff],
];

Deno.test("text of bytes: UTF-8 is decoded as ever, all else keeps its bytes, for every kind of three bytes", () => {
  for (const first of EDGES) {
    for (const second of EDGES) {
      for (const third of EDGES) {
        const bytes = Uint8Array.of(first, second, third);
        const text = decodeText(bytes);
        const expected = strictly(bytes);
        if (expected !== undefined) assertEquals(text, expected);
        else {assertEquals([text.isWellFormed(), isHighHalf(text), [...bytesOfText(text)]], [false, false, [
            ...bytes,
          ]]);}
      }
    }
  }
});

Deno.test("text of bytes: random bytes, with whole characters between them, come back", () => {
  const random = seededRandom(7 + SOAK_SEED);
  const characters = ["é", "€", "🦕", "\ufffd", "\ufeff", "a"].map((
    one,
  ) => [...new TextEncoder().encode(one)]);
  const edge = () => EDGES[Math.floor(random() * EDGES.length)] ?? 0;
  for (let round = 0; round < 3_000; round++) {
    const parts = Array.from({ length: Math.floor(random() * 30) }, () => {
      return random() < 0.5 ? characters[Math.floor(random() * characters.length)] : [edge()];
    });
    const bytes = Uint8Array.from(parts.flatMap((part) => part ?? []));
    assertEquals([...bytesOfText(decodeText(bytes))], [...bytes]);
    assertEquals(decodeText(bytes), strictly(bytes) ?? decodeText(bytes));
  }
});

Deno.test("text of bytes: a long one with invalid bytes everywhere is decoded whole", () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, index) => index % 3 === 0 ? 0xff : 0x61);
  const text = decodeText(bytes);
  assertEquals([text.length, text.slice(0, 4)], [100_000, "\udcffaa\udcff"]);
  assertEquals(bytesOfText(text), bytes);
});
