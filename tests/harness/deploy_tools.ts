import { join } from "node:path";
import { toolsFolder } from "./tools.ts";

/**
 * Programs that check files for operators, and where they stand. `compose-go` is the reader of compose files that Docker
 * itself has, `kubectl-validate` has the schemas of Kubernetes within it, and `dockerfile-utils` checks what editors show
 * of a Dockerfile.
 */
const PLACES = {
  "systemd-analyze": ["/usr/bin/systemd-analyze", "/bin/systemd-analyze"],
  "compose-go": [join(toolsFolder(), "compose-go-2.16.2", "cmd")],
  "kubectl-validate": [join(toolsFolder(), "kubectl-validate-0.0.4", "kubectl-validate")],
  "dockerfile-utils": [
    join(toolsFolder(), "dockerfile-utils-0.16.3", "node_modules", ".bin", "dockerfile-utils"),
  ],
} as const;

const FOLDER = new URL("../../config/deploy/", import.meta.url);

/** The name of such a program. */
export type DeployTool = keyof typeof PLACES;

/** How such a program ended, and all that it wrote. */
export interface ToolAnswer {
  readonly code: number;
  readonly text: string;
}

/** Whether such a program is there. */
export function deployToolAvailable(tool: DeployTool): boolean {
  return placeOf(tool) !== undefined;
}

/** Name and switch of a test that needs such a program, as `needs` of the other tools. */
export function needsDeployTool(tool: DeployTool, name: string): { name: string; ignore: boolean } {
  const missing = !deployToolAvailable(tool);
  return { name: missing ? `${name} [needs ${tool}]` : name, ignore: missing };
}

/** Runs such a program to its end, in the folder of those files. */
export async function runDeployTool(tool: DeployTool, args: readonly string[]): Promise<ToolAnswer> {
  const place = placeOf(tool);
  if (place === undefined) throw new Error(`Cannot start "${tool}": it is not installed`);
  const command = new Deno.Command(place, {
    args: [...args],
    stdin: "null",
    signal: AbortSignal.timeout(300_000),
    cwd: FOLDER,
  });
  const { code, stdout, stderr } = await command.output();
  const decoder = new TextDecoder();
  return { code, text: decoder.decode(stdout) + decoder.decode(stderr) };
}

function placeOf(tool: DeployTool): string | undefined {
  return PLACES[tool].find((path) => {
    try {
      return Deno.statSync(path).isFile;
    } catch {
      return false;
    }
  });
}
