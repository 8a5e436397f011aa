import { copyFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join, relative } from "node:path";
import { requireTool } from "../../tests/harness/tools.ts";
import { denoFolder, toolsFolder } from "../../tests/harness/tool_register.ts";
import { versionOf } from "../compile.ts";
import { commitOf } from "../compile/commit.ts";
import { ENTRY, WORKERS } from "../compile/contents.ts";
import { denoFolders } from "../compile/deno_folders.ts";
import { filesToEmbed } from "../compile/embedded_files.ts";
import { checkRuns, type Compiler, makeProgram } from "../compile/program.ts";
import { copySources } from "../compile/source_copy.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const RELEASE = "2.6.10";
const SHIMS = "scripts/binary/shims.ts";

/**
 * Makes Weir as `deno task compile` does, with a base runtime that a package registry has. Its first module and its workers
 * begin with an import of what that release lacks. Throws `CompileError` when it cannot.
 */
export async function makeTestProgram(output: string): Promise<void> {
  const commit = await commitOf(ROOT);
  await using copy = await copySources(ROOT, commit);
  const source = copy.path;
  await addShims(source);
  await stripPage(source);
  const base = requireTool("denort-2.6.10");
  const made = { source, folders: await denoFolders(source), files: await filesToEmbed(source), base };
  await makeProgram({ ...made, output, target: "x86_64-unknown-linux-gnu", compiler: await compiler() });
  await checkRuns(output, { base, version: await versionOf(source, commit, RELEASE) });
}

/** Line numbers stay as they are. */
async function addShims(source: string): Promise<void> {
  const shims = join(source, "shims.ts");
  await copyFile(join(ROOT, SHIMS), shims);
  for (const module of [ENTRY, ...WORKERS]) {
    const path = join(source, module);
    const specifier = relative(dirname(path), shims);
    const text = await Deno.readTextFile(path);
    const line = `import "${specifier.startsWith(".") ? specifier : `./${specifier}`}"; `;
    await Deno.writeTextFile(path, line + text);
  }
}

/** That release has no `stripTypeScriptTypes`, so the page is stripped here, and what strips it there leaves it as it is. */
async function stripPage(source: string): Promise<void> {
  const page = join(source, "src/ui/page");
  for await (const { name } of Deno.readDir(page)) {
    if (!name.endsWith(".ts")) continue;
    const text = await Deno.readTextFile(join(page, name));
    await Deno.writeTextFile(join(page, name), stripTypeScriptTypes(text));
  }
  await Deno.writeTextFile(
    join(source, "node_module.ts"),
    "export const stripTypeScriptTypes = (text: string): string => text;\n",
  );
  const config = JSON.parse(await Deno.readTextFile(join(source, "deno.json")));
  config.imports["node:module"] = "./node_module.ts";
  await Deno.writeTextFile(join(source, "deno.json"), JSON.stringify(config));
}

/** The compiler of that release. Two releases would clear each other's caches, but packages are the same for both. */
export async function compiler(): Promise<Compiler> {
  const folder = join(toolsFolder(), `deno-${RELEASE}-cache`);
  const packages = join(denoFolder(), "npm");
  await Deno.mkdir(folder, { recursive: true });
  await Deno.remove(join(folder, "npm")).catch(() => {});
  await Deno.symlink(packages, join(folder, "npm"));
  return {
    deno: requireTool("deno-2.6.10"),
    folder,
    lacks: ["--exclude-unused-npm", "--app-name=weir"],
    needs: ["--unstable-temporal"],
  };
}
