/**
 * Makes everything that a release consists of: the programs of all platforms whose base runtime can be had, a bill of
 * materials, the OpenAPI document, the packages for Node, release notes, and the sums of these files:
 * `deno task release`.
 */
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { FlagError, HELP_FLAGS, parseFlags } from "../src/cli/flags.ts";
import { compileAll, type CompileOutput, failed, runTask } from "./compile.ts";
import { packagesToEmbed } from "./compile/embedded_files.ts";
import { CompileError, runToEnd } from "./compile/failure.ts";
import { readTargets, type Target, TARGETS } from "./compile/options.ts";
import { writeSums } from "./compile/sums.ts";
import { openApiText } from "./docs/openapi_pages.ts";
import { packNpm } from "./release/npm_packages.ts";
import { releaseNotes } from "./release/notes.ts";
import { sbomOf } from "./release/sbom.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const NOTES_FILE = "RELEASE_NOTES.md";
const USAGE = `usage: deno task release [--target PLATFORM,...] [--output FOLDER] [--url URL] [--no-check]
  --target    platforms that must be made, or all; without it, those whose base runtime can be had
  --output    the folder of the files, release when it is not given
  --url       where the sources of this version are, for the links in the notes
  --no-check  leave the types unchecked`;
const FLAGS = {
  "target": "strings",
  "output": "string",
  "url": "string",
  "no-check": "boolean",
  ...HELP_FLAGS,
} as const;

interface ReleaseOptions {
  /** Platforms that must be made; all that can be, when absent. */
  readonly targets: readonly Target[] | undefined;
  readonly folder: string;
  readonly url: string | undefined;
  readonly check: boolean;
}

/** Makes a release as the flags say; answers the exit code. */
export async function release(
  args: readonly string[],
  output: CompileOutput,
  signal: AbortSignal = new AbortController().signal,
): Promise<number> {
  try {
    const options = readOptions(args);
    if (options === undefined) output.stdout(USAGE);
    else await releaseAll(options, output, signal);
    return 0;
  } catch (error) {
    return failed(error, output);
  }
}

async function releaseAll(
  { targets, folder, url, check }: ReleaseOptions,
  output: CompileOutput,
  signal: AbortSignal,
): Promise<void> {
  const { version } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  // What is quick to check comes first.
  const notes = releaseNotes(await Deno.readTextFile(join(ROOT, "CHANGELOG.md")), { version, url });
  const sbom = await makeSbom(version);
  const platforms = targets ?? TARGETS;
  const names = await compileAll(
    { targets: platforms, skipMissing: targets === undefined, dry: false, check, folder },
    output,
    signal,
  );
  const texts = {
    [`weir-${version}.cdx.json`]: sbom,
    [`weir-${version}.openapi.json`]: openApiText(version),
    [NOTES_FILE]: notes,
  };
  for (const [name, text] of Object.entries(texts)) {
    await Deno.writeTextFile(join(folder, name), text);
    output.stdout(join(folder, name));
  }
  const archives = await packNpm({ root: ROOT, version, output: resolve(folder), signal });
  for (const name of archives) output.stdout(join(folder, name));
  await writeSums(folder, [...names, ...archives, ...Object.keys(texts)]);
  output.stdout(`weir ${version}: ${names.length} of ${platforms.length} platforms`);
}

async function makeSbom(version: string): Promise<string> {
  const licenses = new Map<string, string | undefined>();
  for (const [id, folder] of await packagesToEmbed(ROOT)) {
    const { license } = JSON.parse(await Deno.readTextFile(join(folder, "package.json")));
    licenses.set(id, typeof license === "string" ? license : undefined);
  }
  const lock = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.lock")));
  return sbomOf({ version, deno: Deno.version.deno, time: await commitTime(), lock, licenses });
}

/** When the newest commit was made, so that the same sources give the same files. */
async function commitTime(): Promise<Date> {
  const { code, stdout } = await runToEnd("git", ["log", "-1", "--format=%cI"], { cwd: ROOT });
  const time = new Date(stdout.trim());
  if (code === 0 && !Number.isNaN(time.getTime())) return time;
  throw new CompileError("Cannot release: the sources are not in a git repository with a commit");
}

function readOptions(args: readonly string[]): ReleaseOptions | undefined {
  const { flags, rest } = parseFlags(args, FLAGS);
  if (flags["help"] === true || flags["h"] === true) return undefined;
  if (rest.length > 0) throw new FlagError(`Cannot release "${rest[0]}": expected only flags`);
  const named = flags["target"] === undefined ? undefined : [flags["target"]].flat().map(String);
  const folder = String(flags["output"] ?? "release");
  if (folder === "") throw new FlagError('Cannot read flag "--output": expected a folder');
  const url = flags["url"] === undefined ? undefined : String(flags["url"]);
  if (url !== undefined && !/^https?:\/\/\S+$/.test(url)) {
    throw new FlagError(`Cannot read flag "--url": expected a URL, got "${url}"`);
  }
  const targets = named === undefined ? undefined : readTargets(named);
  return { targets, folder, url, check: flags["no-check"] !== true };
}

if (import.meta.main) await runTask(release);
