import { assertEquals } from "#assert";
import { plainText, shortened } from "../../../src/cli/plain_text.ts";

const PLAIN: readonly (readonly [text: string, shown: string])[] = [
  ["grüß dich 🙂", "grüß dich 🙂"],
  ["a\tb\r\nc", "a\\tb\\r\\nc"],
  ["\u001b[2J\u0007\u0000", "\\u001b[2J\\u0007\\u0000"],
  ["\u009b31m\u007f", "\\u009b31m\\u007f"],
  ["user\u202egnp.exe\u2066", "user\\u202egnp.exe\\u2066"],
  ["a\u2028b\u2029", "a\\u2028b\\u2029"],
];

for (const [text, shown] of PLAIN) {
  Deno.test(`a terminal is not steered by ${JSON.stringify(text)}`, () =>
    assertEquals(plainText(text), shown));
}

const SHORT: readonly (readonly [text: string, most: number, shown: string])[] = [
  ["abc", 3, "abc"],
  ["abcd", 3, "ab…"],
  ["🙂🙂🙂", 3, "🙂🙂🙂"],
  ["🙂🙂🙂🙂", 3, "🙂🙂…"],
];

for (const [text, most, shown] of SHORT) {
  Deno.test(`${text} in at most ${most} characters`, () => assertEquals(shortened(text, most), shown));
}
