import { join } from "node:path";
import { LICENSES, PAGE } from "./contents.ts";
import { type Content, filesIn } from "./embedded_files.ts";

/** Lines that say what every program has in it, in megabytes, from the folder of its sources. */
export async function partLines(source: string, content: Content): Promise<string[]> {
  const page = join(source, PAGE);
  const own = content.files.filter((file) => file.startsWith(source));
  const pageFiles = own.filter((file) => file.startsWith(page));
  const licenses = own.filter((file) => file === join(source, LICENSES));
  const others = new Set([...pageFiles, ...licenses]);
  const parts: readonly (readonly [name: string, files: readonly string[]])[] = [
    ["modules of Weir, which Deno adds as JavaScript too", own.filter((file) => !others.has(file))],
    [`${content.packages.size} npm packages`, await loadedFiles(content)],
    ["web page", pageFiles],
    ["licenses of the packages", licenses],
  ];
  return await Promise.all(parts.map(async ([name, files]) => {
    const sizes = await Promise.all(files.map(async (file) => (await Deno.stat(file)).size));
    return `  ${(sizes.reduce((sum, size) => sum + size, 0) / 1e6).toFixed(2)} MB ${name}`;
  }));
}

/** The files of the packages without those that are left out. */
async function loadedFiles({ packages, leftOut }: Content): Promise<string[]> {
  const loaded: string[] = [];
  for (const folder of packages.values()) {
    for await (const file of filesIn(folder)) {
      if (!leftOut.some((path) => file === path || file.startsWith(`${path}/`))) loaded.push(file);
    }
  }
  return loaded;
}
