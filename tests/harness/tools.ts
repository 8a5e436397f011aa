import { existsSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import process from "node:process";
import { denoFolder, pinnedFolder, type Tool, type ToolEntry, TOOLS } from "./tool_register.ts";

export type { Tool } from "./tool_register.ts";

// Debian keeps some servers in folders that are missing in the PATH of ordinary users.
const MORE_FOLDERS = ["/usr/local/bin", "/usr/bin", "/usr/sbin"];
const POSTGRES_RELEASES = "/usr/lib/postgresql";

/** The path of a program: in our own folder first, because its release is known there; undefined if nowhere. */
export function toolPath(tool: Tool): string | undefined {
  const entry: ToolEntry = TOOLS[tool];
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const more = [...MORE_FOLDERS, ...(tool === "postgres" ? postgresFolders() : [])];
  const places = [...folders, ...more].map((folder) => join(folder, tool));
  return [...ownPlaces(tool, entry), ...(entry.by === "deno" ? [] : places)]
    .find(entry.by === "go-module" ? existsSync : isExecutable);
}

/** Returns whether a program can be started on this machine. */
export function toolAvailable(tool: Tool): boolean {
  return toolPath(tool) !== undefined;
}

/** The path of a program; throws when it is missing. */
export function requireTool(tool: Tool): string {
  const path = toolPath(tool);
  if (path === undefined) {
    throw new Error(`Cannot start "${tool}": it is not installed, run the test task once`);
  }
  return path;
}

/**
 * Name and switch of a test that needs programs: `Deno.test({ ...needs(["envoy"], "name"), fn })`. Where
 * one is missing the test is skipped, and its name says for want of what.
 */
export function needs(tools: readonly Tool[], name: string): { name: string; ignore: boolean } {
  const missing = tools.filter((tool) => !toolAvailable(tool));
  return {
    name: missing.length === 0 ? name : `${name} [needs ${missing.join(", ")}]`,
    ignore: missing.length > 0,
  };
}

/**
 * Registers tests that need programs: `needing("envoy").test("name", async () => { … })`. The runner reports the
 * caller of `Deno.test` as the place of a test, so a test that runs is registered by its own file.
 */
export function needing(
  ...tools: readonly Tool[]
): { test(name: string, run: (t: Deno.TestContext) => void | Promise<void>): void } {
  if (tools.every(toolAvailable)) return Deno;
  return { test: (name, fn) => Deno.test({ ...needs(tools, name), fn }) };
}

/** Folders where we, or Deno, install a program. */
function ownPlaces(tool: Tool, entry: ToolEntry): readonly string[] {
  switch (entry.by) {
    case "debian":
      return [];
    case "deno":
      // In a folder with the version that this Deno has; after an upgrade it fetches another by itself.
      return entriesOf(join(denoFolder(), "dl"), /^esbuild-/).flatMap((folder) =>
        entriesOf(folder, /^esbuild-/)
      );
    default:
      return [join(pinnedFolder(tool, entry), entry.program ?? tool)];
  }
}

/** Debian keeps each release of PostgreSQL in its own folder, which no PATH has; the newest is the first. */
function postgresFolders(): string[] {
  const releases = entriesOf(POSTGRES_RELEASES, /^\d+$/);
  return releases.toSorted((a, b) => Number(basename(b)) - Number(basename(a))).map((folder) =>
    join(folder, "bin")
  );
}

function entriesOf(folder: string, name: RegExp): string[] {
  try {
    return Array.from(Deno.readDirSync(folder)).filter((entry) => name.test(entry.name))
      .map((entry) => join(folder, entry.name));
  } catch {
    return [];
  }
}

/** Returns whether this file can be started. */
export function isExecutable(path: string): boolean {
  try {
    const stat = Deno.statSync(path);
    return stat.isFile && ((stat.mode ?? 0) & 0o111) !== 0;
  } catch {
    return false;
  }
}
