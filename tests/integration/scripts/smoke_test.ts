import { assertEquals } from "#assert";
import { join } from "node:path";
import { freePort } from "../../harness/free_port.ts";
import { runtimeEnvironment, weirExecutable } from "../../harness/weir_command.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

/** Programs, and whether they pass the smoke test. */
const PROGRAMS: readonly { readonly name: string; readonly text?: string; readonly passes: boolean }[] = [
  { name: "Weir", passes: true },
  { name: "a program that ends immediately", text: "exit 0", passes: false },
  { name: "a Weir without limits", text: 'SHADOW_MODE=true exec "$WEIR" "$@"', passes: false },
];

for (const { name, text, passes } of PROGRAMS) {
  Deno.test(`smoke test: ${passes ? "passes with" : "fails with"} ${name}`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "weir_smoke_" });
    try {
      const weir = weirExecutable() ?? join(ROOT, "scripts/weir");
      const program = text === undefined ? weir : join(folder, "program");
      if (text !== undefined) await Deno.writeTextFile(program, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
      const ports = ["PORT", "GRPC_PORT", "DEBUG_PORT"].map((port) => [port, `${freePort()}`]);
      const { PATH = "", ...own } = runtimeEnvironment();
      const { code, stdout, stderr } = await new Deno.Command(join(ROOT, ".ci/smoke"), {
        args: [program],
        clearEnv: true,
        env: {
          ...own,
          ...Object.fromEntries(ports),
          WEIR: weir,
          SMOKE_SECONDS: passes ? "60" : "2",
          PATH: `${join(Deno.execPath(), "..")}:${PATH}`,
        },
      }).output();
      const written = new TextDecoder().decode(stdout);
      const all = `${written}\n${new TextDecoder().decode(stderr)}`;
      assertEquals([code === 0, written.endsWith("smoke test: passed\n")], [passes, passes], all);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
