import { Buffer } from "node:buffer";
import { join } from "node:path";
import { ENTRY, FOLDERS, WORKERS } from "./contents.ts";
import { CompileError, runDeno } from "./failure.ts";

/** What `deno info --json` says of a module and of what it leads to. */
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

/**
 * Every file that the program has to have in it: the modules and texts that imports lead to from its entry and from its
 * workers, what makes each npm package known, and the embedded folders.
 */
export async function filesToEmbed(source: string): Promise<string[]> {
  const files = new Set<string>();
  for await (const graph of graphsOf(source)) for (const file of filesOfGraph(graph)) files.add(file);
  for (const folder of FOLDERS) for await (const file of filesIn(join(source, folder))) files.add(file);
  return [...files].sort();
}

/** The folders of the npm packages that the program has in it, by the names that deno.lock has for them. */
export async function packagesToEmbed(source: string): Promise<ReadonlyMap<string, string>> {
  const folders = new Map<string, string>();
  for await (const graph of graphsOf(source)) {
    for (const id of packagesOf(graph)) folders.set(id, graph.npmPackages[id]?.localPath ?? "");
  }
  return folders;
}

async function* graphsOf(source: string): AsyncGenerator<ModuleGraph> {
  for (const root of [ENTRY, ...WORKERS]) {
    const what = `read the module graph of "${root}"`;
    yield JSON.parse(await runDeno(what, ["info", "--json", root], { cwd: source }));
  }
}

/** Those of the files whose bytes are not in a program. */
export function missingFiles(program: Uint8Array<ArrayBuffer>, files: readonly string[]): string[] {
  // A text of bytes is searched a hundred times as fast as bytes are.
  const text = textOf(program);
  // What is embedded begins with its description; what is before it is Deno itself.
  const embedded = text.slice(Math.max(0, text.lastIndexOf('{"argv":[')));
  // Files stand there nearly in their order, so the next one is looked for behind the one before it.
  let from = 0;
  return files.filter((file) => {
    const wanted = textOf(Deno.readFileSync(file));
    const behind = embedded.indexOf(wanted, from);
    const at = behind < 0 ? embedded.indexOf(wanted) : behind;
    if (at >= 0) from = at;
    return at < 0;
  });
}

function textOf(bytes: Uint8Array<ArrayBuffer>): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
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

async function* filesIn(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) yield* filesIn(join(folder, name));
    else yield join(folder, name);
  }
}
