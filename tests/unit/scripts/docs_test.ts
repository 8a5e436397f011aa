import { assertEquals } from "#assert";
import { PAGES } from "../../../scripts/docs.ts";
import {
  generatePages,
  pagePart,
  replacePart,
  table,
  wholePage,
} from "../../../scripts/docs/generated_page.ts";

const ROOT = new URL("../../../", import.meta.url);
const PARTS = "# A\n\n<!-- generated: one -->\nold\n<!-- /generated -->\n\n" +
  "<!-- generated: two -->\n<!-- /generated -->\nend\n";

Deno.test("every generated page is fresh", async () => {
  const stale = await generatePages(PAGES, { root: ROOT, isCheck: true });
  assertEquals(stale, [], "write it with: deno run -A scripts/docs.ts");
});

Deno.test("a check names each stale or missing page once and writes none of them", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_docs_" });
  try {
    const root = new URL(`file://${folder}/`);
    const text = async (path: string) => await Deno.readTextFile(new URL(path, root));
    await generatePages([wholePage("fresh.md", () => "# F")], { root, isCheck: false });
    await Deno.writeTextFile(new URL("parts.md", root), PARTS);
    const pages = [
      pagePart("parts.md", "one", () => "1"),
      pagePart("parts.md", "two", () => "2"),
      wholePage("fresh.md", () => "# F"),
      wholePage("missing.md", () => "# M"),
    ];
    assertEquals(await generatePages(pages, { root, isCheck: true }), ["parts.md", "missing.md"]);
    assertEquals(await text("parts.md"), PARTS);
    assertEquals(await generatePages(pages, { root, isCheck: false }), ["parts.md", "missing.md"]);
    assertEquals(await text("parts.md"), replacePart(replacePart(PARTS, "one", "1"), "two", "2"));
    assertEquals(await generatePages(pages, { root, isCheck: true }), []);
    await Deno.writeTextFile(new URL("fresh.md", root), `${await text("fresh.md")}An edit.\n`);
    assertEquals(await generatePages(pages, { root, isCheck: true }), ["fresh.md"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a part is replaced between its markers, and the rest of the page stays", () => {
  const page = replacePart(PARTS, "one", "new\n");
  const part = "<!-- generated: one -->\n\n<!-- deno-fmt-ignore-start -->\n\nnew\n\n" +
    "<!-- deno-fmt-ignore-end -->\n\n<!-- /generated -->";
  assertEquals(page, PARTS.replace("<!-- generated: one -->\nold\n<!-- /generated -->", part));
  assertEquals(replacePart(page, "one", "new"), page);
});

Deno.test("a table escapes the bars in its cells", () => {
  assertEquals(table(["A", "B"], [["a|b", "c"]]), "| A | B |\n| --- | --- |\n| a\\|b | c |");
});
