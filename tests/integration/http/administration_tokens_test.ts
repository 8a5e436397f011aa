import { join } from "node:path";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";

const TOKEN = "3f6d0c9a-the-token-of-a-program";
const LINE = `ci:admin:${TOKEN}\n`;

/** A service whose only token is in a file; answers the status of a call with that token. */
async function bed(text: string) {
  const folder = await Deno.makeTempDir({ prefix: "weir_tokens_" });
  const path = join(folder, "tokens");
  await Deno.writeTextFile(path, text, { mode: 0o600 });
  const weir = await ServeFixture.start({ env: { ADMIN_TOKENS_FILE: path } });
  const status = async () => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    const response = await fetch(`http://${weir.httpAddress}/api/v1/whoami`, { headers });
    await response.body?.cancel();
    return response.status;
  };
  return {
    path,
    statusIs: (expected: number) => until(`${expected}`, async () => await status() === expected),
    async [Symbol.asyncDispose]() {
      await weir[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

Deno.test("the last token of ADMIN_TOKENS_FILE is revoked, and the token returns", async () => {
  await using weir = await bed(LINE);
  await weir.statusIs(200);
  await Deno.writeTextFile(weir.path, "");
  await weir.statusIs(401);
  await Deno.writeTextFile(weir.path, LINE);
  await weir.statusIs(200);
});

Deno.test("a service starts with an ADMIN_TOKENS_FILE without tokens, and applies the first one", async () => {
  await using weir = await bed("# none yet\n");
  await weir.statusIs(401);
  await Deno.writeTextFile(weir.path, LINE);
  await weir.statusIs(200);
});
