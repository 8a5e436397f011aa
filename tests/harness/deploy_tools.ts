import { parseAllDocuments } from "yaml";
import type { Tree } from "./deploy_files.ts";
import { requireTool } from "./tools.ts";
import type { Tool } from "./tool_register.ts";

const FOLDER = new URL("../../config/deploy/", import.meta.url);

/** Exit code and output of a program that checks files for operators. */
interface ToolAnswer {
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

/** The manifest that kustomize builds from a folder of `config/deploy/kubernetes`. */
export async function renderedManifest(folder: string): Promise<string> {
  const { code, text } = await runDeployTool("kustomize", ["build", `kubernetes/${folder}`]);
  if (code !== 0) throw new Error(text);
  return text;
}

/** The objects of a manifest, each by its kind and its name without the hash of its content, such as `Service weir`. */
export function manifestObjects(manifest: string): Map<string, Tree> {
  return new Map(
    parseAllDocuments(manifest).map((document) => {
      const object = document.toJS();
      return [`${object.kind} ${object.metadata.name.replace(/-[a-z0-9]{10}$/, "")}`, object];
    }),
  );
}
