import { assertEquals } from "#assert";
import { bodyText, isJsonType } from "../../../src/base/body_text.ts";

/** Content types, and whether they are JSON. */
const TYPES: readonly (readonly [contentType: string, isJson: boolean])[] = [
  ["application/json", true],
  ["Text/JSON ; charset=utf-8;", true],
  ['application/ld+json; profile="a, \\" b"; charset=utf-8', true],
  ["application/json, application/json", false],
  ["application/json; charset=utf-8, application/json; charset=utf-16", false],
  ['application/json; a="b", text/plain', false],
  ["application/json;, text/plain", false],
  ['application/json; a="b', false],
];

Deno.test("body text: a content type is JSON if it is one type", () => {
  for (const [type, isJson] of TYPES) assertEquals([type, isJsonType(type)], [type, isJson]);
});

Deno.test("body text: a text is bounded by its bytes in UTF-8", () => {
  const sent = { contentEncoding: null, contentType: "application/json; charset=windows-1252", maxBytes: 9 };
  assertEquals(bodyText(new Uint8Array(3).fill(0x80), sent), "€€€");
  assertEquals(bodyText(new Uint8Array(4).fill(0x80), sent), {
    kind: "too_large",
    field: "body",
    reason: "larger than 9 bytes when decoded",
  });
});
