import { assertEquals } from "@std/assert";
import { withSecretFiles } from "../../harness/deploy_files.ts";
import { startWeir } from "../../harness/weir_process.ts";

const SECRET = "0f7c1d5e93b24a6688aa4417c0de5521";
const PLACE = { place: "PLACE", settings: { DEBUG_TOKEN_FILE: "PLACE/DEBUG_TOKEN" } };

Deno.test("a token from a file protects the debug port, and the log names the variable of the file", async () => {
  await using files = await withSecretFiles({ DEBUG_TOKEN: SECRET }, PLACE);
  await using weir = await startWeir({ env: { ...files.settings, LOG_LEVEL: "info" } });
  const statuses = await Promise.all(["", SECRET, `${SECRET}x`].map(async (token) => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`http://${weir.debugAddress}/stats`, { headers });
    await response.body?.cancel();
    return response.status;
  }));
  assertEquals(statuses, [401, 200, 401]);
  const log = weir.stderrLines.join("\n");
  assertEquals([log.includes("DEBUG_TOKEN is set from DEBUG_TOKEN_FILE"), log.includes(SECRET)], [
    true,
    false,
  ]);
});

Deno.test("a secret that is set twice ends the start, and is not shown", async () => {
  await using files = await withSecretFiles({ DEBUG_TOKEN: SECRET }, PLACE);
  const env = { ...files.settings, DEBUG_TOKEN: SECRET };
  await using weir = await startWeir({ env, waitFor: [] });
  const { code } = await weir.exited;
  const path = files.settings["DEBUG_TOKEN_FILE"];
  assertEquals([code, weir.stderrLines], [1, [
    `Invalid DEBUG_TOKEN_FILE "${path}": DEBUG_TOKEN is also set; expected only one of them`,
  ]]);
});
