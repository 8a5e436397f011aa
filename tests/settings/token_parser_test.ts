import { assertEquals } from "@std/assert";
import { parseBearerToken } from "../../src/settings/token_parser.ts";

const WANTED = { wanted: "visible ASCII characters without a space" };

const CASES: readonly (readonly [text: string, parsed: ReturnType<typeof parseBearerToken>])[] = [
  ["s3cret", { value: "s3cret" }],
  ["a/b+c~d==", { value: "a/b+c~d==" }],
  ["", WANTED],
  ["two words", WANTED],
  [" s3cret", WANTED],
  ["s3cret\n", WANTED],
  ["sécret", WANTED],
];

for (const [text, parsed] of CASES) {
  Deno.test(`bearer token ${JSON.stringify(text)}`, () => assertEquals(parseBearerToken(text), parsed));
}
