import { assertEquals, assertMatch } from "#assert";
import { ChildProcess } from "../../harness/child_process.ts";
import { weirCommand } from "../../harness/weir_command.ts";

const PROCESS: readonly (readonly [args: string[], code: number, stdout: RegExp, stderr: RegExp])[] = [
  [["serve", "now"], 2, /^$/, /^Cannot run "serve": /],
  [["help", "check"], 0, /^usage: weir check DIR/, /^$/],
  [["triggers", "-help"], 0, /^usage: weir triggers COMMAND/, /^$/],
];

for (const [args, code, stdout, stderr] of PROCESS) {
  Deno.test(`weir ${args.join(" ")}: ends immediately`, async () => {
    const line = weirCommand(args);
    await using weir = new ChildProcess(line.command, { args: line.args });
    const exit = await weir.exited;
    assertEquals(exit.code, code);
    assertMatch(weir.stdoutLines.join("\n"), stdout);
    assertMatch(weir.stderrLines.join("\n"), stderr);
  });
}
