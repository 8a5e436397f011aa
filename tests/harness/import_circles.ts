import { importsOf, type Source } from "./source_scan.ts";

/** The files of `root` that a file imports by a relative path, type imports included. */
export function relativeImports(source: Source): string[] {
  return importsOf(source)
    .filter((specifier) => specifier.startsWith("."))
    .map((specifier) => new URL(specifier, `file:///${source.path}`).pathname.slice(1));
}

/** The files that import themselves, by way of others or not; sorted. */
export function importCircles(sources: readonly Source[]): string[] {
  const imports = new Map(sources.map((source) => [source.path, relativeImports(source)]));
  const importsItself = (path: string) => {
    const reached = new Set(imports.get(path));
    for (const other of reached) for (const target of imports.get(other) ?? []) reached.add(target);
    return reached.has(path);
  };
  return [...imports.keys()].filter(importsItself).sort();
}
