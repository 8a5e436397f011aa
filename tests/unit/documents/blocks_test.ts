/** Every fenced block of the pages is run or read by a test, or meant only to be shown. */
import { assertEquals } from "#assert";
import { parseAllDocuments } from "yaml";
import { copyProblems, markValue, unmarkedBlocks } from "../../harness/document_marks.ts";
import { documentPages, type Page, readPage } from "../../harness/documents.ts";

const ROOT = new URL("../../../", import.meta.url);
/** A loop or a pause that waits, or a program in another language, at the start of a command. */
const WAIT = /^ *(?:.*[;&|(] *)?(?:until|while|sleep|python3? -c|node -e|perl -e|jq) /;
/** The commands of a block by its language. */
const COMMAND: Readonly<Record<string, RegExp>> = { sh: /^/, console: /^\$ / };
const textOf = (path: string) => Deno.readTextFileSync(new URL(path, ROOT));

/** The lines of commands with waits outside of comments, each as a line to print. */
function shownWaits({ path, text }: Page): string[] {
  const shown = readPage(path, text.replaceAll(/<!--.*?-->/gs, (hidden) => hidden.replaceAll(/[^\n]/g, " ")));
  return shown.blocks.flatMap(({ line: start, language, text }) =>
    text.split("\n").flatMap((line, index) => {
      const isCommand = COMMAND[language]?.test(line) === true;
      const isWait = isCommand && WAIT.test(line.replace(/^\$ /, ""));
      return isWait ? [`${path}:${start + index + 1}: ${line}`] : [];
    })
  );
}

for (const page of documentPages()) {
  Deno.test(`${page.path}: every block is marked for a test`, () => assertEquals(unmarkedBlocks(page), []));
  Deno.test(`${page.path}: readers see neither waiting loops nor programs on a command line`, () => {
    assertEquals(shownWaits(page), []);
  });
  Deno.test(`${page.path}: copies of files are the same as the files`, () => {
    assertEquals(copyProblems(page, textOf), []);
  });
  for (const block of page.blocks) {
    const { line, language, text } = block;
    if (language === "json") {
      Deno.test(`${page.path}:${line}: the JSON is valid`, () => void JSON.parse(text));
    }
    if (language === "yaml" && markValue(block, "example") !== undefined) {
      Deno.test(`${page.path}:${line}: the YAML is valid`, () => {
        assertEquals(parseAllDocuments(text).flatMap(({ errors }) => errors), []);
      });
    }
  }
}

Deno.test("a block that no test runs is found", () => {
  const blocks = [
    "yaml",
    "yaml rules",
    "console",
    "sh",
    "sh on=docker",
    "sh on=moon",
    "json",
    "text",
    "toml",
    "",
  ];
  const text = blocks.map((mark) => `\`\`\`${mark}\na\n\`\`\`\n`).join("");
  assertEquals(unmarkedBlocks(readPage("docs/a.md", text)), [
    "docs/a.md:1: yaml",
    "docs/a.md:7: console",
    "docs/a.md:16: sh on=moon",
    "docs/a.md:25: toml",
    "docs/a.md:28: ",
  ]);
});

Deno.test("a wait that readers see is found, and one in a comment is not", () => {
  const block = "```sh\nuntil true; do sleep 1; done\n```\n";
  const text = `<!--\n${block}-->\n\n${block}\n\`\`\`console try\n$ python3 -c 'print()'\n\`\`\`\n`;
  assertEquals(shownWaits(readPage("docs/a.md", text)), [
    "docs/a.md:8: until true; do sleep 1; done",
    "docs/a.md:12: $ python3 -c 'print()'",
  ]);
});

Deno.test("a copy that is not the same as its file is found", () => {
  const file = "a:\n  b: 1\n  c: 2\n\n  d: 3\n";
  const block = (mark: string, text: string) => `\`\`\`yaml ${mark}\n${text}\`\`\`\n`;
  const same = [block("file=f.yaml", file), block("part=f.yaml", "b: 1\nc: 2\n\nd: 3\n")];
  const other = [block("file=f.yaml", "a:\n"), block("part=f.yaml", "b: 1\nd: 3\n"), block("part=g", "b\n")];
  const read = (path: string) => {
    if (path === "f.yaml") return file;
    throw new Deno.errors.NotFound(path);
  };
  assertEquals(copyProblems(readPage("a.md", same.join("")), read), []);
  assertEquals(copyProblems(readPage("a.md", other.join("")), read), [
    "a.md:1: not the text of f.yaml",
    "a.md:4: not lines of f.yaml",
    "a.md:8: no file g",
  ]);
});
