import { join } from "node:path";

/** A page of the built site. */
interface BuiltPage {
  readonly ids: ReadonlySet<string>;
  readonly links: readonly string[];
  /** Scripts, styles and images. */
  readonly resources: readonly string[];
}

/** The result of a check of a built site. */
interface LinkReport {
  readonly pages: number;
  readonly links: number;
  /** Each as a line to print. */
  readonly problems: readonly string[];
}

const HOST = "http://site.invalid";

/** Follows every link of a built site: its page and its heading exist, and no page loads a resource of another host. */
export async function checkBuiltLinks(folder: string): Promise<LinkReport> {
  const paths = await filesBelow(folder);
  const pages = new Map<string, BuiltPage>();
  for (const path of paths.filter((path) => path.endsWith(".html"))) {
    pages.set(path, readBuilt(await Deno.readTextFile(join(folder, path))));
  }
  const known = new Set(paths);
  const problems: string[] = [];
  let links = 0;
  for (const [path, page] of pages) {
    for (const resource of page.resources) {
      const url = new URL(resource, `${HOST}/${path}`);
      if (url.protocol === "data:") continue;
      if (url.origin !== HOST) problems.push(`${path}: ${resource}: a resource of another host`);
      else if (!known.has(pathOf(url, known))) problems.push(`${path}: ${resource}: no such file`);
    }
    for (const link of page.links) {
      const url = new URL(link, `${HOST}/${path}`);
      if (url.origin !== HOST) continue;
      links++;
      const problem = problemOf(url, known, pages);
      if (problem !== undefined) problems.push(`${path}: ${link}: ${problem}`);
    }
  }
  return { pages: pages.size, links, problems };
}

function problemOf(url: URL, known: ReadonlySet<string>, pages: ReadonlyMap<string, BuiltPage>) {
  const path = pathOf(url, known);
  if (!known.has(path)) return "no such page";
  const anchor = decodeURIComponent(url.hash.slice(1));
  const isFound = anchor === "" || pages.get(path)?.ids.has(anchor) === true;
  return isFound ? undefined : "no such heading";
}

/** The file that a server of static files sends. */
function pathOf({ pathname }: URL, known: ReadonlySet<string>): string {
  const path = decodeURIComponent(pathname.slice(1));
  if (path === "" || path.endsWith("/")) return `${path}index.html`;
  return known.has(path) ? path : `${path}.html`;
}

function readBuilt(html: string): BuiltPage {
  const attributes = (pattern: RegExp) =>
    [...html.matchAll(pattern)].map(([, value = ""]) => unescaped(value));
  return {
    ids: new Set(attributes(/\sid="([^"]+)"/g)),
    links: attributes(/<a\s[^>]*?\bhref="([^"]+)"/g),
    resources: [
      ...attributes(/<(?:script|img)\s[^>]*?\bsrc="([^"]+)"/g),
      ...attributes(/<link\s[^>]*?\bhref="([^"]+)"/g),
    ],
  };
}

function unescaped(value: string): string {
  return value.replaceAll("&amp;", "&").replaceAll("&quot;", '"').replaceAll("&#39;", "'");
}

async function filesBelow(folder: string, prefix = ""): Promise<string[]> {
  const paths: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(join(folder, prefix))) {
    const path = join(prefix, name);
    if (isDirectory) paths.push(...await filesBelow(folder, path));
    else paths.push(path);
  }
  return paths.sort();
}
