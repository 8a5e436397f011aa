/** The prose of the pages is plain technical English: it has none of the words that the style replaces. */
import { assertEquals } from "@std/assert";
import { wordProblems } from "../../harness/document_words.ts";
import { documentPages, readPage } from "../../harness/documents.ts";

for (const page of documentPages()) {
  Deno.test(`${page.path}: the words are those of the field`, () => assertEquals(wordProblems(page), []));
}

Deno.test("a word that the style replaces is found, except in code", () => {
  const text = `# What is told

The log says so at
once, and whoever wants \`octets\` gets bytes. What is left is a good file of 2026-01-31.

\`\`\`text
nobody is told, 2026-01-31
\`\`\`

[Nobody](2026-01-31.md) stands in. <!-- TO${"DO"} -->
`;
  assertEquals(wordProblems(readPage("docs/a.md", text)), [
    "docs/a.md:1: is told",
    "docs/a.md:1: told",
    "docs/a.md:3: says",
    "docs/a.md:3: at once",
    "docs/a.md:4: whoever",
    "docs/a.md:4: wants",
    "docs/a.md:4: What is",
    "docs/a.md:4: a good file",
    "docs/a.md:4: 2026-01-31",
    "docs/a.md:10: Nobody",
    "docs/a.md:10: stands in",
    "docs/a.md:10: stands",
  ]);
});
