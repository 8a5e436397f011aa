import { assertEquals } from "#assert";
import { dirname, join } from "node:path";
import { checkBuiltLinks } from "../../../scripts/site/built_links.ts";

const PAGE = '<h1 id="top">A page</h1><a href="/webhooks/other.html#part">other</a>';
const OTHER = '<h2 id="part">A part</h2><a href="../">start</a><a href="#part">here</a>';
const FILES = { "index.html": PAGE, "webhooks/other.html": OTHER, "assets/app.js": "" };

const CASES: readonly (readonly [name: string, html: string, problems: string[]])[] = [
  [
    "good links",
    '<a class="x" href="/webhooks/other?a=1&amp;b=2#part"></a><a href="https://example.com/x">',
    [],
  ],
  ["good resources", '<script src="/assets/app.js"></script><link rel="icon" href="data:,">', []],
  ["a page that is missing", '<a href="/gone">', ["page.html: /gone: no such page"]],
  ["a heading that is missing", '<a href="/#gone">', ["page.html: /#gone: no such heading"]],
  ["a file that is missing", '<img alt="" src="gone.png">', ["page.html: gone.png: no such file"]],
  ["a resource of another host", '<link href="//cdn.example/a.css">', [
    "page.html: //cdn.example/a.css: a resource of another host",
  ]],
];

for (const [name, html, problems] of CASES) {
  Deno.test(`links of a built site: ${name}`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "weir_" });
    try {
      for (const [path, text] of Object.entries({ ...FILES, "page.html": html })) {
        await Deno.mkdir(dirname(join(folder, path)), { recursive: true });
        await Deno.writeTextFile(join(folder, path), text);
      }
      const report = await checkBuiltLinks(folder);
      assertEquals([report.pages, report.problems], [3, problems]);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
