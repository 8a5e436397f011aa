import { requireTool } from "./tools.ts";
import type { Tool } from "./tool_register.ts";

const FOLDER = new URL("../../config/deploy/", import.meta.url);

/** How a program that checks files for operators ended, and all that it wrote. */
export interface ToolAnswer {
  readonly code: number;
  readonly text: string;
}

/** Runs such a program to its end, in the folder of those files. */
export async function runDeployTool(tool: Tool, args: readonly string[]): Promise<ToolAnswer> {
  const command = new Deno.Command(requireTool(tool), {
    args: [...args],
    stdin: "null",
    signal: AbortSignal.timeout(300_000),
    cwd: FOLDER,
  });
  const { code, stdout, stderr } = await command.output();
  const decoder = new TextDecoder();
  return { code, text: decoder.decode(stdout) + decoder.decode(stderr) };
}
