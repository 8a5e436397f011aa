import { assertEquals } from "#assert";
import { numbered } from "../../../../../src/webhooks/store/postgres/text.ts";

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
