import { runDeno } from "./failure.ts";

/** Folders of Deno for fetched and generated files. */
export interface DenoFolders {
  /** The value of `DENO_DIR`. */
  readonly root: string;
  readonly emitted: string;
}

/** Asks the Deno that runs this. */
export async function denoFolders(cwd: string): Promise<DenoFolders> {
  const told = JSON.parse(await runDeno("find the folders of Deno", ["info", "--json"], { cwd }));
  return { root: told.denoDir, emitted: told.typescriptCache };
}
