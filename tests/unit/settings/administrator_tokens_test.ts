import { assertEquals } from "#assert";
import {
  MAX_TOKENS,
  type NamedToken,
  namedTokensProblem,
  parseNamedToken,
} from "../../../src/settings/administrator_tokens.ts";
import { problemsOf } from "./settings_problems.ts";

const TOKEN = "d5f1c0c2b7a94e6f8d3b";

const READ: readonly (readonly [text: string, value: NamedToken])[] = [
  [`alice:admin:${TOKEN}`, { name: "alice", role: "admin", token: TOKEN }],
  [`ci:read:${TOKEN}`, { name: "ci", role: "read", token: TOKEN }],
  [`ann@example.com:read:a:b:c`, { name: "ann@example.com", role: "read", token: "a:b:c" }],
  [`admin:admin:${TOKEN}`, { name: "admin", role: "admin", token: TOKEN }],
];

for (const [text, value] of READ) {
  Deno.test(`named token: ${text}`, () => assertEquals(parseNamedToken(text), { value }));
}

const REFUSED = [
  ...["", TOKEN, `alice:${TOKEN}`, `alice:owner:${TOKEN}`, `alice:Admin:${TOKEN}`, `:admin:${TOKEN}`],
  ...["alice:admin:", "alice:admin:two words", "alice:admin:a,b", "alice:admin:change-me"],
  ...[`al ice:admin:${TOKEN}`, `trigger:x:admin:${TOKEN}`, `-a:admin:${TOKEN}`, `system:admin:${TOKEN}`],
  `${"a".repeat(65)}:admin:${TOKEN}`,
];

for (const text of REFUSED) {
  Deno.test(`named token: ${JSON.stringify(text)} is refused`, () => {
    assertEquals("expected" in parseNamedToken(text), true);
  });
}

const of = (name: string, token: string): NamedToken => ({ name, role: "read", token });

const TOGETHER: readonly (readonly [title: string, tokens: readonly NamedToken[], problem?: string])[] = [
  ["none", []],
  ["two", [of("a", "1"), of("b", "2")]],
  [
    "a name twice",
    [of("a", "1"), of("a", "2")],
    'two tokens have the name "a"; expected each name once',
  ],
  [
    "a token twice",
    [of("a", "1"), of("b", "1")],
    '"a" and "b" have the same token; expected each token once',
  ],
  ["the most", Array.from({ length: MAX_TOKENS }, (_, index) => of(`n${index}`, `t${index}`))],
  [
    "too many",
    Array.from({ length: MAX_TOKENS + 1 }, (_, index) => of(`n${index}`, `t${index}`)),
    "101 tokens; expected at most 100",
  ],
];

for (const [title, tokens, problem] of TOGETHER) {
  Deno.test(`named tokens: ${title}`, () => assertEquals(namedTokensProblem(tokens), problem));
}

Deno.test("ADMIN_TOKENS: a problem never shows a token", () => {
  for (const text of [`alice:owner:${TOKEN}`, `${TOKEN}`, `alice:admin:${TOKEN} x`]) {
    const [problem = "", ...more] = problemsOf({ BACKEND_TYPE: "memory", ADMIN_TOKENS: text });
    assertEquals([problem.includes(TOKEN), more], [false, []]);
    assertEquals(problem.startsWith("Invalid ADMIN_TOKENS (value not shown): expected "), true, problem);
  }
});
