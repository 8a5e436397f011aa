import { importsOf, type Source } from "./source_scan.ts";

/** The files of `root` that a file imports by a relative path, type imports included. */
export function relativeImports(source: Source): string[] {
  return importsOf(source)
    .filter((specifier) => specifier.startsWith("."))
    .map((specifier) => new URL(specifier, `file:///${source.path}`).pathname.slice(1));
}

/**
 * Groups of files that import each other in a circle, each group sorted: the strongly connected components with more than
 * one file, by Tarjan's algorithm.
 */
export function importCircles(sources: readonly Source[]): string[][] {
  const imports = new Map(sources.map((source) => [source.path, relativeImports(source)]));
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];
  const visit = (path: string): number => {
    const index = order.size;
    order.set(path, index);
    open.push(path);
    let low = index;
    for (const target of imports.get(path) ?? []) {
      if (!imports.has(target)) continue;
      if (!order.has(target)) low = Math.min(low, visit(target));
      else if (open.includes(target)) {
        low = Math.min(low, lowest.get(target) ?? index, order.get(target) ?? index);
      }
    }
    lowest.set(path, low);
    if (low === index) {
      const circle = open.splice(open.indexOf(path)).sort();
      if (circle.length > 1 || imports.get(path)?.includes(path)) circles.push(circle);
    }
    return low;
  };
  for (const { path } of sources) if (!order.has(path)) visit(path);
  return circles;
}
