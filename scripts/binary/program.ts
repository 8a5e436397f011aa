import { copyFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { requireTool } from "../../tests/harness/tools.ts";
import { denoFolder, toolsFolder } from "../../tests/harness/tool_register.ts";
import { versionOf } from "../compile.ts";
import { commitOf } from "../compile/commit.ts";
import { ENTRY, WORKERS } from "../compile/contents.ts";
import { denoFolders } from "../compile/deno_folders.ts";
import { contentOf } from "../compile/embedded_files.ts";
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
  const base = requireTool("denort-2.6.10");
  const folders = await denoFolders(source);
  const made = { source, root: resolve(ROOT), folders, content: await contentOf(source), base };
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
