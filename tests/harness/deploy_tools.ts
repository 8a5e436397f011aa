import { parseAllDocuments } from "yaml";
import { assertEquals } from "./assert.ts";
import type { Tree } from "./deploy_files.ts";
import { requireTool } from "./tools.ts";
import type { Tool } from "./tool_register.ts";

/** Releases of Kubernetes whose schemas the tool has: the oldest that the manifests are for, and its newest. */
const RELEASES = ["1.27", "1.30"] as const;
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

/** The manifest that Helm renders from an example of the chart, with further values, such as `redis.enabled=true`. */
export async function renderChart(
  example: string,
  values: readonly string[] = [],
  release = "weir",
): Promise<string> {
  const file = `helm/examples/${example}.yaml`;
  const args = [
    "--kube-version",
    RELEASES[0],
    "--values",
    file,
    ...values.flatMap((value) => ["--set", value]),
  ];
  const { code, text } = await runDeployTool("helm", ["template", release, "helm", ...args]);
  if (code !== 0) throw new Error(text);
  return text;
}

/** The objects that Helm renders from an example of the chart. */
export async function chartObjects(
  example: string,
  values: readonly string[] = [],
): Promise<Map<string, Tree>> {
  return manifestObjects(await renderChart(example, values));
}

/** Throws for a manifest with an object that is not one of Kubernetes or of the Prometheus operator, to its last field. */
export async function validateManifest(manifest: string): Promise<void> {
  const path = await Deno.makeTempFile({ prefix: "weir_manifest_", suffix: ".yaml" });
  try {
    await Deno.writeTextFile(path, manifest);
    const crds = requireTool("prometheus-operator-crds");
    for (const release of RELEASES) {
      const args = [path, "--version", release, "--local-crds", crds];
      const { code, text } = await runDeployTool("kubectl-validate", args);
      assertEquals([code, /error/i.test(text), text.includes("OK")], [0, false, true], release + text);
    }
  } finally {
    await Deno.remove(path);
  }
}

/**
 * The objects of a manifest, read as Kubernetes reads YAML, with 0440 in octal. Each by its kind and its name without the
 * hash of its content, such as `Service weir`.
 */
export function manifestObjects(manifest: string): Map<string, Tree> {
  return new Map(
    parseAllDocuments(manifest, { version: "1.1" }).map((document) => {
      const object = document.toJS();
      return [`${object.kind} ${object.metadata.name.replace(/-[a-z0-9]{10}$/, "")}`, object];
    }),
  );
}
