import { parseBearerToken } from "../../../src/settings/parsers.ts";
import { assertEquals } from "@std/assert";

const RANDOM = {
  expected: 'a random token, such as "openssl rand -hex 32" prints, instead of a placeholder',
};
const WANTED = { expected: "visible ASCII characters without a space" };

const CASES: readonly (readonly [text: string, parsed: ReturnType<typeof parseBearerToken>])[] = [
  ["s3cret", { value: "s3cret" }],
  ["a/b+c~d==", { value: "a/b+c~d==" }],
  ["", WANTED],
  ["two words", WANTED],
  [" s3cret", WANTED],
  ["s3cret\n", WANTED],
  ["sécret", WANTED],
  ["changed-every-day", { value: "changed-every-day" }],
  ["the-secret", { value: "the-secret" }],
  ...["change-me", "CHANGE_ME", "changeme", "change-me-too", "replace-this", "your-token-here", "my-token"]
    .map((text) => [text, RANDOM] as const),
  ...["secret", "Password", "example", "<token>", "${ADMIN_TOKEN}", "xxxxxxxx", "***", "0123456789abcdef"]
    .map((text) => [text, RANDOM] as const),
];

for (const [text, parsed] of CASES) {
  Deno.test(`bearer token ${JSON.stringify(text)}`, () => assertEquals(parseBearerToken(text), parsed));
}
