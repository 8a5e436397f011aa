/** Runs the recipes for receivers in the README: blocks marked `receiver=NAME`, with a caller around each. */
import { assert, assertEquals } from "@std/assert";
import { join } from "node:path";
import { signature } from "../../../src/webhooks/model/signature.ts";
import { needs, requireTool } from "../../harness/tools.ts";

const README = await Deno.readTextFile(new URL("../../../README.md", import.meta.url));
const SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
const BODY = '{"event":"agent.reply.completed","data":{"text":"grüße","total":12345678901234567890}}';
/** Age of the timestamp in seconds, what is done to the request, and whether it is to be accepted. */
const CASES:
  readonly (readonly [ageSeconds: number, change: "none" | "body" | "signature" | "missing", boolean])[] = [
    [0, "none", true],
    [200, "none", true],
    [-200, "none", true],
    [400, "none", false],
    [-400, "none", false],
    [0, "body", false],
    [0, "signature", false],
    [0, "missing", false],
  ];

/** How a recipe is run: its file around the recipe, and the program. */
interface Runner {
  readonly file: string;
  readonly text: (recipe: string) => string;
  readonly command: (file: string) => readonly [program: string, ...args: string[]];
  /** Puts what the recipe imports into its folder, in which a clone of Weir stands as `weir`. */
  readonly prepare?: (folder: string) => Promise<void>;
}

const NODE_CALLER = `
      const { body, headers, secret } = JSON.parse(process.argv[2]);
      process.exit(await accept(Buffer.from(body), headers, secret) ? 0 : 7);`;

const RUNNERS: Readonly<Record<"deno" | "kit" | "node" | "python" | "go", Runner>> = {
  deno: {
    file: "recipe.ts",
    text: (recipe) =>
      `${recipe}
      const { body, headers, secret } = JSON.parse(Deno.args[0] ?? "");
      Deno.exit(await accept(new TextEncoder().encode(body), new Headers(headers), secret) ? 0 : 7);`,
    command: (file) => [Deno.execPath(), "run", "--check", "--allow-read", "--no-lock", file],
  },
  kit: {
    file: "recipe.mjs",
    text: (recipe) => recipe + NODE_CALLER,
    command: (file) => ["node", file],
    prepare: async (folder) => {
      const [, ...args] = blockOf("kit=node").trim().split(" ");
      const { code, text } = await run([Deno.execPath(), ...args], { cwd: folder });
      assertEquals(code, 0, text);
    },
  },
  node: {
    file: "recipe.mjs",
    text: (recipe) => recipe + NODE_CALLER,
    command: (file) => ["node", file],
  },
  python: {
    file: "recipe.py",
    text: (recipe) =>
      `${recipe}
import json, sys
given = json.loads(sys.argv[1])
sys.exit(0 if accept(given["body"].encode(), given["headers"], given["secret"]) else 7)
`,
    command: (file) => ["python3", file],
  },
  go: {
    file: "recipe.go",
    text: (recipe) =>
      `package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"time"
)

${recipe}
func main() {
	var given struct {
		Body, Secret string
		Headers      map[string]string
	}
	if json.Unmarshal([]byte(os.Args[1]), &given) != nil {
		os.Exit(3)
	}
	headers := http.Header{}
	for name, value := range given.Headers {
		headers.Set(name, value)
	}
	if !accept([]byte(given.Body), headers, given.Secret) {
		os.Exit(7)
	}
}
`,
    command: (file) => [file.replace(/\.go$/, "")],
  },
};

for (const [name, runner] of Object.entries(RUNNERS)) {
  Deno.test({
    ...programTest(
      name === "deno" ? undefined : { kit: "node", python: "python3" }[name] ?? name,
      `the recipe for ${name}`,
    ),
    async fn() {
      const folder = await Deno.makeTempDir({ prefix: "weir_recipe_" });
      try {
        const file = join(folder, runner.file);
        await Deno.writeTextFile(file, runner.text(recipeOf(name)));
        await Deno.symlink(new URL("../../../", import.meta.url).pathname, join(folder, "weir"));
        await runner.prepare?.(folder);
        if (name === "go") {
          const built = await run(["go", "build", "-o", file.replace(/\.go$/, ""), file]);
          assertEquals([built.code, built.text], [0, ""]);
        }
        for (const [age, change, isRight] of CASES) {
          const { code, text } = await run([
            ...runner.command(file),
            JSON.stringify(await requestOf(age, change)),
          ]);
          assertEquals(code, isRight ? 0 : 7, `${age} s, ${change}: ${text}`);
        }
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    },
  });
}

Deno.test({
  ...needs(["openssl"], "the recipe for openssl"),
  async fn() {
    const folder = await Deno.makeTempDir({ prefix: "weir_recipe_" });
    try {
      await Deno.writeTextFile(join(folder, "body.json"), BODY);
      const line = recipeOf("openssl").replace("openssl", requireTool("openssl"));
      const { text } = await run(["sh", "-c", line], { cwd: folder, env: { SECRET } });
      const wanted = (await signature(SECRET, new TextEncoder().encode(BODY))).replace("sha256=", "");
      assert(text.trim().endsWith(`= ${wanted}`), text);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

async function requestOf(ageSeconds: number, change: "none" | "body" | "signature" | "missing") {
  const signed = await signature(SECRET, new TextEncoder().encode(BODY));
  const timestamp = `${Math.floor(Date.now() / 1_000) - ageSeconds}`;
  const headers: Record<string, string> = { "x-svc-timestamp": timestamp };
  if (change !== "missing") {
    headers["x-svc-signature"] = change === "signature" ? `${signed.slice(0, -1)}x` : signed;
  }
  return { body: change === "body" ? `${BODY} ` : BODY, headers, secret: SECRET };
}

function recipeOf(name: string): string {
  return blockOf(`receiver=${name}`);
}

function blockOf(mark: string): string {
  const found = new RegExp(`^\`\`\`\\w+ ${mark}\\n([^]*?)^\`\`\`$`, "m").exec(README)?.[1];
  assert(found !== undefined, `the README has no block ${mark}`);
  return found;
}

/** A test that is skipped, with the reason in its name, where a program is not there. */
function programTest(
  program: string | undefined,
  name: string,
): { readonly name: string; readonly ignore: boolean } {
  if (program === undefined || hasProgram(program)) return { name, ignore: false };
  return { name: `${name} [needs ${program}]`, ignore: true };
}

function hasProgram(program: string): boolean {
  try {
    return new Deno.Command("sh", { args: ["-c", `command -v ${program}`], stdout: "null" }).outputSync()
      .success;
  } catch {
    return false;
  }
}

async function run(
  [program, ...args]: readonly [string, ...string[]] | readonly string[],
  options: { readonly cwd?: string; readonly env?: Record<string, string> } = {},
): Promise<{ readonly code: number; readonly text: string }> {
  const { code, stdout, stderr } = await new Deno.Command(program ?? "", { args, stdin: "null", ...options })
    .output();
  return { code, text: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
}
