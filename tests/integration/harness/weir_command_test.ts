import { assertEquals } from "@std/assert";
import { join } from "node:path";
import { serveFlags } from "../../../scripts/serve_flags.ts";
import { startKilledWeir } from "../../harness/start_killed_weir.ts";
import { weirCommand } from "../../harness/weir_command.ts";
import { startWeir } from "../../harness/weir_process.ts";

const MAIN = new URL("../../../main.ts", import.meta.url).pathname;
const NAME = "WEIR_BIN";

/** Runs `work` while `WEIR_BIN` is set, or is not. */
async function withExecutable(path: string | undefined, work: () => Promise<void> | void): Promise<void> {
  const before = Deno.env.get(NAME);
  try {
    if (path === undefined) Deno.env.delete(NAME);
    else Deno.env.set(NAME, path);
    await work();
  } finally {
    if (before === undefined) Deno.env.delete(NAME);
    else Deno.env.set(NAME, before);
  }
}

Deno.test("weir command: the sources with the permissions of the serve task", async () => {
  await withExecutable(undefined, () => {
    assertEquals(weirCommand(["client", "-help"]), {
      command: Deno.execPath(),
      args: ["run", ...serveFlags(), MAIN, "client", "-help"],
    });
    assertEquals(weirCommand([], ["-A"]).args, ["run", "-A", MAIN]);
  });
  await withExecutable("", () => assertEquals(weirCommand(["serve"]).command, Deno.execPath()));
  await withExecutable("/bin/weir", () => {
    assertEquals(weirCommand(["store", "check"]), { command: "/bin/weir", args: ["store", "check"] });
    assertEquals(weirCommand([], ["-A"]).command, Deno.execPath());
  });
});

Deno.test("weir command: tests start the executable that WEIR_BIN names, with its arguments", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_executable_" });
  try {
    const [path, log] = [join(folder, "weir"), join(folder, "log")];
    const sources = [Deno.execPath(), "run", ...serveFlags(), MAIN].join(" ");
    await Deno.writeTextFile(path, `#!/bin/sh\necho "$# $@" >> ${log}\nexec ${sources} "$@"\n`, {
      mode: 0o755,
    });
    await withExecutable(path, async () => {
      const settings = { PORT: "0" };
      for (
        const start of [
          () => startWeir(),
          () => startKilledWeir({ rules: {}, settings }),
          // A Weir that is to fail is never the executable.
          () => startKilledWeir({ rules: {}, settings, faults: {} }),
        ]
      ) {
        await using weir = await start();
        assertEquals(await (await fetch(`http://${weir.httpAddress}/livez`)).text(), "OK");
        assertEquals(await weir.stop(), 0);
      }
    });
    assertEquals(await Deno.readTextFile(log), "1 serve\n1 serve\n");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
