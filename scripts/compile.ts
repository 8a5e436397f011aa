/**
 * Makes one executable of Weir, or one for each platform that is asked for, with their sums next to them:
 * `deno task compile`. `--dry` proves all that can be proven without Deno's base runtime.
 */
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { errorText } from "../src/base/error_text.ts";
import { FlagError } from "../src/cli/flags.ts";
import { checkNamedBase } from "./compile/base_runtime.ts";
import { commitOf } from "./compile/commit.ts";
import { ENTRY, LICENSES, PAGE, WORKERS } from "./compile/contents.ts";
import { denoFolders } from "./compile/deno_folders.ts";
import { type Content, contentOf, filesIn } from "./compile/embedded_files.ts";
import { CompileError, MissingBaseError, runDeno } from "./compile/failure.ts";
import { type CompileOptions, readCompileOptions, type Target, TARGETS, USAGE } from "./compile/options.ts";
import { checkRuns, makeProgram, type ProgramOptions } from "./compile/program.ts";
import { copySources } from "./compile/source_copy.ts";
import { SUMS_FILE, writeSums } from "./compile/sums.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** Receives the lines of the task. */
export interface CompileOutput {
  readonly stdout: (line: string) => void;
  readonly stderr: (line: string) => void;
}

type Made = Pick<ProgramOptions, "source" | "root" | "folders" | "content" | "signal">;

const STOPPED = "Cannot compile: it was asked to stop";

/** Compiles as the flags say; answers the exit code. Aborting the signal ends it, and it leaves nothing behind. */
export async function compile(
  args: readonly string[],
  output: CompileOutput,
  signal: AbortSignal = new AbortController().signal,
): Promise<number> {
  try {
    const options = readCompileOptions(args);
    if (options === undefined) output.stdout(USAGE);
    else await compileAll(options, output, signal);
    return 0;
  } catch (error) {
    return failed(error, output);
  }
}

/** Prints a failure that is meant for the person who asked; returns the exit code. */
export function failed(error: unknown, output: CompileOutput): number {
  if (!(error instanceof FlagError || error instanceof CompileError)) throw error;
  output.stderr(error.message);
  return error instanceof FlagError ? 2 : 1;
}

/** Makes the programs, and returns their names; throws `CompileError` when that fails. */
export async function compileAll(
  options: CompileOptions,
  output: CompileOutput,
  signal: AbortSignal,
): Promise<string[]> {
  const base = options.dry ? Deno.execPath() : namedBase();
  await checkNamedBase(base, options.targets);
  const commit = await commitOf(ROOT);
  if (commit === undefined) output.stderr('The commit is not known: "git" does not tell it');
  await using copy = await copySources(ROOT, commit);
  if (options.check) {
    const checked = ["check", "--frozen", "--quiet", ENTRY, ...WORKERS];
    await runDeno("compile", checked, { cwd: copy.path, signal });
    output.stdout("types: checked");
  }
  const source = copy.path;
  const folders = await denoFolders(source);
  const made = { source, root: resolve(ROOT), folders, content: await contentOf(source), signal };
  const version = await versionOf(source, commit);
  output.stdout("in the program next to Deno's base runtime:");
  for (const line of await partLines(source, made.content)) output.stdout(line);
  if (!options.dry) return await compileInto(options, base, { made, version }, output);
  await compileDry(made, version, output);
  return [];
}

async function compileDry(made: Made, version: string, output: CompileOutput): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "weir_dry_" });
  try {
    const program = join(folder, nameOf(thisTarget(), false));
    await makeProgram({ ...made, target: thisTarget(), output: program, base: Deno.execPath() });
    output.stdout(
      `module graph and embedded files: all ${made.content.files.length} files are in the output`,
    );
    output.stdout(`${version}: everything is proven but Deno's base runtime, which this did not need`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function compileInto(
  { targets, folder, skipMissing }: CompileOptions,
  base: string | undefined,
  { made, version }: { readonly made: Made; readonly version: string },
  output: CompileOutput,
): Promise<string[]> {
  const place = resolve(folder);
  const beside = await folderBeside(place);
  try {
    const names: string[] = [];
    const missing = new Map<Target, MissingBaseError>();
    for (const target of targets.length > 0 ? targets : [thisTarget()]) {
      const program = join(beside, nameOf(target, targets.length > 0));
      const lacking = await unlessMissing(makeProgram({ ...made, target, output: program, base }));
      if (lacking !== undefined && !skipMissing) throw lacking;
      if (lacking !== undefined) {
        missing.set(target, lacking);
        continue;
      }
      if (target === thisTarget()) await checkRuns(program, { ...made, base, version });
      names.push(basename(program));
    }
    for (const target of missing.keys()) {
      output.stdout(`not made for ${target}: its base runtime cannot be downloaded`);
    }
    const [none] = missing.values();
    if (names.length === 0 && none !== undefined) throw none;
    // Only now, so that what is there is from one compilation.
    for (const name of names) await Deno.rename(join(beside, name), join(place, name));
    await writeSums(place, names);
    for (const name of names) {
      const { size } = await Deno.stat(join(place, name));
      output.stdout(`${join(folder, name)}: ${version}, ${Math.round(size / 1e6)} MB`);
    }
    output.stdout(`${join(folder, SUMS_FILE)}: check with "sha256sum --check ${SUMS_FILE}"`);
    return names;
  } finally {
    await Deno.remove(beside, { recursive: true });
  }
}

/** The failure for want of a base runtime; undefined when the program was made. */
async function unlessMissing(making: Promise<void>): Promise<MissingBaseError | undefined> {
  try {
    await making;
    return undefined;
  } catch (error) {
    if (error instanceof MissingBaseError) return error;
    throw error;
  }
}

/** A folder in the one where programs go, on the same file system, so that one step puts each in its place. */
async function folderBeside(place: string): Promise<string> {
  try {
    await Deno.mkdir(place, { recursive: true });
    return await Deno.makeTempDir({ dir: place, prefix: ".weir_" });
  } catch (error) {
    throw new CompileError(`Cannot compile into "${place}": ${errorText(error)}`);
  }
}

/** Deno runs in the copy of the sources, where a relative path would lead elsewhere. */
function namedBase(): string | undefined {
  const named = Deno.env.get("DENORT_BIN") ?? "";
  return named === "" ? undefined : resolve(named);
}

/** The line that `weir version` of the program must print. */
export async function versionOf(
  source: string,
  commit: string | undefined,
  release = Deno.version.deno,
): Promise<string> {
  const { version } = JSON.parse(await Deno.readTextFile(join(source, "deno.json")));
  const stamp = commit === undefined ? "" : `commit ${commit}, `;
  return `weir ${version} (${stamp}deno ${release})`;
}

function thisTarget(): Target {
  const found = TARGETS.find((target) => target === Deno.build.target);
  if (found === undefined) {
    throw new CompileError(
      `Cannot compile for "${Deno.build.target}": Deno compiles to ${TARGETS.join(", ")}`,
    );
  }
  return found;
}

function nameOf(target: Target, isNamed: boolean): string {
  return `weir${isNamed ? `-${target}` : ""}${target.includes("windows") ? ".exe" : ""}`;
}

/** Runs a task of this kind with the arguments of the process, until a signal ends it. */
export async function runTask(
  task: (args: readonly string[], output: CompileOutput, signal: AbortSignal) => Promise<number>,
): Promise<never> {
  const write = (stream: { writeSync(bytes: Uint8Array): number }) => (line: string) =>
    void stream.writeSync(new TextEncoder().encode(`${line}\n`));
  const denoFolder = Deno.env.get("DENO_DIR") ?? "";
  if (denoFolder !== "") Deno.env.set("DENO_DIR", resolve(denoFolder));
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(name, () => stop.abort(new CompileError(STOPPED)));
  }
  const output = { stdout: write(Deno.stdout), stderr: write(Deno.stderr) };
  Deno.exit(await task(Deno.args, output, stop.signal));
}

if (import.meta.main) await runTask(compile);

/** Lines that say what every program has in it, in megabytes, from the folder of its sources. */
async function partLines(source: string, content: Content): Promise<string[]> {
  const page = join(source, PAGE);
  const own = content.files.filter((file) => file.startsWith(source));
  const pageFiles = own.filter((file) => file.startsWith(page));
  const licenses = own.filter((file) => file === join(source, LICENSES));
  const others = new Set([...pageFiles, ...licenses]);
  const parts: readonly (readonly [name: string, files: readonly string[]])[] = [
    ["modules of Weir, which Deno adds as JavaScript too", own.filter((file) => !others.has(file))],
    [`${content.packages.size} npm packages`, await loadedFiles(content)],
    ["web page", pageFiles],
    ["licenses of the packages", licenses],
  ];
  return await Promise.all(parts.map(async ([name, files]) => {
    const sizes = await Promise.all(files.map(async (file) => (await Deno.stat(file)).size));
    return `  ${(sizes.reduce((sum, size) => sum + size, 0) / 1e6).toFixed(2)} MB ${name}`;
  }));
}

/** The files of the packages without those that are left out. */
async function loadedFiles({ packages, leftOut }: Content): Promise<string[]> {
  const loaded: string[] = [];
  for (const folder of packages.values()) {
    for await (const file of filesIn(folder)) {
      if (!leftOut.some((path) => file === path || file.startsWith(`${path}/`))) loaded.push(file);
    }
  }
  return loaded;
}
