import { assertEquals } from "#assert";
import { join } from "node:path";
import { SERVE_FLAGS } from "../../../scripts/serve_flags.ts";
import { commandOf } from "../../harness/weir_command.ts";

const MAIN = new URL("../../../main.ts", import.meta.url).pathname;
const CHILD = new URL("./weir_command_child.ts", import.meta.url).pathname;

Deno.test("weir command: the sources with the permissions of the serve task", () => {
  assertEquals(commandOf(undefined, ["client", "-help"]), {
    command: Deno.execPath(),
    args: ["run", ...SERVE_FLAGS, MAIN, "client", "-help"],
  });
  assertEquals(commandOf(undefined, [], ["-A"]).args, ["run", "-A", MAIN]);
  assertEquals(commandOf("/bin/weir", ["store", "check"]), {
    command: "/bin/weir",
    args: ["store", "check"],
  });
  assertEquals(commandOf("/bin/weir", [], ["-A"]).command, Deno.execPath());
});

Deno.test("weir command: tests start the executable that WEIR_BIN names, with its arguments", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_executable_" });
  try {
    const [path, log] = [join(folder, "weir"), join(folder, "log")];
    const sources = [Deno.execPath(), "run", ...SERVE_FLAGS, MAIN].join(" ");
    await Deno.writeTextFile(path, `#!/bin/sh\necho "$# $@" >> ${log}\nexec ${sources} "$@"\n`, {
      mode: 0o755,
    });
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", CHILD],
      env: { WEIR_BIN: path },
    }).output();
    const text = new TextDecoder().decode(stdout);
    assertEquals([code, text], [0, "OK 0\nOK 0\n"], new TextDecoder().decode(stderr));
    assertEquals(await Deno.readTextFile(log), "1 serve\n");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
