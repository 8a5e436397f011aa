import { assertEquals, assertMatch } from "#assert";
import { ChildProcess } from "../../harness/child_process.ts";
import { runtimeEnvironment, weirCommand } from "../../harness/weir_command.ts";

const PROCESS: readonly (readonly [args: string[], code: number, stdout: RegExp, stderr: RegExp])[] = [
  [["serve", "now"], 2, /^$/, /^Cannot run "serve": /],
  [["help", "check"], 0, /^usage: weir check DIR/, /^$/],
  [["-v"], 0, /^weir \d+\.\d+\.\d+ \(/, /^$/],
  // Without a command it starts only if a setting is given: the tests of the service do that with "serve".
  [[], 2, /^$/, /^weir \d+\.\d+\.\d+: .*\n\nNothing to start: no setting is in the environment/],
  [["triggers", "-help"], 0, /^usage: weir triggers COMMAND/, /^$/],
];

for (const [args, code, stdout, stderr] of PROCESS) {
  Deno.test(`weir ${args.join(" ")}: ends immediately`, async () => {
    const line = weirCommand(args);
    await using weir = new ChildProcess(line.command, { args: line.args, env: runtimeEnvironment(line) });
    const exit = await weir.exited;
    assertEquals(exit.code, code);
    assertMatch(weir.stdoutLines.join("\n"), stdout);
    assertMatch(weir.stderrLines.join("\n"), stderr);
  });
}
