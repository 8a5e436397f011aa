import { assertEquals } from "#assert";
import { numbered, PreparedTexts } from "../../../../../src/webhooks/store/postgres/text.ts";

Deno.test("a statement's parameters are numbered, and nothing else", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["SELECT 1", "SELECT 1"],
    ["SELECT ?, ?+? FROM a WHERE b = ANY(?)", "SELECT $1, $2+$3 FROM a WHERE b = ANY($4)"],
    ["SELECT '?', 'it''s ?', ?", "SELECT '?', 'it''s ?', $1"],
    ['SELECT "a?", "b""?" FROM c WHERE ? = 1', 'SELECT "a?", "b""?" FROM c WHERE $1 = 1'],
    ["SELECT ? -- why?\n, ? /* what? */", "SELECT $1 -- why?\n, $2 /* what? */"],
  ];
  for (const [text, expected] of cases) assertEquals(numbered(text), expected);
});

Deno.test("the server keeps the plan of a statement only once it has run often", () => {
  const texts = new PreparedTexts();
  const runs = Array.from({ length: 34 }, () => texts.of("SELECT ?"));
  assertEquals(new Set(runs.slice(0, 32).map(({ name }) => name)), new Set([undefined]));
  assertEquals(runs.slice(32), Array(2).fill({ text: "SELECT $1", name: "weir_0" }));
  assertEquals(texts.of("SELECT 1"), { text: "SELECT 1", name: undefined });
});
