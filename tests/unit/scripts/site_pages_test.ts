import { assert, assertEquals } from "#assert";
import { sitePages } from "../../../scripts/site/pages.ts";

Deno.test("documentation site: the index leads to every page, and links lead to pages and files of the site", () => {
  const { pages, files, sidebar } = sitePages();
  const linked = sidebar.flatMap(({ items }) => items.map(({ link }) => `${link.slice(1)}.md`));
  assertEquals([...pages.keys()].filter((path) => path !== "index.md" && !linked.includes(path)), []);
  assertEquals(files.get("files/config/deploy/Dockerfile.txt"), "config/deploy/Dockerfile");
  const index = pages.get("index.md") ?? "";
  assert(index.includes("- [Install](/install):"), index);
  assert(index.includes("## Start {#start}"), index);
});
