import { Buffer } from "node:buffer";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { denoFolder } from "../../harness/tool_register.ts";
import { TARGETS } from "../../../scripts/compile/options.ts";
import { SOURCES, WORKERS } from "../../../scripts/compile/contents.ts";

/** The folder of the project. */
export const ROOT = new URL("../../../", import.meta.url).pathname;

const isHere = (target: string) => target === Deno.build.target;
/** The platform of this machine. */
export const HERE = TARGETS.find(isHere) ?? TARGETS[0];
/** Another platform. */
export const OTHER = TARGETS.find((target) => target.endsWith("linux-gnu") && target !== HERE) ?? TARGETS[0];
/** Says what the variable holds that its argument names: all that a base runtime is asked for in these tests. */
export const STAND_IN = "/usr/bin/printenv";
/** An address that refuses connections, so that nothing is downloaded on any machine. */
export const OFFLINE = { HTTPS_PROXY: "http://127.0.0.1:1", https_proxy: "http://127.0.0.1:1" };

/** The exit of the task, and its output. */
interface Compiled {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs the compile or the release task, of the sources in the folder `root`, without its type check, which the whole suite
 * does once.
 */
export async function runTask(
  name: "compile" | "release",
  args: readonly string[],
  { env = {}, root = ROOT }: { readonly env?: Readonly<Record<string, string>>; readonly root?: string } = {},
): Promise<Compiled> {
  const { DENORT_BIN: _, ...own } = Deno.env.toObject();
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-all", join(root, `scripts/${name}.ts`), "--no-check", ...args],
    cwd: ROOT,
    env: { ...own, NO_COLOR: "1", ...env },
    clearEnv: true,
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

/** Runs git in a folder, as its own author. */
export async function git(folder: string, ...args: string[]): Promise<void> {
  const own = ["-c", "user.name=weir", "-c", "user.email=weir@example.com", ...args];
  const { success } = await new Deno.Command("git", { args: own, cwd: folder, stdout: "null" }).output();
  if (!success) throw new Error(`Cannot run git ${args.join(" ")}`);
}

/** The names in a folder, sorted. */
export async function namesIn(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).sort();
}

/** A new folder, removed at the end of its block. */
export async function newFolder(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await Deno.makeTempDir({ prefix: "weir_compiled_" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

/**
 * Sources that compile in a moment: those of Weir and the compile task, but with an entry and workers that import nothing.
 * No commit is known of them.
 */
export async function smallSources(): Promise<{ readonly path: string } & AsyncDisposable> {
  const folder = await newFolder();
  for (const name of [...SOURCES, "scripts", "LICENSE"]) {
    await cp(join(ROOT, name), join(folder.path, name), { recursive: true });
  }
  await Deno.writeTextFile(join(folder.path, "main.ts"), 'console.log("small");\n');
  for (const worker of WORKERS) await Deno.writeTextFile(join(folder.path, worker), "export {};\n");
  return folder;
}

/** A folder for `DENO_DIR` with the npm packages and the bundler that are on this machine, and with nothing else. */
export async function freshDenoFolder(): Promise<{ readonly path: string } & AsyncDisposable> {
  const folder = await newFolder();
  await Deno.symlink(join(denoFolder(), "npm"), join(folder.path, "npm"));
  await Deno.mkdir(join(folder.path, "dl"));
  for await (const { name } of Deno.readDir(join(denoFolder(), "dl"))) {
    if (!name.startsWith("esbuild-")) continue;
    await Deno.symlink(join(denoFolder(), "dl", name), join(folder.path, "dl", name));
  }
  return folder;
}

/** Puts a program where Deno looks for the base runtime of a platform. */
export async function addBase(denoFolder: string, target: string, program: string): Promise<void> {
  const folder = join(denoFolder, "dl/release", `v${Deno.version.deno}`);
  await Deno.mkdir(folder, { recursive: true });
  await Deno.writeFile(
    join(folder, `denort-${target}.zip`),
    zipOf("denort", Buffer.from(await Deno.readFile(program))),
  );
}

/** The description of a program that Deno wrote into it, such as its permissions. */
export function metadataOf(program: string): Record<string, unknown> {
  const start = program.lastIndexOf('{"argv":[');
  const end = program.indexOf("}", program.indexOf('"app_version":', start)) + 1;
  return JSON.parse(program.slice(start, end));
}

/** A file byte by byte, as a text that can be searched. */
export async function bytesOf(path: string): Promise<string> {
  return Buffer.from(await Deno.readFile(path)).toString("latin1");
}

/** An archive with one file that is stored as it is. */
function zipOf(name: string, content: Buffer): Uint8Array {
  const nameBytes = Buffer.from(name);
  const facts = Buffer.alloc(26);
  facts.writeUInt16LE(20, 0);
  facts.writeUInt32LE(crc32(content), 10);
  facts.writeUInt32LE(content.length, 14);
  facts.writeUInt32LE(content.length, 18);
  facts.writeUInt16LE(nameBytes.length, 22);
  const local = Buffer.concat([Buffer.from("PK\x03\x04"), facts, nameBytes, content]);
  const entry = Buffer.concat([Buffer.from("PK\x01\x02\x14\x03"), facts, Buffer.alloc(14), nameBytes]);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(entry.length, 12);
  end.writeUInt32LE(local.length, 16);
  return Buffer.concat([local, entry, end]);
}
