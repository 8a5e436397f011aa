/** Bundles the library and runs the bundle on Node, with all that Node offers and with web names alone. */
import { assertEquals } from "@std/assert";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { makeCertificates } from "../../harness/certificates.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { needs } from "../../harness/tools.ts";
import { PlatformServer } from "./platform_server.ts";
import { platformSmoke, type SmokePlaces } from "./platform_smoke.ts";

const SMOKE = new URL("platform_smoke.ts", import.meta.url).pathname;
const LIBRARY = new URL("../../../src/rest/mod.ts", import.meta.url).pathname;

const PLAIN = { authorization: null, "content-type": null, "x-api-key": null, "x-trace": null };
const FORMS = [
  ["multipart/form-data; boundary", ["name", "ü"], ["file", "a.txt", "text/plain", "text"]],
  ["application/x-www-form-urlencoded;charset=UTF-8", ["a", "1"], ["a", "2"], ["b", "ü"]],
];
const EXPECTED = {
  methods: ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"].map((method) => [200, method]),
  "headers, query and body": {
    method: "POST",
    search: "?page=1&sort=a+b",
    headers: { ...PLAIN, "content-type": "application/json", "x-trace": "7" },
    body: "ü",
  },
  "bytes both ways": [0, 255, 128, 10],
  "repeated headers and cookies": [["a=1", "b=2"], ["1, 2"]],
  "a status is a result": 404,
  "a status is thrown": ["status"],
  "time of an attempt": ["timeout"],
  "time in total": ["timeout"],
  abort: ["aborted"],
  retry: "the second time",
  "redirect to another origin": { ...PLAIN, "x-trace": "7" },
  "interrupted body": ["body_interrupted"],
  "body too large": ["body_too_large"],
  "streamed answer": [200, "one, two, three"],
  "streamed body": "one, two",
  hooks: [{ ...PLAIN, "x-trace": "from the hook" }, [200]],
  "name that is none": ["network", "dns"],
  "nobody listens": ["network", "connect"],
  "nobody trusts": ["network", "tls"],
  "refused before it is sent": ["invalid_header"],
  "encoded bodies": [
    "gzip",
    "x-gzip",
    "deflate",
    "deflate-raw",
    "br",
    "gzip-gzip",
    "identity",
  ]
    .map((name) => [name, ...Array(3).fill("hello, hello, hello")]).concat([["nothing", "", "", ""]]),
  "a coding next to identity": "hello, hello, hello",
  "a body that is not gzip is not asked for again": [["body_interrupted"], [200]],
  forms: [...FORMS, ...FORMS],
  parameters: "?x=y&a=1&tag=b&tag=a",
  "a length that is wrong": [["invalid_header"], ["invalid_header"]],
  "shared memory": "bytes",
  "nothing given": 404,
  "a key of a hook": "the second time",
  "a location in UTF-8": "/caf%C3%A9?q=%C3%BC",
  "the steps": "nothing here",
  "scripted transport": [["network", "dns"], 201, ["GET", "POST"]],
};

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
