import { assertEquals } from "#assert";
import { shownText, startOfText, surrogatesAsBytes } from "../../../src/base/byte_text.ts";

const SHOWN: readonly (readonly [name: string, text: string, shown: string])[] = [
  ["a plain text", "a\\é🦕", "a\\é🦕"],
  ["a byte", "caf\udce9", "caf\\xe9"],
  ["bytes around a pair", "\udc80🦕\udcff", "\\x80🦕\\xff"],
  ["a pair between halves", "\ud83e\ud83e\udd95\udd95", "\\xed\\xa0\\xbe🦕\\xed\\xb6\\x95"],
  ["half a pair at the end", "a\ud83e", "a\\xed\\xa0\\xbe"],
  ["half a pair that is no byte", "\ud800", "\\xed\\xa0\\x80"],
];

for (const [name, text, shown] of SHOWN) {
  Deno.test(`shown text: ${name}`, () => assertEquals(shownText(text), shown));
}

const STARTS: readonly (readonly [name: string, text: string, start: string])[] = [
  ["a short text is whole", "abc", "abc"],
  ["ASCII is cut at the byte", "abcdefghi", "abcdefgh"],
  ["a character is not cut", "abcdef€", "abcdef"],
  ["nor is a pair", "abcdefg🦕", "abcdefg"],
  ["a byte order mark stays", "\ufeffabcdefgh", "\ufeffabcde"],
];

for (const [name, text, start] of STARTS) {
  Deno.test(`start of a text: ${name}`, () => assertEquals(startOfText(text, 8), start));
}

Deno.test("halves of pairs are the bytes that they would be in UTF-8", () => {
  assertEquals(surrogatesAsBytes("a\udfff🦕"), "a\udced\udcbf\udcbf🦕");
});
