import { assertEquals } from "#assert";
import { join } from "node:path";
import { ChildProcess } from "../../harness/child_process.ts";
import { freePort } from "../../harness/free_port.ts";
import { eventually, until } from "../../harness/until.ts";

const ROOT = new URL("../../..", import.meta.url).pathname;
/** The first start downloads; a registry may be slow. */
const DEADLINE_MS = 120_000;

/** The first command of the README, and of the page about the installation, without `npx -y deno@VERSION`. */
async function firstCommands(): Promise<string[][]> {
  const texts = await Promise.all(
    ["README.md", "docs/install.md"].map((path) => Deno.readTextFile(join(ROOT, path))),
  );
  return texts.map((text) => (/^npx -y deno@\S+ (\S[^#\n]*)/m.exec(text)?.[1] ?? "").trim().split(/\s+/));
}

/** Name and version of each package in a folder for `DENO_DIR`. */
async function downloaded(folder: string): Promise<string[]> {
  const found: string[] = [];
  const visit = async (path: string, name: string): Promise<void> => {
    for await (const entry of Deno.readDir(path)) {
      if (!entry.isDirectory) continue;
      if (/^\d+\.\d+\.\d+/.test(entry.name)) found.push(`${name}@${entry.name}`);
      else await visit(join(path, entry.name), name === "" ? entry.name : `${name}/${entry.name}`);
    }
  };
  for await (const registry of Deno.readDir(join(folder, "npm"))) {
    await visit(join(folder, "npm", registry.name), "");
  }
  return found.sort();
}

Deno.test("the first command downloads only the packages that the service needs", async () => {
  const [args = [], other] = await firstCommands();
  assertEquals(other, args);
  const folder = await Deno.makeTempDir({ prefix: "weir_" });
  const port = `${freePort()}`;
  const env = {
    ...Deno.env.toObject(),
    DENO_DIR: `${folder}/deno`,
    KV_URL: "",
    BACKEND_TYPE: "",
    ADMIN_TOKEN: "a-token-of-the-administration-for-tests",
    WEBHOOK_STORE: `${folder}/weir.db`,
    PORT: port,
    GRPC_PORT: `${freePort()}`,
    DEBUG_PORT: `${freePort()}`,
  };
  try {
    await using started = new ChildProcess(Deno.execPath(), { args, cwd: ROOT, env });
    const options = { deadlineMs: DEADLINE_MS };
    await until("the service to be ready", () => started.stdoutLines.includes("Weir is ready."), options);
    const entries = [{ key: "account", value: crypto.randomUUID() }];
    const body = JSON.stringify({ domain: "shop", descriptors: [{ entries }] });
    const statuses: number[] = [];
    for (let call = 0; call < 6; call++) {
      const response = await fetch(`http://127.0.0.1:${port}/json`, { method: "POST", body });
      statuses.push(response.status);
      await response.body?.cancel();
    }
    assertEquals(statuses, [200, 200, 200, 200, 200, 429]);
    const { imports } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
    const needed = ["ipaddr.js", "yaml"].map((name) => String(imports[name]).replace("npm:", ""));
    // The dispatcher of webhooks loads its own after the start.
    await eventually(needed, () => downloaded(env.DENO_DIR), { deadlineMs: DEADLINE_MS });
    await started.stop();
    assertEquals(await downloaded(env.DENO_DIR), needed);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
