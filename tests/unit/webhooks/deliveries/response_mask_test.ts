import { assertEquals } from "#assert";
import { maskResponse } from "../../../../src/webhooks/deliveries/response_mask.ts";

/** As much as is kept of a response. */
const LENGTH = 16_384;
const CHARACTERS = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.KLMPQTUVWXYZdfjkmqrtuvwxz04567_-";
const TOKEN = Array.from({ length: 800 }, (_, index) => CHARACTERS[index * index % CHARACTERS.length]).join(
  "",
);

Deno.test("a response full of the first character of a long secret is kept, and the secret in it is masked", () => {
  const headers = { authorization: `Bearer ${TOKEN}` };
  const filler = "e".repeat(LENGTH);
  for (const isCut of [true, false]) {
    const masked = maskResponse({ text: `${filler} ${TOKEN} ${filler}`, isCut }, headers);
    assertEquals(masked, `${filler} *** ${isCut ? `${filler.slice(1)}***` : filler}`);
  }
});

Deno.test("a response that would take too many comparisons to search is masked whole", () => {
  const headers = { authorization: `Bearer ${"a".repeat(400)}b` };
  for (const isCut of [true, false]) {
    assertEquals(maskResponse({ text: "a".repeat(LENGTH), isCut }, headers), "***");
  }
});

Deno.test("a response is masked whole where its endpoint has more texts to hide than can be searched for", () => {
  const headersOf = (words: number) => ({
    cookie: Array.from({ length: words }, (_, index) => `${index}`.padStart(5, "y")).join(" "),
  });
  const masked = (words: number, length: number) =>
    maskResponse({ text: "z".repeat(length), isCut: false }, headersOf(words));
  assertEquals([masked(1_000, 4), masked(1_001, 4)], ["zzzz", "***"]);
  assertEquals([masked(150, LENGTH).length, masked(900, LENGTH).length], [LENGTH, 3]);
});

Deno.test("a response of usual text is kept, however many headers the endpoint has", () => {
  const headers = Object.fromEntries(
    Array.from({ length: 20 }, (_, index) => [`x-key-${index}`, `${TOKEN.slice(index, index + 40)}${index}`]),
  );
  const text = `{"error":"the order was not found","trace":"a1b2c3"}\n`.repeat(300);
  assertEquals(maskResponse({ text, isCut: false }, headers), text);
});

Deno.test("secrets that are in no header are masked in every form of their characters", () => {
  const secret = "pässword \u{1f600}/1";
  const bytes = new TextEncoder().encode(secret);
  const forms = [
    secret,
    JSON.stringify(secret),
    "p\\u00e4ssword \\uD83D\\uDE00\\/1",
    encodeURIComponent(secret),
    bytes.toBase64(),
    new TextEncoder().encode(`user:${secret}`).toBase64(),
  ];
  const masked = forms.map((form) => maskResponse({ text: `a ${form} b`, isCut: false }, {}, [secret]));
  assertEquals(masked.slice(0, 5), ["a *** b", 'a "***" b', "a *** b", "a *** b", "a *** b"]);
  assertEquals(masked[5]?.includes("***"), true);
  for (const cut of [7, 9, 20]) {
    const text = `a ${encodeURIComponent(secret).slice(0, cut)}`;
    assertEquals(maskResponse({ text, isCut: true }, {}, [secret]), "a ***");
  }
});
