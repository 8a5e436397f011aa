/** `docs/dependencies.md` has a row for each package of `deno.json`, with its version, in the table of its use. */
import { assertEquals } from "#assert";
import { readPage, sectionOf } from "../../harness/documents.ts";

const ROOT = new URL("../../../", import.meta.url);
const PAGE = readPage("docs/dependencies.md", await Deno.readTextFile(new URL("docs/dependencies.md", ROOT)));
const { imports } = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT))) as {
  readonly imports: Readonly<Record<string, string>>;
};

Deno.test("every package of deno.json has a row in docs/dependencies.md, with its version", () => {
  const atRunTime = packagesOf(sourcesBelow(new URL("src/", ROOT)));
  const packages = Object.entries(imports).filter(([, target]) => target.startsWith("npm:"));
  const expected = packages.map(([name, target]) => {
    const [, version = ""] = /^npm:.+@([^/]+)/.exec(target) ?? [];
    return `${atRunTime.has(name) ? "Run time" : "Tests"}: ${name} ${version}`;
  });
  assertEquals([...rowsOf("Run time"), ...rowsOf("Tests")].sort(), expected.sort());
});

function rowsOf(title: string): string[] {
  const rows = sectionOf(PAGE, title).matchAll(/^\| `([^`]+)` *\| *(\S+) *\|/gm);
  return Array.from(rows, ([, name, version]) => `${title}: ${name} ${version}`);
}

function packagesOf(texts: readonly string[]): ReadonlySet<string> {
  // Examples in comments import packages too.
  const specifiers = texts.flatMap((text) =>
    Array.from(text.replaceAll(/^ *\*.*$/gm, "").matchAll(/(?:\bfrom |\bimport\()"([^"]+)"/g))
  );
  return new Set(specifiers.map(([, specifier = ""]) => specifier));
}

function sourcesBelow(folder: URL): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) => {
    if (isDirectory) return sourcesBelow(new URL(`${name}/`, folder));
    return name.endsWith(".ts") ? [Deno.readTextFileSync(new URL(name, folder))] : [];
  });
}
