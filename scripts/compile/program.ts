import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { SERVE_FLAGS } from "../serve_flags.ts";
import { missingBaseText } from "./base_runtime.ts";
import { ENTRY, LICENSES, PAGE, WORKERS } from "./contents.ts";
import type { DenoFolders } from "./deno_folders.ts";
import type { Content } from "./embedded_files.ts";
import { CompileError, complaint, MissingBaseError, runToEnd } from "./failure.ts";
import type { Target } from "./options.ts";
import { Buffer } from "node:buffer";

/** Another Deno than the one that runs this. */
export interface Compiler {
  readonly deno: string;
  readonly folder: string;
  /** Flags that it does not know, and those that it needs more. */
  readonly lacks: readonly string[];
  readonly needs: readonly string[];
}

/** Options of a program. */
export interface ProgramOptions {
  /** Folder of the sources. */
  readonly source: string;
  readonly target: Target;
  readonly output: string;
  /** The base runtime; where Deno takes it from by itself when absent. */
  readonly base: string | undefined;
  readonly folders: DenoFolders;
  readonly content: Content;
  /** Folder of the working tree, which no program may name. */
  readonly root: string;
  readonly compiler?: Compiler;
  readonly signal?: AbortSignal;
}

/** Makes a program; throws `CompileError` when it cannot, or when what is in it is not what has to be. */
export async function makeProgram(options: ProgramOptions): Promise<void> {
  const { source, target, base, folders, compiler, signal } = options;
  const known = compileArgs(options).filter((arg) => compiler?.lacks.includes(arg) !== true);
  const args = known.toSpliced(1, 0, ...compiler?.needs ?? []);
  const { code, stderr } = await runToEnd(compiler?.deno ?? Deno.execPath(), args, {
    cwd: source,
    env: {
      ...(base === undefined ? {} : { DENORT_BIN: base }),
      ...(compiler === undefined ? {} : { DENO_DIR: compiler.folder }),
    },
    ...(signal === undefined ? {} : { signal }),
  });
  if (code !== 0) {
    const said = complaint(stderr);
    const sources = { named: base, denoFolder: folders.root, complaint: said };
    const missing = await missingBaseText(target, sources);
    if (missing !== undefined) throw new MissingBaseError(missing);
    throw new CompileError(
      `Cannot compile for "${target}": "deno compile" ended with code ${code}\n${said}`,
    );
  }
  await checkContent(options);
}

async function checkContent(options: ProgramOptions): Promise<void> {
  const { source, target, output, folders, content, root } = options;
  const program = await Deno.readFile(output);
  const absent = missingFiles(program, content.files);
  if (absent.length > 0) {
    throw new CompileError(`Cannot compile for "${target}": the program lacks\n  ${absent.join("\n  ")}`);
  }
  const places = [source, join(folders.root, "npm")];
  // A path as short as that of a working tree may be part of another one, such as "/build".
  const urls = [...places, root].map((folder) => `${pathToFileURL(folder)}/`);
  const named = textsIn(program, [...places, ...urls]);
  if (named.length === 0) return;
  throw new CompileError(
    `Cannot compile for "${target}": the program has paths of this machine in it\n  ${named.join("\n  ")}`,
  );
}

/** Options of a run check. */
interface RunCheckOptions {
  readonly base: string | undefined;
  readonly signal?: AbortSignal;
  /** The line that `weir version` must print. */
  readonly version: string;
}

/** Throws `CompileError` unless a program of this platform runs and says the version that it was given. */
export async function checkRuns(
  program: string,
  { base, version, signal }: RunCheckOptions,
): Promise<void> {
  const options = { cwd: "/", ...(signal === undefined ? {} : { signal }) };
  const { code, stdout, stderr } = await runToEnd(program, ["version"], options);
  if (code === 0 && stdout.trim() === version) return;
  const said = (stdout + stderr).trim().split("\n")[0] ?? "";
  const blame = base === undefined
    ? ""
    : `; DENORT_BIN "${base}" has to be denort of Deno ${Deno.version.deno}`;
  throw new CompileError(
    `Cannot run the program: "weir version" ended with code ${code} and "${said}", not with 0 and "${version}"${blame}`,
  );
}

function compileArgs({ target, output, content }: ProgramOptions): string[] {
  return [
    "compile",
    "--quiet",
    "--frozen",
    // Types are checked apart from this, and once for all platforms.
    "--no-check",
    "--exclude-unused-npm",
    "--app-name=weir",
    // Else the program reads V8 code from a file of the folder for temporary files, with any owner.
    "--no-code-cache",
    `--output=${output}`,
    `--target=${target}`,
    ...SERVE_FLAGS,
    ...[...WORKERS, PAGE, LICENSES].map((path) => `--include=${path}`),
    ...content.leftOut.map((path) => `--exclude=${path}`),
    ENTRY,
  ];
}

/** The description begins the embedded part; Deno itself is before it. */
const DESCRIPTION = '{"argv":[';

/** Those of the files whose bytes are not in a program. */
function missingFiles(program: Uint8Array<ArrayBuffer>, files: readonly string[]): string[] {
  const embedded = embeddedIn(program);
  // Files stand there nearly in their order, so the next one is looked for behind the previous one it.
  let from = 0;
  return files.filter((file) => {
    const wanted = Deno.readFileSync(file);
    const behind = embedded.indexOf(wanted, from);
    const at = behind < 0 ? embedded.indexOf(wanted) : behind;
    if (at >= 0) from = at;
    return at < 0;
  });
}

/** Those of the texts that are in what is embedded in a program. */
function textsIn(program: Uint8Array<ArrayBuffer>, texts: readonly string[]): string[] {
  const embedded = embeddedIn(program);
  return texts.filter((text) => embedded.includes(text));
}

function embeddedIn(program: Uint8Array<ArrayBuffer>): Buffer {
  const bytes = Buffer.from(program.buffer, program.byteOffset, program.byteLength);
  return bytes.subarray(Math.max(0, bytes.lastIndexOf(DESCRIPTION)));
}
