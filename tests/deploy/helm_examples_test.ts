import { assert, assertEquals } from "#assert";
import { dirname } from "node:path";
import { runDeployTool, validateManifest } from "../harness/deploy_tools.ts";
import { type Block, readPage } from "../harness/documents.ts";
import { needs, requireTool } from "../harness/tools.ts";

const PATH = "docs/install.md";
const ROOT = new URL("../../", import.meta.url);
const TOOLS = ["helm", "kubectl-validate", "prometheus-operator-crds"] as const;

const { blocks } = readPage(PATH, await Deno.readTextFile(new URL(PATH, ROOT)));
const examples = blocks.flatMap((block, index) =>
  block.marks.includes("on=helm") ? [{ block, next: blocks[index + 1] }] : []
);

for (const { block, next } of examples) {
  const { line, marks } = block;
  Deno.test({
    ...needs(
      TOOLS,
      `${PATH}:${line}: the commands of Helm render objects of Kubernetes, or are refused as it says`,
    ),
    async fn() {
      const { code, stdout, stderr } = await rendered(block);
      if (!marks.includes("refused")) {
        assertEquals([code, stderr], [0, ""]);
        await validateManifest(stdout);
        return;
      }
      const problems = next?.text.trim().split("\n") ?? [];
      assert(problems.length > 1, "a text with the problems follows");
      assertEquals([code, problems.filter((problem) => !stderr.includes(problem))], [1, []], stderr);
    },
  });
}

Deno.test("docs/install.md has examples of Helm", () => {
  assertEquals(examples.length, 4);
});

Deno.test({
  ...needs(["helm"], "chart: Helm packs it with all that it needs"),
  async fn() {
    const folder = await Deno.makeTempDir({ prefix: "weir_chart_" });
    try {
      const { code, text } = await runDeployTool("helm", ["package", "helm", "--destination", folder]);
      const [, path = ""] = /saved it to: (.*)$/m.exec(text) ?? [];
      assertEquals([code, path.startsWith(folder)], [0, true], text);
      const values = ["--values", "helm/examples/memcached.yaml", "--kube-version", "1.30"];
      const packed = await runDeployTool("helm", ["template", "weir", path, ...values]);
      assertEquals(packed, await runDeployTool("helm", ["template", "weir", "helm", ...values]));
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

/** Runs the commands without a cluster: they render what they would install. */
async function rendered({ text }: Block): Promise<{ code: number; stdout: string; stderr: string }> {
  const script = text.replaceAll("helm upgrade --install", "helm template").replaceAll(" --wait", "")
    .replaceAll("helm template", "helm template --kube-version 1.30").replaceAll(/ > \S+/g, "");
  const { PATH } = Deno.env.toObject();
  const { code, stdout, stderr } = await new Deno.Command("sh", {
    args: ["-ec", script],
    cwd: ROOT,
    env: { PATH: `${dirname(requireTool("helm"))}:${PATH}` },
    signal: AbortSignal.timeout(60_000),
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}
