/** The prose of the pages is plain technical English: it has none of the words that the style replaces. */
import { assertEquals } from "#assert";
import { documentPages, lineAt, type Page, readPage } from "../../harness/documents.ts";
import { PRIVATE_WORDS } from "../../harness/tidy_rules.ts";

/** More words that a reader of documents has to decode; code has some of them as names. */
const MORE_WORDS = new RegExp(
  [
    "stands?",
    "stood",
    "tells",
    "told",
    "says",
    "said",
    "that there (?:is|are)",
    "(?:a|the|every|no) good (?:rule|file|key|token|secret|signature|mapping|request|value)s?",
    "(?:key|token|secret|certificate)s? (?:is|are|was|were) made",
    "(?<=^|[.:] )What (?:is|are|was|were|cannot|could|does|has)(?! \\w+\\?)",
    "measured again",
    "tried (?:out|before)",
    "TO" + "DO",
  ].map((words) => /^\W/.test(words) ? words : `\\b${words}\\b`).join("|").replaceAll(" ", "[ \\n]+"),
  "gim",
);
const DATE = /\b20\d\d-\d\d-\d\d\b/g;
/** Pages that may have dates: releases, and measurements. */
const DATED = ["CHANGELOG.md", "docs/performance.md"];
const MAX_README_LINES = 250;

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

/** Violations of the style in the prose of a page, each as a line to print. */
function wordProblems(page: Page): string[] {
  const dates = DATED.includes(page.path) ? [] : [DATE];
  const words = [PRIVATE_WORDS, MORE_WORDS, ...dates].flatMap((pattern) => [...page.prose.matchAll(pattern)]);
  const found = words.toSorted((a, b) => a.index - b.index)
    .map(({ 0: match, index }) =>
      `${page.path}:${lineAt(page.text, index)}: ${match.replaceAll(/\s+/g, " ")}`
    );
  return [...found, ...lengthProblems(page)];
}

function lengthProblems({ path, text }: Page): string[] {
  const lines = text.trimEnd().split("\n").length;
  return path === "README.md" && lines > MAX_README_LINES ? [`${path} has ${lines} lines`] : [];
}
