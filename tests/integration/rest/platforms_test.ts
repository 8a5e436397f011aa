/** Bundles the library and runs the bundle on Node, with all that Node offers and with web names alone. */
import { assertEquals, assertMatch } from "#assert";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { freePort } from "../../harness/free_port.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { SECRET, secretRequest } from "../../harness/rest_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { PlatformServer } from "./platform_server.ts";
import { EXPECTED, platformSmoke, type SmokePlaces } from "./platform_smoke.ts";

const SMOKE = new URL("platform_smoke.ts", import.meta.url).pathname;
const LIBRARY = new URL("../../../src/rest/mod.ts", import.meta.url).pathname;

/** Runs the bundle as any module of Node. */
const AS_MODULE = `
  const [path, places] = process.argv.slice(1);
  const { platformSmoke } = await import(path);
  console.log(JSON.stringify(await platformSmoke(JSON.parse(places))));
`;

/** Runs the bundle where only names of the web exist. The classes of the language are those of its fetch. */
const AMONG_WEB_NAMES = `
  import { readFile } from "node:fs/promises";
  import { createContext, SourceTextModule } from "node:vm";
  const [path, places] = process.argv.slice(1);
  const names = ["AbortController", "AbortSignal", "Blob", "DOMException", "FormData", "Headers", "ReadableStream", "Request",
    "Response", "TextDecoder", "TextEncoder", "URL", "URLSearchParams", "clearTimeout", "fetch", "performance",
    "setTimeout", "AggregateError", "Error", "TypeError", "Uint8Array"];
  const context = createContext(Object.fromEntries(names.map((name) => [name, globalThis[name]])));
  const module = new SourceTextModule(await readFile(new URL(path), "utf8"), { context });
  await module.link((name) => { throw new Error("the bundle imports " + name); });
  await module.evaluate();
  console.log(JSON.stringify(await module.namespace.platformSmoke(JSON.parse(places))));
`;

Deno.test({
  ...needs(["openssl"], "the library does on Deno what it is to do on every platform"),
  async fn() {
    await using certificates = await makeCertificates();
    await using server = await PlatformServer.start(certificates);
    assertEquals(await platformSmoke(server.places), EXPECTED);
  },
});

for (
  const [name, program] of [
    ["the bundled library does the same on Node", AS_MODULE],
    ["the bundled library needs no names but those of the web", AMONG_WEB_NAMES],
  ] as const
) {
  Deno.test({
    ...needsNode(name),
    async fn() {
      await using certificates = await makeCertificates();
      await using server = await PlatformServer.start(certificates);
      await using bundle = await Bundle.of(SMOKE);
      assertEquals(await onNode(program, bundle.path, server.places), EXPECTED);
    },
  });
}

Deno.test("the bundled library imports nothing and names no module of a platform", async () => {
  await using bundle = await Bundle.of(LIBRARY);
  const text = await Deno.readTextFile(bundle.path);
  const lines = text.split("\n").filter((line) => !line.trimStart().startsWith("//"));
  const found = lines.filter((line) =>
    /\bimport\b|\brequire\b|node:[a-z]|\bprocess\.|\bDeno\.(?!customInspect")/.test(line)
  );
  assertEquals([text.includes("RestError"), found], [true, []]);
});

/** Programs that end with an error: it is uncaught, or printed, or it is the cause of another one. */
const ENDS = [
  "await send(request);",
  "await send(request).catch((cause) => { throw new Error('outer', { cause }); });",
  "send(request).catch((error) => console.error({ list: [error] }, JSON.stringify(error), String(error)));",
  "void Promise.all([send(request)]);",
];

function programs(library: string): readonly string[] {
  const request = JSON.stringify(secretRequest(`http://127.0.0.1:${freePort()}`));
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
  await inFiles(programs(pathToFileURL(LIBRARY).href), async (file) => {
    await assertPrintsNoSecret(Deno.execPath(), ["run", "--no-check", "--allow-net", file]);
  });
});

Deno.test({
  ...needsNode("an error that ends a program of Node shows no secret"),
  async fn() {
    await using bundle = await Bundle.of(LIBRARY);
    await inFiles(programs(pathToFileURL(bundle.path).href), async (file) => {
      await assertPrintsNoSecret("node", [file]);
    });
  },
});

/** Runs something with each text in its own file. */
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

/** One file that holds a module and all that it imports. */
class Bundle implements AsyncDisposable {
  readonly path: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.path = join(folder, "bundle.mjs");
  }

  static async of(entry: string): Promise<Bundle> {
    const bundle = new Bundle(await Deno.makeTempDir({ prefix: "weir_" }));
    const args = ["bundle", "--quiet", "--platform", "browser", "--output", bundle.path, entry];
    await using child = new ChildProcess(Deno.execPath(), { args });
    const { code } = await child.exited;
    if (code === 0) return bundle;
    await bundle[Symbol.asyncDispose]();
    throw new Error(`Cannot bundle "${entry}": ${child.stderrLines.join("\n")}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.#folder, { recursive: true });
  }
}

async function onNode(program: string, path: string, places: SmokePlaces): Promise<unknown> {
  const flags = ["--experimental-vm-modules", "--no-warnings", "--input-type=module", "--eval", program];
  const args = [...flags, pathToFileURL(path).href, JSON.stringify(places)];
  await using node = new ChildProcess("node", { args });
  const { code } = await node.exited;
  if (code !== 0) throw new Error(`Cannot run the bundle on Node: ${node.stderrLines.join("\n")}`);
  return JSON.parse(node.stdoutLines.join("\n"));
}

/** As `needs`, for the version of Node from which the library runs. */
function needsNode(name: string): { name: string; ignore: boolean } {
  const { ignore, ...named } = needs(["openssl"], name);
  if (ignore || nodeVersion() >= 20) return { ...named, ignore };
  return { name: `${name} [needs node 20]`, ignore: true };
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
