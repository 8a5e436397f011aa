import { assert, assertEquals } from "@std/assert";
import { ChildProcess } from "../../harness/child_process.ts";
import { freePort } from "../../harness/free_port.ts";
import { until } from "../../harness/until.ts";

Deno.test("the start task binds to loopback, and says how to open it", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_" });
  const env = {
    ...Object.fromEntries(["PORT", "GRPC_PORT", "DEBUG_PORT"].map((name) => [name, `${freePort()}`])),
    ADMIN_TOKEN: "",
    ADMIN_TOKEN_FILE: `${folder}/token`,
    WEBHOOK_STORE_FILE: `${folder}/store`,
  };
  const args = ["run", "--allow-all", "--unstable-no-legacy-abort", "scripts/start.ts"];
  const cwd = new URL("../../..", import.meta.url).pathname;
  try {
    await Deno.writeTextFile(env.ADMIN_TOKEN_FILE, "a-token-of-the-administration-for-tests\n");
    await Deno.writeTextFile(env.WEBHOOK_STORE_FILE, `${folder}/weir.db\n`);
    await using started = new ChildProcess(Deno.execPath(), {
      args,
      cwd,
      env: { ...Deno.env.toObject(), KV_URL: "", BACKEND_TYPE: "", WEBHOOK_STORE: "", ...env },
    });
    await until("the service to be ready", () => started.stdoutLines.includes("Weir is ready."));
    const hosts = () =>
      started.stderrLines.flatMap((line) => /Listening for \w+ on '([^:]+):/.exec(line)?.[1] ?? []);
    // The two streams are read on their own.
    await until("the ports in the log", () => hosts().length >= 3);
    assertEquals(hosts(), ["127.0.0.1", "127.0.0.1", "127.0.0.1"]);
    const opening = "To open it to others, set HOST, GRPC_HOST, DEBUG_HOST to 0.0.0.0.";
    await until("the hint", () => started.stdoutLines.some((line) => line.includes(opening)));
    assert(started.stdoutLines.includes("  cache  memory of this process; set KV_URL for redis"));
    assert(!started.stderrLines.some((line) => line.includes("open to other machines")));
    await started.stop();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
