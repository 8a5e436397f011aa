import { join } from "node:path";

const NAME = /^(?:licen[cs]e|notice|copying)/i;

/** The licenses of npm packages in one text: what their authors ask every copy to have in it. Takes their folders by name. */
export async function licensesOf(packages: ReadonlyMap<string, string>): Promise<string> {
  const texts: string[] = [];
  for (const [id, folder] of [...packages].sort()) {
    const names = (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).filter((name) =>
      NAME.test(name)
    );
    const { license } = JSON.parse(await Deno.readTextFile(join(folder, "package.json")));
    const found = await Promise.all(names.sort().map((name) => Deno.readTextFile(join(folder, name))));
    texts.push([`==== ${id}: ${license}`, ...found.map((text) => text.trim())].join("\n\n"));
  }
  return `${texts.join("\n\n")}\n`;
}
