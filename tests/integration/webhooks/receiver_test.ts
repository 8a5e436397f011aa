import { assertEquals } from "#assert";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ChildProcess } from "../../harness/child_process.ts";
import { RECEIVER_CASES } from "../../harness/receiver_cases.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;
const KIT = "src/webhooks/receiver.ts";
const CASES = "tests/harness/receiver_cases.ts";

Deno.test({
  ...needsNode("the bundled kit does the same on Node, with names of the web alone"),
  async fn() {
    const folder = await Deno.makeTempDir({ prefix: "weir_" });
    try {
      const path = join(folder, "bundle.mjs");
      const bundled = await run(Deno.execPath(), [
        ...["bundle", "--quiet", "--platform", "browser", "--output", path, CASES],
      ]);
      assertEquals(bundled.stderr, []);
      const flags = ["--experimental-vm-modules", "--no-warnings", "--input-type=module", "--eval"];
      const { stdout, stderr } = await run("node", [...flags, AMONG_WEB_NAMES, pathToFileURL(path).href]);
      const expected = RECEIVER_CASES.map(({ expected }) => expected);
      assertEquals([JSON.parse(stdout.join("") || "null"), stderr], [expected, []]);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

/** Runs the bundle where only names of the web exist. The classes of the language are those of its Web Crypto. */
const AMONG_WEB_NAMES = `
  import { readFile } from "node:fs/promises";
  import { createContext, SourceTextModule } from "node:vm";
  const names = ["Headers", "TextEncoder", "crypto", "atob", "btoa", "Uint8Array", "ArrayBuffer"];
  const context = createContext(Object.fromEntries(names.map((name) => [name, globalThis[name]])));
  const module = new SourceTextModule(await readFile(new URL(process.argv[1]), "utf8"), { context });
  await module.link((name) => { throw new Error("the bundle imports " + name); });
  await module.evaluate();
  console.log(JSON.stringify(await module.namespace.receiverResults()));
`;

Deno.test("the documentation of the kit passes the linter", async () => {
  const { stderr } = await run(Deno.execPath(), ["doc", "--lint", KIT]);
  assertEquals(stderr, ["Checked 1 file"]);
});

Deno.test("the kit exports what its users name", async () => {
  const { stdout } = await run(Deno.execPath(), ["doc", "--json", KIT]);
  const { nodes } = JSON.parse(stdout.join("\n")) as {
    nodes: Record<string, { module_doc?: { doc?: string }; symbols: { name: string }[] }>;
  };
  const [kit] = Object.values(nodes);
  const names = kit?.symbols.map(({ name }) => name).toSorted();
  assertEquals(names, ["RefusalReason", "VerifyOptions", "VerifyResult", "WebhookHeaders", "verify"]);
  assertEquals(kit?.module_doc?.doc?.startsWith("The receiver's side of webhooks"), true);
});

async function run(
  command: string,
  args: readonly string[],
): Promise<{ readonly stdout: readonly string[]; readonly stderr: readonly string[] }> {
  const env = { ...Deno.env.toObject(), NO_COLOR: "1" };
  await using child = new ChildProcess(command, { args, cwd: ROOT, env });
  const { code } = await child.exited;
  if (code !== 0) throw new Error(`Cannot run ${command} ${args[0]}: ${child.stderrLines.join("\n")}`);
  return { stdout: child.stdoutLines, stderr: child.stderrLines };
}

/** Name and switch of a test that needs the version of Node from which the kit runs. */
function needsNode(name: string): { name: string; ignore: boolean } {
  const isThere = nodeVersion() >= 20;
  return { name: isThere ? name : `${name} [needs node 20]`, ignore: !isThere };
}

/** The first number of its version; 0 where it is not installed. */
function nodeVersion(): number {
  try {
    const { stdout } = new Deno.Command("node", { args: ["--version"], stderr: "null" }).outputSync();
    return Number(/^v(\d+)/.exec(new TextDecoder().decode(stdout))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
