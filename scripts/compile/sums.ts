import { join } from "node:path";

/** The file with the sums of the programs next to it, as `sha256sum --check` reads it. */
export const SUMS_FILE = "SHA256SUMS";

const LINE = /^[0-9a-f]{64} {2}(.+)$/;

/** Writes the sums of programs of a folder; those of others stay as long as they are there. */
export async function writeSums(folder: string, names: readonly string[]): Promise<void> {
  const sums = new Map<string, string>();
  for (const line of (await textOf(join(folder, SUMS_FILE))).split("\n")) {
    const name = LINE.exec(line)?.[1];
    if (name !== undefined && await isFile(join(folder, name))) sums.set(name, line);
  }
  for (const name of names) sums.set(name, `${await sumOf(join(folder, name))}  ${name}`);
  const lines = [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, line]) => `${line}\n`);
  const beside = join(folder, `.${SUMS_FILE}`);
  await Deno.writeTextFile(beside, lines.join(""));
  await Deno.rename(beside, join(folder, SUMS_FILE));
}

async function sumOf(path: string): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", await Deno.readFile(path))).toHex();
}

async function textOf(path: string): Promise<string> {
  return await Deno.readTextFile(path).catch((error: unknown) => {
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  });
}

async function isFile(path: string): Promise<boolean> {
  return await Deno.stat(path).then((stat) => stat.isFile, () => false);
}
