/** Runs the recipes of docs/webhooks/receiving.md: blocks marked `receiver=NAME`, and `receiver.py`, each with a caller. */
import { assert, assertEquals } from "#assert";
import { join } from "node:path";
import { signature, standardWebhooksHeaders } from "../../../src/webhooks/model/signature.ts";

const ROOT = new URL("../../../", import.meta.url);
const PAGE = await Deno.readTextFile(new URL("docs/webhooks/receiving.md", ROOT));
const SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
const BODY = '{"event":"agent.reply.completed","data":{"text":"grüße","total":12345678901234567890}}';
/** Another secret of the endpoint: the request may be signed with either during a rotation. */
const OTHER_SECRET = "whsec_OTg3NjU0MzIxMDk4NzY1NDMyMTA5ODc2NTQzMjEwOTg=";
/** Age of the timestamp in seconds, the change of the request, and whether it is accepted. */
const CASES: readonly (readonly [ageSeconds: number, change: Change, boolean])[] = [
  [0, "none", true],
  [200, "none", true],
  [-200, "none", true],
  [400, "none", false],
  [-400, "none", false],
  [0, "body", false],
  [0, "signature", false],
  [0, "missing", false],
  [0, "secret", false],
  [0, "second signature", true],
  [0, "400 digits", false],
  [0, "5000 digits", false],
  [400, "later time", false],
];

type Change =
  | "none"
  | "body"
  | "signature"
  | "missing"
  | "secret"
  | "second signature"
  | "later time"
  | `${number} digits`;

/** A way to run a recipe. */
interface Runner {
  /** The program that it needs; none but Deno when absent. */
  readonly needs?: string;
  readonly file: string;
  /** True if the recipe verifies the signature of the body alone, so that it cannot see a later time. */
  readonly isTimeUnsigned?: boolean;
  readonly text: (recipe: string) => string;
  readonly command: (file: string) => readonly [program: string, ...args: string[]];
  /** Creates what the recipe needs in its folder, in which `weir` and `src` are those of a clone. */
  readonly prepare?: (folder: string, file: string) => Promise<void>;
}

const NODE_CALLER = `
      const { body, headers, secrets } = JSON.parse(process.argv[2]);
      process.exit(await accept(Buffer.from(body), headers, secrets) ? 0 : 7);`;

const DENO_COMMAND: Runner["command"] = (
  file,
) => [Deno.execPath(), "run", "--check", "--allow-read", "--no-lock", file];

const PYTHON: Runner = {
  needs: "python3",
  file: "recipe.py",
  text: (recipe) =>
    `${recipe}
import json, sys
given = json.loads(sys.argv[1])
sys.exit(0 if accept(given["body"].encode(), given["headers"], given["secrets"]) else 7)
`,
  command: (file) => ["python3", file],
};

const RUNNERS: Readonly<Record<"deno" | "standard" | "kit" | "node" | "file" | "python" | "go", Runner>> = {
  deno: {
    file: "recipe.ts",
    text: (recipe) =>
      `${recipe}
      const { body, headers, secrets } = JSON.parse(Deno.args[0] ?? "");
      Deno.exit(await accept(new TextEncoder().encode(body), new Headers(headers), secrets) ? 0 : 7);`,
    command: DENO_COMMAND,
  },
  standard: {
    file: "recipe.ts",
    text: (recipe) =>
      `${recipe}
      const { body, headers, secrets } = JSON.parse(Deno.args[0] ?? "");
      Deno.exit(accept(body, headers, secrets) ? 0 : 7);`,
    command: DENO_COMMAND,
  },
  kit: {
    needs: "node",
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
    needs: "node",
    file: "recipe.mjs",
    text: (recipe) => recipe + NODE_CALLER,
    command: (file) => ["node", file],
  },
  file: PYTHON,
  python: { ...PYTHON, isTimeUnsigned: true },
  go: {
    needs: "go",
    file: "recipe.go",
    text: (recipe) =>
      `package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

${recipe}
func main() {
	var given struct {
		Body    string
		Secrets []string
		Headers map[string]string
	}
	if json.Unmarshal([]byte(os.Args[1]), &given) != nil {
		os.Exit(3)
	}
	headers := http.Header{}
	for name, value := range given.Headers {
		headers.Set(name, value)
	}
	if !accept([]byte(given.Body), headers, given.Secrets) {
		os.Exit(7)
	}
}
`,
    command: (file) => [file.replace(/\.go$/, "")],
    prepare: async (_, file) => {
      const built = await run(["go", "build", "-o", file.replace(/\.go$/, ""), file]);
      assertEquals([built.code, built.text], [0, ""]);
    },
  },
};

for (const [name, runner] of Object.entries(RUNNERS)) {
  Deno.test({
    ...programTest(runner.needs, `the recipe for ${name}`),
    async fn() {
      const folder = await Deno.makeTempDir({ prefix: "weir_recipe_" });
      try {
        const file = join(folder, runner.file);
        await Deno.writeTextFile(file, runner.text(name === "file" ? fileRecipe() : recipeOf(name)));
        await Deno.symlink(ROOT.pathname, join(folder, "weir"));
        await Deno.symlink(new URL("src/", ROOT).pathname, join(folder, "src"));
        await runner.prepare?.(folder, file);
        for (const [age, change, isAccepted] of CASES) {
          const request = JSON.stringify(await requestOf(age, change));
          const { code, text } = await run([...runner.command(file), request]);
          const isUnseen = change === "later time" && runner.isTimeUnsigned === true;
          assertEquals(code, isAccepted || isUnseen ? 0 : 7, `${age} s, ${change}: ${text}`);
        }
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    },
  });
}

async function requestOf(ageSeconds: number, change: Change) {
  const bytes = new TextEncoder().encode(BODY);
  const timestampSeconds = Math.floor(Date.now() / 1_000) - ageSeconds;
  const standard = {
    id: "3b241101-e2bb-4255-8caf-4136c566a962",
    timestampSeconds,
    body: bytes,
    secrets: change === "second signature" ? [OTHER_SECRET, SECRET] : [SECRET],
  };
  const headers: Record<string, string> = {
    ...await standardWebhooksHeaders(standard),
    "x-svc-timestamp": `${timestampSeconds}`,
    "x-svc-signature": await signature(SECRET, bytes),
  };
  for (const name of ["x-svc-signature", "webhook-signature"]) {
    if (change === "missing") delete headers[name];
    if (change === "signature") headers[name] = headers[name]?.replace(/.{2}$/, "xx") ?? "";
  }
  if (change === "later time") {
    const now = `${Math.floor(Date.now() / 1_000)}`;
    Object.assign(headers, { "x-svc-timestamp": now, "webhook-timestamp": now });
  }
  if (change.endsWith(" digits")) {
    const digits = "1".repeat(parseInt(change));
    Object.assign(headers, { "x-svc-timestamp": digits, "webhook-timestamp": digits });
  }
  if (change === "second signature") {
    headers["x-svc-signature-other"] = await signature(SECRET, bytes);
    headers["x-svc-signature"] = await signature(OTHER_SECRET, bytes);
    return { body: BODY, headers, secrets: [SECRET] };
  }
  const secrets = change === "secret" ? [OTHER_SECRET] : [OTHER_SECRET, SECRET];
  return { body: change === "body" ? `${BODY} ` : BODY, headers, secrets };
}

function recipeOf(name: string): string {
  return blockOf(`receiver=${name}`);
}

/** The file that the page writes with a shell; its server starts only as the main program of that name. */
function fileRecipe(): string {
  const found = /^cat > receiver\.py <<'EOF'\n([^]*?)^EOF$/m.exec(PAGE)?.[1];
  assert(found !== undefined, "the page has no receiver.py");
  return found.replace(/^if __name__[^]*/m, "");
}

function blockOf(mark: string): string {
  const found = new RegExp(`^\`\`\`\\w+ ${mark}\\n([^]*?)^\`\`\`$`, "m").exec(PAGE)?.[1];
  assert(found !== undefined, `the page has no block ${mark}`);
  return found;
}

/** A test that is skipped, with the reason in its name, where a program is missing. */
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
