import { dirname, join } from "node:path";
import { ChildProcess } from "./child_process.ts";
import type { Block } from "./documents.ts";
import { denoFolder, TOOL_NAMES } from "./tool_register.ts";
import { toolPath } from "./tools.ts";

/** A block that runs. */
type ShellBlock = Pick<Block, "line" | "text"> & Partial<Pick<Block, "marks">>;

/** Exit code and output of a block; the exit code of a block without an end is absent. */
export interface ShellOutcome {
  readonly line: number;
  readonly code: number | undefined;
  readonly output: string;
}

const ROOT = new URL("../../", import.meta.url).pathname;
const BLOCK_TIMEOUT_MS = 300_000;
/** A private network, private mounts and private processes, which end with the first of them. */
const NAMESPACES = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
const WAYS = [NAMESPACES, ["--map-root-user", ...NAMESPACES]];
/** Replaces `npx -y deno@VERSION`. */
const NPX = `sh -c '[ "$1" = -y ] && shift 2 && exec deno "$@"' npx`;
/** Writes into the repository go to a file system in memory; files of an earlier start task are not there. */
const SET_UP = [
  "ip link set lo up",
  'mount -t tmpfs tmpfs "$LAYER"',
  'mkdir "$LAYER/upper" "$LAYER/work"',
  'mount -t overlay overlay -o "lowerdir=$ROOT,upperdir=$LAYER/upper,workdir=$LAYER/work" "$ROOT"',
  'cd "$ROOT"',
  "rm -rf data dist",
].join(" && ");

/** Starts PostgreSQL on its usual port; a user of the machine needs no password, and `sudo` is that user. */
const POSTGRES = `mount -t tmpfs tmpfs /mnt
install -d -o postgres /mnt/postgres
as_postgres="setpriv --reuid=postgres --regid=postgres --clear-groups"
(cd /mnt && $as_postgres "$POSTGRES_BIN/initdb" -A trust -D /mnt/postgres/data > /dev/null &&
  $as_postgres "$POSTGRES_BIN/pg_ctl" -D /mnt/postgres/data -w -o "-h 127.0.0.1 -k /mnt/postgres" \\
    -l /mnt/postgres/log start) || exit
export PGHOST=127.0.0.1 DB_PASSWORD=secret
sudo() { PGUSER=$2 "\${@:3}"; }
`;

/** The pages wait half a minute for a start, which a busy machine exceeds; here only the timeout of the block ends it. */
const PATIENT_CURL =
  'curl() { case " $* " in *" --retry "*) set -- "$@" --retry 1000 ;; esac; command curl "$@"; }';

let way: readonly string[] | undefined;

/** The arguments of `unshare` with which this machine permits private namespaces; absent where it permits none. */
function namespaceArgs(): readonly string[] | undefined {
  return way ??= WAYS.find((args) => {
    const folder = Deno.makeTempDirSync({ prefix: "weir_" });
    try {
      const env = { LAYER: folder, ROOT };
      return new Deno.Command("unshare", { args: [...args, "bash", "-c", SET_UP], env }).outputSync().success;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return false;
      throw error;
    } finally {
      Deno.removeSync(folder);
    }
  });
}

/** Name and switch of a test with private namespaces, as `needs` gives them for programs. */
export function needsNamespaces(name: string): { name: string; ignore: boolean } {
  const ignore = namespaceArgs() === undefined;
  return { name: ignore ? `${name} [needs unshare with private mounts]` : name, ignore };
}

/** Returns whether a block needs a PostgreSQL at 127.0.0.1:5432. */
export function needsPostgres({ marks = [] }: Partial<Pick<Block, "marks">>): boolean {
  return marks.includes("with=postgres");
}

/** The complaints of bash's parser about a block; empty without any. */
export async function parseProblems({ text }: Block): Promise<string> {
  const { stderr } = await new Deno.Command("bash", { args: ["-n", "-c", text] }).output();
  return new TextDecoder().decode(stderr);
}

/**
 * Runs blocks in order in one bash, with a copy of the repository at its usual path, and ends everything that they
 * started. A block fails with its first failing command; what follows is not run.
 */
export async function runBlocks(
  blocks: readonly ShellBlock[],
  { timeoutMs = BLOCK_TIMEOUT_MS }: { readonly timeoutMs?: number } = {},
): Promise<ShellOutcome[]> {
  const folder = await Deno.makeTempDir({ prefix: "weir_sh_" });
  try {
    await writeShims(join(folder, "bin"));
    for (const name of ["home", "layer", "tmp"]) await Deno.mkdir(join(folder, name));
    const script = join(folder, "run.sh");
    await Deno.writeTextFile(script, scriptOf(blocks));
    await using child = new ChildProcess("unshare", {
      args: [...namespaceArgs() ?? [], "bash", script],
      env: environmentOf(folder),
    });
    return await outcomesOf(child, blocks.map(({ line }) => line), timeoutMs);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function environmentOf(folder: string): Record<string, string> {
  return {
    PATH: [join(folder, "bin"), Deno.env.get("PATH"), "/usr/sbin:/usr/bin:/sbin:/bin"].join(":"),
    HOME: join(folder, "home"),
    TMPDIR: join(folder, "tmp"),
    DENO_DIR: denoFolder(),
    DENO_NO_UPDATE_CHECK: "1",
    NO_COLOR: "1",
    LAYER: join(folder, "layer"),
    ROOT,
    POSTGRES_BIN: dirname(toolPath("postgres") ?? "/"),
    // A busy machine exceeds the usual ones.
    KV_TIMEOUT: "30s",
    MC_TIMEOUT: "30s",
  };
}

/** Marks the begin and the end of each block with a line. */
function scriptOf(blocks: readonly ShellBlock[]): string {
  const runs = blocks.map(({ line, text }) =>
    `block=${line}\nprintf '\\n@begin ${line}\\n'\n${text}\nended 0\n`
  );
  return `exec 2>&1 < /dev/null
${SET_UP} || exit
unset LAYER ROOT
${blocks.some(needsPostgres) ? POSTGRES : ""}
${PATIENT_CURL}
ended() { printf '\\n@end %s %s\\n' "$block" "$1"; }
trap 'code=$?; case $BASH_COMMAND in wait*) ;; *) ended $code; exit $code ;; esac' ERR
${runs.join("")}`;
}

async function outcomesOf(
  child: ChildProcess,
  lines: readonly number[],
  timeoutMs: number,
): Promise<ShellOutcome[]> {
  const outcomes: ShellOutcome[] = [];
  for (const line of lines) {
    const end = performance.now() + timeoutMs;
    let code = exitCodeOf(child, line);
    while (code === undefined && child.running && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      code = exitCodeOf(child, line);
    }
    outcomes.push({ line, code, output: outputOf(child, line) });
    if (code !== 0) break;
  }
  return outcomes;
}

function exitCodeOf({ stdoutLines }: ChildProcess, line: number): number | undefined {
  const [, code] = stdoutLines.join("\n").match(new RegExp(`^@end ${line} (\\d+)$`, "m")) ?? [];
  return code === undefined ? undefined : Number(code);
}

function outputOf({ stdoutLines }: ChildProcess, line: number): string {
  const [, text = ""] = stdoutLines.join("\n").split(`@begin ${line}\n`);
  return (text.split(/^@end /m)[0] ?? "").trim();
}

/** Programs of the examples that are in no folder of the PATH. */
async function writeShims(folder: string): Promise<void> {
  await Deno.mkdir(folder);
  const commands = new Map([
    ["deno", `"${Deno.execPath()}"`],
    ["weir", `"${Deno.execPath()}" run -A "${ROOT}main.ts"`],
    ["npx", NPX],
    ...TOOL_NAMES.filter((name) => name !== "esbuild").flatMap((name) => {
      const path = toolPath(name);
      return path === undefined ? [] : [[name, `"${path}"`] as const];
    }),
  ]);
  for (const [name, command] of commands) {
    await Deno.writeTextFile(join(folder, name), `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 });
  }
}
