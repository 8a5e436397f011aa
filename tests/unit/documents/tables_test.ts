/** Names of reference tables are found in the pages that mention them. */
import { assertEquals } from "#assert";
import { mentionProblems, rowProblems, strayRows } from "../../harness/document_tables.ts";
import { documentPages, readPage } from "../../harness/documents.ts";

const table = (...names: string[]) =>
  `| Name | Meaning |\n| --- | :-: |\n${names.map((name) => `| \`${name}\` | a \\| b |\n`).join("")}`;

Deno.test("no page has a row without a table", () => {
  assertEquals(documentPages().flatMap(strayRows), []);
});

Deno.test("a row below an empty line is found", () => {
  const page = readPage("docs/a.md", `${table("B")}\n| \`C\` | none |\n\n${table("D")}`);
  assertEquals(strayRows(page), ["docs/a.md:5: a row without a table: | `C` | none |"]);
});

Deno.test("a name without a row, with several rows, or with a row elsewhere is found", () => {
  const pages = [
    readPage("docs/settings.md", table("PORT", "HOST", "TWICE", "OTHER")),
    readPage("docs/cache.md", `${table("TWICE", "KV_URL")}\n\`\`\`text\n${table("PORT")}\`\`\`\n`),
  ];
  const names = ["PORT", "HOST", "TWICE", "KV_URL", "MISSING"];
  assertEquals(rowProblems(pages, { kind: "setting", names, pages: ["docs/settings.md"] }), [
    "setting TWICE has several rows: docs/settings.md:5, docs/cache.md:3",
    "setting KV_URL has its row in docs/cache.md:4",
    "setting MISSING has no row",
  ]);
});

Deno.test("a page that mentions a name without a link to its reference is found", () => {
  const reference = {
    kind: "setting",
    names: ["PORT"],
    pages: ["docs/settings.md"],
    nameOf: (code: string) => code.replace(/=.*/, ""),
  };
  const pages = [
    readPage("docs/settings.md", "`PORT`"),
    readPage("docs/a.md", "Set `PORT`, one of the [settings](settings.md#port)."),
    readPage("docs/b.md", "Set `PORT=1`. [Settings](other.md)"),
    readPage("docs/c.md", "A PORT.\n\n```text\n`PORT`\n```\n"),
  ];
  assertEquals(mentionProblems(pages, reference), [
    "docs/b.md mentions the setting PORT without a link to docs/settings.md",
  ]);
});
