/** What a program prints that ends with an error of the library. */
import { assertEquals, assertMatch } from "@std/assert";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ChildProcess } from "../../harness/child_process.ts";
import { closedPort, SECRET, secretRequest } from "../../harness/rest_fixture.ts";

const LIBRARY = new URL("../../../src/rest/mod.ts", import.meta.url);

/** Programs that end with an error: nobody catches it, or it is printed, or it is the cause of another one. */
const ENDS = [
  "await send(request);",
  "await send(request).catch((cause) => { throw new Error('outer', { cause }); });",
  "send(request).catch((error) => console.error({ list: [error] }, JSON.stringify(error), String(error)));",
  "void Promise.all([send(request)]);",
];

function programs(library: string): readonly string[] {
  const request = JSON.stringify(secretRequest(`http://127.0.0.1:${closedPort()}`));
  return ENDS.map((end) =>
    `import { send } from ${JSON.stringify(library)}; \nconst request = ${request};\n${end}`
  );
}

async function assertPrintsNoSecret(command: string, args: readonly string[]): Promise<void> {
  await using child = new ChildProcess(command, { args });
  await child.exited;
  const text = [...child.stdoutLines, ...child.stderrLines].join("\n");
  assertMatch(text, /RestError: Cannot send POST "http:\/\/127\.0\.0\.1:\d+\/a": cannot connect to the host/);
  assertEquals(text.includes(SECRET), false, text);
}

Deno.test("an error that ends a program of Deno shows no secret", async () => {
  await inFiles(programs(LIBRARY.href), async (file) => {
    await assertPrintsNoSecret(Deno.execPath(), ["run", "--no-check", "--allow-net", file]);
  });
});

Deno.test({
  name: "an error that ends a program of Node shows no secret",
  ignore: !await hasNode(),
  async fn() {
    const folder = await Deno.makeTempDir({ prefix: "weir_" });
    try {
      const path = join(folder, "library.mjs");
      const args = ["bundle", "--quiet", "--platform", "browser", "--output", path, LIBRARY.pathname];
      await using bundling = new ChildProcess(Deno.execPath(), { args });
      assertEquals((await bundling.exited).code, 0, bundling.stderrLines.join("\n"));
      await inFiles(programs(pathToFileURL(path).href), async (file) => {
        await assertPrintsNoSecret("node", [file]);
      });
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

/** Runs something with each text in a file of its own. */
async function inFiles(texts: readonly string[], run: (file: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "weir_" });
  try {
    await Promise.all(texts.map(async (text, index) => {
      const file = join(folder, `${index}.mjs`);
      await Deno.writeTextFile(file, text);
      await run(file);
    }));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function hasNode(): Promise<boolean> {
  try {
    const { stdout } = await new Deno.Command("node", { args: ["--version"], stderr: "null" }).output();
    return Number(/^v(\d+)/.exec(new TextDecoder().decode(stdout))?.[1] ?? 0) >= 20;
  } catch {
    return false;
  }
}
