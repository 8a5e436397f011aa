/** Every link of the pages leads somewhere. */
import { assertEquals } from "#assert";
import { existsSync } from "node:fs";
import { brokenLinks, unreachablePages } from "../../harness/document_links.ts";
import { documentPages, readPage } from "../../harness/documents.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;
const PAGES = documentPages();

for (const page of PAGES) {
  Deno.test(`${page.path}: every link leads to a file or a heading`, () => {
    const others = PAGES.filter(({ path }) => path !== page.path).map((other) => ({ ...other, links: [] }));
    assertEquals(brokenLinks([page, ...others], (path) => existsSync(ROOT + path)), []);
  });
}

Deno.test("links lead from README.md to every page of docs", () => {
  assertEquals(unreachablePages(PAGES), []);
});

Deno.test("CONTRIBUTING.md: every file that it names exists, from the root or in src", () => {
  const text = Deno.readTextFileSync(`${ROOT}CONTRIBUTING.md`);
  const paths = [...text.matchAll(/`([a-z_0-9/]+\/[a-z_0-9]+\.ts)`/g)].map(([, path = ""]) => path);
  const missing = paths.filter((path) => !["", "src/"].some((folder) => existsSync(ROOT + folder + path)));
  assertEquals([missing, paths.length > 0], [[], true]);
});

const SAMPLE = [
  readPage(
    "README.md",
    "[a](docs/a.md#one)\n\n[b][b]\n\n[b]: docs/b.md\n[c](docs/c/d.md) [w](https://a.b/c#d)\n",
  ),
  readPage(
    "docs/a.md",
    "# One\n\n## `TWO` and [three](b.md)!\n## Same\n## Same\n\n[x](#same-1) [y](../README.md) [z](#two-and-three)\n",
  ),
  readPage("docs/b.md", "`[no link](nowhere.md)`\n\n```text\n[no](link.md)\n```\n"),
  readPage("docs/c/d.md", "[a](../a.md#two) [b](../../../x)\n[c](b.md) ![d](../../src/e.ts#L1) [f](#g)\n"),
  readPage("docs/lost.md", "[a](a.md)"),
];
const FILES = [...SAMPLE.map(({ path }) => path), "src/e.ts"];

Deno.test("a broken link is found", () => {
  assertEquals(brokenLinks(SAMPLE, (path) => FILES.includes(path)), [
    "docs/c/d.md:1: ../a.md#two: no such heading",
    "docs/c/d.md:1: ../../../x: outside of the repository",
    "docs/c/d.md:2: b.md: no such file",
    "docs/c/d.md:2: ../../src/e.ts#L1: an anchor in a file that is not a page",
    "docs/c/d.md:2: #g: no such heading",
  ]);
});

Deno.test("a page without a way to it is found", () => {
  assertEquals(unreachablePages(SAMPLE), ["docs/lost.md"]);
});
