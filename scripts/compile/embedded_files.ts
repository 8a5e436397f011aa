import { join, relative } from "node:path";
import { ENTRY, LICENSES, PAGE, UNUSED, WORKERS } from "./contents.ts";
import { CompileError, runDeno } from "./failure.ts";

/** Files that modules of a package import, require or read; no types, source maps and texts for people. */
const LOADABLE = /\.(?:[cm]?js|json|node|wasm)$/;

/** The output of `deno info --json`, as far as it is read. */
interface ModuleGraph {
  readonly roots: readonly string[];
  readonly modules: readonly {
    readonly specifier: string;
    readonly local?: string;
    readonly npmPackage?: string;
    readonly error?: string;
    readonly dependencies?: readonly { readonly code?: { readonly specifier?: string } }[];
  }[];
  readonly npmPackages: Readonly<
    Record<string, { readonly localPath: string; readonly dependencies: readonly string[] }>
  >;
}

/** The files of the program, by absolute paths. */
export interface Content {
  /**
   * The modules and texts that imports lead to from the entry and from the workers, the `package.json` of each npm package,
   * the licenses of these, and the web page.
   */
  readonly files: readonly string[];
  /** Files and folders of npm packages that Deno would embed, and that the program cannot load. */
  readonly leftOut: readonly string[];
  /** The folders of the npm packages, by the names that deno.lock has for them. */
  readonly packages: ReadonlyMap<string, string>;
}

/**
 * Lists the files that the program must have in it, and those that it must not have. Writes the text of the licenses into the
 * folder of the sources.
 */
export async function contentOf(source: string): Promise<Content> {
  const graphs = await Array.fromAsync(graphsOf(source));
  const licenses = join(source, LICENSES);
  const packages = foldersOf(graphs);
  await Deno.writeTextFile(licenses, await licensesOf(packages));
  const files = new Set([...graphs.flatMap(filesOfGraph), licenses]);
  for await (const file of filesIn(join(source, PAGE))) files.add(file);
  return { files: [...files].sort(), leftOut: await leftOutOf(graphs), packages };
}

/** The folders of the npm packages that the program has in it, by the names that deno.lock has for them. */
export async function packagesToEmbed(source: string): Promise<ReadonlyMap<string, string>> {
  return foldersOf(await Array.fromAsync(graphsOf(source)));
}

function foldersOf(graphs: readonly ModuleGraph[]): ReadonlyMap<string, string> {
  return new Map(
    graphs.flatMap((graph) =>
      [...packagesOf(graph)].map((id) => [id, graph.npmPackages[id]?.localPath ?? ""] as const)
    ),
  );
}

async function* graphsOf(source: string): AsyncGenerator<ModuleGraph> {
  for (const root of [ENTRY, ...WORKERS]) {
    const what = `read the module graph of "${root}"`;
    yield JSON.parse(await runDeno(what, ["info", "--json", root], { cwd: source }));
  }
}

function filesOfGraph(graph: ModuleGraph): string[] {
  const files = usedModules(graph).flatMap(({ specifier, local, npmPackage, error }) => {
    if (error !== undefined) throw new CompileError(`Cannot embed "${specifier}": ${error}`);
    return npmPackage === undefined && specifier.startsWith("file:") && local !== undefined ? [local] : [];
  });
  const packages = [...packagesOf(graph)].map((id) =>
    join(graph.npmPackages[id]?.localPath ?? "", "package.json")
  );
  return [...files, ...packages];
}

function packagesOf(graph: ModuleGraph): ReadonlySet<string> {
  const packages = new Set<string>();
  for (const { npmPackage } of usedModules(graph)) {
    if (npmPackage !== undefined) addPackage(npmPackage, graph.npmPackages, packages);
  }
  return packages;
}

/** The modules without those that others take nothing but types from, which are left out of the program. */
function usedModules({ roots, modules }: ModuleGraph): ModuleGraph["modules"] {
  const used = new Set([
    ...roots,
    ...modules.flatMap(({ dependencies = [] }) => dependencies.flatMap(usedOf)),
  ]);
  return modules.filter(({ specifier, npmPackage }) => npmPackage !== undefined || used.has(specifier));
}

function usedOf({ code }: { readonly code?: { readonly specifier?: string } }): string[] {
  return code?.specifier === undefined ? [] : [code.specifier];
}

function addPackage(id: string, all: ModuleGraph["npmPackages"], found: Set<string>): void {
  if (found.has(id)) return;
  found.add(id);
  for (const dependency of all[id]?.dependencies ?? []) addPackage(dependency, all, found);
}

/** The paths of all files in a folder and in those within it. */
export async function* filesIn(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) yield* filesIn(join(folder, name));
    else yield join(folder, name);
  }
}

/** Whole packages that only tests use, and what no module of the others loads. */
async function leftOutOf(graphs: readonly ModuleGraph[]): Promise<string[]> {
  const used = foldersOf(graphs);
  const packages = new Map(graphs.flatMap(({ npmPackages }) => Object.entries(npmPackages)));
  const leftOut = new Set<string>();
  for (const [id, { localPath }] of packages) {
    if (!used.has(id)) {
      leftOut.add(localPath);
      continue;
    }
    const unused = UNUSED[id.slice(0, id.indexOf("@", 1))];
    const isLoaded = (path: string) =>
      LOADABLE.test(path) && unused?.test(relative(localPath, path)) !== true;
    for (const path of (await sortOut(localPath, isLoaded)).leftOut) leftOut.add(path);
  }
  return [...leftOut].sort();
}

/** The files of a folder that are not loaded, with whole folders where there is nothing else. */
async function sortOut(
  folder: string,
  isLoaded: (path: string) => boolean,
): Promise<{ readonly isEmpty: boolean; readonly leftOut: string[] }> {
  const leftOut: string[] = [];
  let isEmpty = true;
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    const inner = isDirectory ? await sortOut(path, isLoaded) : { isEmpty: !isLoaded(path), leftOut: [] };
    if (inner.isEmpty) leftOut.push(path);
    else {
      isEmpty = false;
      leftOut.push(...inner.leftOut);
    }
  }
  return { isEmpty, leftOut };
}

const NAME = /^(?:licen[cs]e|notice|copying)/i;

/** The licenses of npm packages in one text: what their authors ask every copy to have in it. Takes their folders by name. */
async function licensesOf(packages: ReadonlyMap<string, string>): Promise<string> {
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
