import { linksTo } from "./document_links.ts";
import { lineAt, type Page } from "./documents.ts";

/** Names of the code, and the pages whose tables describe them. */
export interface Reference {
  /** Their kind, such as `setting`. */
  readonly kind: string;
  readonly names: readonly string[];
  readonly pages: readonly string[];
  /** The head of their tables; a name in a table with another head is of something else. Any head when absent. */
  readonly head?: string;
  /** The name that inline code has, which may have more, such as a value; the code itself when absent. */
  readonly nameOf?: (code: string) => string;
  /** Further names by which pages mention them. */
  readonly aliases?: readonly string[];
}

/** A row of a table. */
interface TableRow {
  readonly line: number;
  /** The head of its first column. */
  readonly head: string;
  /** Without the spaces around them. */
  readonly cells: readonly string[];
}

const TABLES = /^(\|.*\|)\n\|[-:| ]+\|\n((?:\|.*\|(?:\n|$))*)/gm;

/** The rows of every table of a page, without their heads. */
export function tableRows({ body }: Pick<Page, "body">): TableRow[] {
  const tables = body.matchAll(TABLES);
  return [...tables].flatMap(({ 0: table, 1: head = "", 2: rows = "", index }) => {
    const first = lineAt(body, index + table.length - rows.length);
    return rows.split("\n").filter((row) => row !== "").map((row, below) => ({
      line: first + below,
      head: cellsOf(head)[0] ?? "",
      cells: cellsOf(row),
    }));
  });
}

/** Lines that look like a row and are in no table, such as those below an empty line; each as a line to print. */
export function strayRows({ path, body }: Pick<Page, "path" | "body">): string[] {
  const withoutTables = body.replaceAll(TABLES, (table) => table.replaceAll(/[^\n]/g, " "));
  return [...withoutTables.matchAll(/^\|.*$/gm)].map(({ 0: row, index }) =>
    `${path}:${lineAt(body, index)}: a row without a table: ${row}`
  );
}

function cellsOf(row: string): string[] {
  return row.slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** The names that are not the first cell of exactly one row, on a page of the reference; each as a line to print. */
export function rowProblems(
  pages: readonly Page[],
  { kind, names, pages: places, head: expected, nameOf }: Reference,
): string[] {
  const found = new Map<string, string[]>(names.map((name) => [name, []]));
  for (const page of pages) {
    for (const { line, head, cells } of tableRows(page)) {
      if (expected !== undefined && head !== expected) continue;
      const [, code] = /^`([^`]+)`$/.exec(cells[0] ?? "") ?? [];
      if (code !== undefined) found.get(nameOf?.(code) ?? code)?.push(`${page.path}:${line}`);
    }
  }
  return [...found].flatMap(([name, rows]) => {
    const [row, ...others] = rows;
    if (row === undefined) return [`${kind} ${name} has no row`];
    if (others.length > 0) return [`${kind} ${name} has several rows: ${rows.join(", ")}`];
    return places.some((place) => row.startsWith(`${place}:`))
      ? []
      : [`${kind} ${name} has its row in ${row}`];
  });
}

/** The pages that mention a name in inline code and have no link to its reference; each as a line to print. */
export function mentionProblems(
  pages: readonly Page[],
  { kind, names, pages: places, nameOf, aliases = [] }: Reference,
): string[] {
  const known = new Set([...names, ...aliases]);
  return pages.filter(({ path }) => !places.includes(path)).flatMap((page) => {
    const codes = page.codes.map((code) => nameOf?.(code) ?? code);
    const name = codes.find((code) => known.has(code));
    if (name === undefined || places.some((place) => linksTo(page, place))) return [];
    return [`${page.path} mentions the ${kind} ${name} without a link to ${places.join(" or ")}`];
  });
}
