import { join } from "node:path";
import { ChildProcess } from "./child_process.ts";
import { chosenReleases, denoFolder, type Tool, TOOL_NAMES, toolsFolder } from "./tool_register.ts";
import { needing, requireTool } from "./tools.ts";
import { runtimeEnvironment } from "./weir_command.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** A release of Deno that runs a program. */
export interface DenoRuntime {
  readonly release: string;
  /** The path of its executable. */
  readonly deno: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Registers a test for each of the chosen releases. */
export function testRuntimes(name: string, run: (runtime: DenoRuntime) => Promise<void>): void {
  for (const release of chosenReleases()) {
    const tool = TOOL_NAMES.find((tool) => tool === `deno-${release}`);
    if (tool !== undefined) {
      needing(tool).test(`Deno ${release}: ${name}`, async () => run(await openRuntime(release, tool)));
    }
  }
}

/** The exit code and the output of a command that a release runs in the root folder. */
export async function runDeno(
  { deno, env }: DenoRuntime,
  args: readonly string[],
): Promise<{ readonly code: number; readonly text: string }> {
  await using child = new ChildProcess(deno, { args, cwd: ROOT, env: { ...runtimeEnvironment(), ...env } });
  const { code } = await child.exited;
  return { code, text: [...child.stdoutLines, ...child.stderrLines].join("\n") };
}

/** Releases would clear each other's caches, so each has its own; packages are the same for all. */
async function openRuntime(release: string, tool: Tool): Promise<DenoRuntime> {
  const folder = join(toolsFolder(), `deno-${release}-cache`);
  const packages = join(denoFolder(), "npm");
  await Deno.mkdir(folder, { recursive: true });
  try {
    await Deno.symlink(packages, join(folder, "npm"));
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
  const env = { DENO_DIR: folder, DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" };
  return { release, deno: requireTool(tool), env };
}
