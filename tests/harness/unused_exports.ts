import { lineOf, type Source } from "./source_scan.ts";

/** Files whose exports are for programs outside of this project. */
const PUBLIC_FILES = ["src/rest/mod.ts", "src/rest/testing.ts", "src/webhooks/receiver.ts"];
const PACKAGE_FILES: Readonly<Record<string, string>> = {
  "#assert": "tests/harness/assert.ts",
  "@weir/rest": "src/rest/mod.ts",
  "@weir/rest/testing": "src/rest/testing.ts",
};
const ALL = "*";
const DECLARED =
  /^export\s+(?:declare\s+)?(?:async\s+)?(?:abstract\s+)?(?:const|let|function\*?|class|interface|type|namespace)\s+([\w$]+)/gm;
const DESTRUCTURED = /^export\s+const\s+[{[]([^}\]]*)[}\]]\s*=/gm;
const LISTED = /^export\s+(?:type\s+)?\{([^}]*)\}/gm;
/** The words between `import` or `export` and the quote of the file. */
const CLAUSE = /\b(?:import|export)\s+((?:type\s+)?[^;"'`()=]*?)\s*from\s*$/;
/** More characters than the names of an import have. */
const MOST_NAMES = 3_000;

/** Exports that no other file imports; each finding names the file, the line and the export. */
export function unusedExports(sources: readonly Source[]): string[] {
  const used = new Map<string, Set<string>>();
  for (const source of sources) {
    for (const [file, names] of importedNames(source)) {
      const known = used.get(file) ?? new Set();
      for (const name of names) known.add(name);
      used.set(file, known);
    }
  }
  return sources
    .filter(({ path }) => !PUBLIC_FILES.includes(path))
    .flatMap((source) => {
      const names = used.get(source.path);
      if (names?.has(ALL)) return [];
      return exportsOf(source).filter(({ name }) => !names?.has(name))
        .map(({ name, at }) => `${source.path}:${lineOf(source, at)}: ${name}`);
    });
}

function exportsOf({ code }: Source): { name: string; at: number }[] {
  const declared = [...code.matchAll(DECLARED)].map(({ 1: name = "", index }) => ({ name, at: index }));
  const listed = [...code.matchAll(LISTED), ...code.matchAll(DESTRUCTURED)].flatMap((
    { 1: list = "", index },
  ) => namesIn(list.replaceAll(":", " as "), "outer").map((name) => ({ name, at: index })));
  return [...declared, ...listed];
}

/** The files that a file imports, each with the names that it takes from there. */
function importedNames(source: Source): [file: string, names: readonly string[]][] {
  return source.strings.flatMap(({ start, value }): [string, readonly string[]][] => {
    const before = source.code.slice(Math.max(0, start - MOST_NAMES), start);
    const names = namesBefore(before) ?? dynamicNames(before, source.code.slice(start + value.length + 2));
    const file = PACKAGE_FILES[value] ??
      (value.startsWith(".") ? new URL(value, `file:///${source.path}`).pathname.slice(1) : undefined);
    return names === undefined || file === undefined ? [] : [[file, names]];
  });
}

/** The names of a static import, which may be all of them. */
function namesBefore(before: string): readonly string[] | undefined {
  const clause = CLAUSE.exec(before.slice(Math.max(before.lastIndexOf(";"), before.lastIndexOf('"'), 0)))
    ?.[1];
  if (clause === undefined) return undefined;
  const list = /\{([^}]*)\}/.exec(clause)?.[1];
  return list === undefined ? [ALL] : namesIn(list, "inner");
}

/** The names that the caller of `import()` takes from the module, as far as they can be read. */
function dynamicNames(before: string, after: string): readonly string[] | undefined {
  if (!/\bimport\s*\(\s*$/.test(before)) return undefined;
  const member = /^\s*\)\)?\.(\w+)/.exec(after)?.[1];
  if (member !== undefined && member !== "then") return [member];
  const list = /\{([^{}]*)\}\s*=\s*await\s+import\s*\(\s*$/.exec(before)?.[1];
  return list === undefined ? [ALL] : namesIn(list.replaceAll(":", " as "), "inner");
}

/** Names of a list such as `a, type b as c`: those of the file that exports them, or those of the file with the list. */
function namesIn(list: string, side: "inner" | "outer"): string[] {
  return list.split(",").map((item) => item.trim().replace(/^type\s+/, "")).filter((item) => item !== "")
    .map((item) => item.split(/\s+as\s+/)).map(([inner = "", outer]) =>
      side === "inner" ? inner : outer ?? inner
    );
}
