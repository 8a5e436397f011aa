import { assertEquals } from "#assert";
import { join } from "node:path";
import ts from "typescript";
import { runToEnd } from "../../scripts/compile/failure.ts";
import { packNpm } from "../../scripts/release/npm_packages.ts";
import { needs } from "../harness/tools.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const VERSION = "9.8.7";

/** Runs on Node, as a test of a project that depends on both packages. */
const NODE_TEST = `
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Get, RestError, send } from "@weir/rest";
import { ScriptedTransport } from "@weir/rest/testing";
import { verify } from "@weir/webhooks";

test("a request is sent, and a body that is too large is refused", async () => {
  const server = createServer((request, response) => response.end(JSON.stringify({ path: request.url })));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseURL = "http://127.0.0.1:" + server.address().port + "/items";
  const response = await send({ method: Get, baseURL, queryParams: { page: "2" } });
  assert.deepEqual([response.statusCode, response.json()], [200, { path: "/items?page=2" }]);
  const refused = await send({ method: Get, baseURL }, { maxResponseBytes: 1 }).catch((error) => error);
  assert.deepEqual([refused instanceof RestError, refused.code], [true, "body_too_large"]);
  server.close();
  server.closeAllConnections();
  assert.equal(typeof ScriptedTransport, "function");
});

test("a signature is verified, and another body is refused", async () => {
  const request = {
    headers: {
      "x-svc-delivery": "3b241101-e2bb-4255-8caf-4136c566a962",
      "x-svc-timestamp": "1700000000",
      "x-svc-signature": "sha256=2e5b4e08497b89bf7f980a626f21507bb74b48b242847c4dcb5e80dbcf56e7c8",
    },
    secrets: ["whsec_bmV3", "whsec_c2VjcmV0"],
    now: 1700000010000,
  };
  const body = '{"event":"agent.reply.completed","data":{}}';
  assert.equal((await verify({ ...request, body })).ok, true);
  assert.equal((await verify({ ...request, body: body + " " })).reason, "wrong_signature");
});
`;
/** Uses the types of both packages, and what they refuse. */
const TYPED = `
import { Client, Get, type Response, RestError } from "@weir/rest";
import { ScriptedTransport } from "@weir/rest/testing";
import { verify, type VerifyResult } from "@weir/webhooks";

const client = new Client({ timeoutMs: 1000, retry: { attempts: 3 } });
export const response: Response = await client.send({ method: Get, baseURL: "https://api.example.com" });
export const item = response.json<{ id: number }>().id.toFixed();
export const code = (error: unknown): string => error instanceof RestError ? error.code : "";
export const transport: typeof fetch = new ScriptedTransport([]).fetch;
export const result: VerifyResult = await verify({ body: "{}", headers: {}, secrets: ["whsec_bmV3"] });
export const reason: string = result.ok ? "" : result.reason;
// @ts-expect-error: a method is required
export const refused = client.send({ baseURL: "https://api.example.com" });
// @ts-expect-error: secrets are a list
export const wrong = verify({ body: "{}", headers: {}, secrets: "whsec_bmV3" });
`;

Deno.test({
  ...needs(["esbuild"], "npm packages: a project of Node installs, imports and type-checks both"),
  async fn() {
    const folder = await Deno.makeTempDir({ prefix: "weir_npm_" });
    try {
      const archives = await packNpm({ root: ROOT, version: VERSION, output: folder });
      assertEquals(archives, [`weir-rest-${VERSION}.tgz`, `weir-webhooks-${VERSION}.tgz`]);
      await Deno.writeTextFile(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
      const install = [
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        ...archives.map((name) => `./${name}`),
      ];
      assertEquals(await endOf("npm", install, folder), [0, ""]);
      await Deno.writeTextFile(join(folder, "packages.test.js"), NODE_TEST);
      assertEquals(await endOf("node", ["--test", "packages.test.js"], folder), [0, ""]);
      for (const moduleResolution of [ts.ModuleResolutionKind.NodeNext, ts.ModuleResolutionKind.Bundler]) {
        assertEquals(await typeErrors(folder, moduleResolution), []);
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

/** Exit code and, of a program that fails, the output. */
async function endOf(command: string, args: readonly string[], cwd: string): Promise<[number, string]> {
  const { code, stdout, stderr } = await runToEnd(command, args, {
    cwd,
    signal: AbortSignal.timeout(120_000),
  });
  return [code, code === 0 ? "" : stdout + stderr];
}

/** The findings of the TypeScript compiler in a module of the project. */
async function typeErrors(folder: string, moduleResolution: ts.ModuleResolutionKind): Promise<string[]> {
  const path = join(folder, "typed.ts");
  await Deno.writeTextFile(path, TYPED);
  const isNode = moduleResolution === ts.ModuleResolutionKind.NodeNext;
  const program = ts.createProgram([path], {
    lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
    module: isNode ? ts.ModuleKind.NodeNext : ts.ModuleKind.ESNext,
    moduleResolution,
    noEmit: true,
    strict: true,
    target: ts.ScriptTarget.ES2022,
    types: [],
  });
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText }) =>
    `${file?.fileName.slice(folder.length) ?? ""}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`
  );
}
