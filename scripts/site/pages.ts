import { dirname, join, normalize, relative } from "node:path";
import { documentPages, type Page, replaceLinks } from "../../tests/harness/documents.ts";
import { openApiPage } from "./openapi_page.ts";

/** The index, whose sections and links are the navigation of the site, in their order. */
const INDEX = "docs/README.md";
/** Documents outside of `docs`, by their pages in the site. */
const FURTHER: Readonly<Record<string, string>> = {
  "README.md": "overview.md",
  "CHANGELOG.md": "changelog.md",
  "CONTRIBUTING.md": "contributing.md",
  "SECURITY.md": "security-policy.md",
  "src/rest/README.md": "rest.md",
  "scripts/bench/README.md": "benchmarks.md",
};

/** The page that is in no document; it follows the commands. */
const OPENAPI: Item = { text: "HTTP API", link: "/openapi" };

/** A page in the navigation. */
interface Item {
  readonly text: string;
  readonly link: string;
}

/** A group of the navigation. */
interface Group {
  readonly text: string;
  readonly items: readonly Item[];
}

/** The sources of the site: pages in Markdown, and files that they link to. */
interface SitePages {
  /** Markdown by its path in the site. */
  readonly pages: ReadonlyMap<string, string>;
  /** Paths of files in the repository by their paths in the site. */
  readonly files: ReadonlyMap<string, string>;
  readonly sidebar: readonly Group[];
}

/** Makes the sources of the site from the documents of the repository. Throws if the index lacks a page of `docs`. */
export function sitePages(): SitePages {
  const documents = documentPages();
  const files = new Map<string, string>();
  const pages = new Map(documents.map((page) => [sitePath(page.path) ?? page.path, siteText(page, files)]));
  pages.set("openapi.md", openApiPage());
  const index = documents.find(({ path }) => path === INDEX);
  if (index === undefined) throw new Error(`Cannot read ${INDEX}: no such file`);
  const sidebar = sidebarOf(index);
  const linked = sidebar.flatMap(({ items }) => items.map(({ link }) => link));
  const missing = documents.map(({ path }) => path).filter((path) =>
    path.startsWith("docs/") && path !== INDEX && !linked.includes(linkTo(path))
  );
  if (missing.length > 0) {
    throw new Error(`Cannot build the site: ${INDEX} has no link to ${missing.join(", ")}`);
  }
  return { pages, files, sidebar };
}

/** The page of the site for a document; nothing for another file. */
function sitePath(path: string): string | undefined {
  if (path === INDEX) return "index.md";
  if (path.startsWith("docs/") && path.endsWith(".md")) return relative("docs", path);
  return FURTHER[path];
}

function linkTo(path: string): string {
  return `/${sitePath(path)?.replace(/(?:^index)?\.md$/, "") ?? ""}`;
}

/** The text of a document with links that lead to pages and files of the site, and the anchors of the document. */
function siteText(page: Page, files: Map<string, string>): string {
  const text = replaceLinks(page, (target) => {
    if (/^(?:[a-z][a-z\d+.-]*:|#)/i.test(target)) return target;
    const [file = "", anchor] = target.split("#");
    const path = normalize(join(dirname(page.path), file));
    const end = anchor === undefined ? "" : `#${anchor}`;
    if (sitePath(path) !== undefined) return `${linkTo(path)}${end}`;
    const isImage = /\.(?:svg|png|webp)$/.test(path);
    const copy = `files/${path}${isImage ? "" : ".txt"}`;
    files.set(copy, path);
    return `/${copy}`;
  });
  const lines = text.split("\n");
  const anchors = [...page.anchors];
  page.headings.forEach(({ line }, index) => lines[line - 1] += ` {#${anchors[index]}}`);
  return lines.join("\n");
}

/** The links of the index: those of each section are a group. */
function sidebarOf(index: Page): Group[] {
  const sections = index.headings.filter(({ level }) => level === 2);
  return sections.map(({ line, text }, position) => {
    const end = sections[position + 1]?.line ?? Infinity;
    const lines = index.text.split("\n").slice(line, end === Infinity ? undefined : end - 1).join("\n");
    const items = [...lines.matchAll(/^- \[([^\]]+)\]\(([^)#]+)\)/gm)].map(([, name = "", target = ""]) => ({
      text: name,
      link: linkTo(normalize(join(dirname(INDEX), target))),
    }));
    return { text, items: items.flatMap((item) => item.link === "/cli" ? [item, OPENAPI] : [item]) };
  });
}
