import { runDeno } from "./failure.ts";

/** Where Deno keeps what it fetched and made. */
export interface DenoFolders {
  /** What `DENO_DIR` names. */
  readonly root: string;
  readonly emitted: string;
}

/** Asks the Deno that runs this. */
export async function denoFolders(cwd: string): Promise<DenoFolders> {
  const told = JSON.parse(await runDeno("find the folders of Deno", ["info", "--json"], { cwd }));
  return { root: told.denoDir, emitted: told.typescriptCache };
}
