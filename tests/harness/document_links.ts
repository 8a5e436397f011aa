import { dirname, join, normalize } from "node:path";
import type { Page } from "./documents.ts";

/** The links of the pages that lead nowhere, each as a line to print; `exists` knows the paths from the root. */
export function brokenLinks(pages: readonly Page[], exists: (path: string) => boolean): string[] {
  return pages.flatMap((page) =>
    page.links.flatMap(({ line, target }) => {
      const problem = problemOf(target, page, pages, exists);
      return problem === undefined ? [] : [`${page.path}:${line}: ${target}: ${problem}`];
    })
  );
}

/** The pages below `docs/` to which no chain of links leads from `README.md`. */
export function unreachablePages(pages: readonly Page[]): string[] {
  const reached = new Set(["README.md"]);
  for (const path of reached) {
    const page = pages.find((candidate) => candidate.path === path);
    for (const { target } of page?.links ?? []) {
      if (!isExternal(target)) reached.add(targetOf(target, path).path);
    }
  }
  return pages.map(({ path }) => path).filter((path) => path.startsWith("docs/") && !reached.has(path));
}

/** Returns whether a page has a link to another page. */
export function linksTo(page: Page, path: string): boolean {
  return page.links.some(({ target }) => !isExternal(target) && targetOf(target, page.path).path === path);
}

function problemOf(
  target: string,
  page: Page,
  pages: readonly Page[],
  exists: (path: string) => boolean,
): string | undefined {
  if (isExternal(target)) return undefined;
  const { path, anchor } = targetOf(target, page.path);
  if (path.startsWith("..") || path.startsWith("/")) return "outside of the repository";
  if (!exists(path)) return "no such file";
  if (anchor === undefined) return undefined;
  const other = pages.find((candidate) => candidate.path === path);
  if (other === undefined) return "an anchor in a file that is not a page";
  return other.anchors.has(anchor) ? undefined : "no such heading";
}

function isExternal(target: string): boolean {
  return /^[a-z][a-z\d+.-]*:/i.test(target);
}

function targetOf(target: string, from: string): { path: string; anchor: string | undefined } {
  const [file = "", anchor] = decodeURIComponent(target).split("#");
  return { path: file === "" ? from : normalize(join(dirname(from), file)).replace(/\/$/, ""), anchor };
}
