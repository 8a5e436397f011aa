import { join } from "node:path";
import { cp } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { stamped } from "./commit.ts";
import { PAGE, SOURCES } from "./contents.ts";
import { denoFolders } from "./deno_folders.ts";

/** A copy of the sources for one compilation; removed at the end of its block. */
interface SourceCopy extends AsyncDisposable {
  readonly path: string;
}

/**
 * Copies what the program is made of, with the commit in it and with no types in the page, so that the working tree stays as
 * it is.
 */
export async function copySources(root: string, commit: string | undefined): Promise<SourceCopy> {
  const path = await Deno.makeTempDir({ prefix: "weir_compile_" });
  const remove = async () => {
    await Deno.remove(path, { recursive: true });
    // What Deno kept of modules that will never be seen again.
    const { emitted } = await denoFolders(root);
    await Deno.remove(join(emitted, "file", path), { recursive: true }).catch(() => {});
  };
  try {
    for (const name of SOURCES) await cp(join(root, name), join(path, name), { recursive: true });
    await stripPage(join(path, PAGE));
    const version = join(path, "src/base/version.ts");
    if (commit !== undefined) {
      await Deno.writeTextFile(version, stamped(await Deno.readTextFile(version), commit));
    }
    return { path, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** A program serves the modules of the page as they are in it. */
async function stripPage(page: string): Promise<void> {
  for await (const { name } of Deno.readDir(page)) {
    if (!name.endsWith(".ts")) continue;
    const path = join(page, name);
    await Deno.writeTextFile(path, stripTypeScriptTypes(await Deno.readTextFile(path)));
  }
}
