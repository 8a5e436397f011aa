import { assertEquals, assertMatch } from "#assert";
import { dirname } from "node:path";
import { ChildProcess } from "../harness/child_process.ts";
import { type DenoRuntime, runDeno, testRuntimes } from "../harness/deno_runtime.ts";
import { runtimeEnvironment } from "../harness/weir_command.ts";
import { makeWeirFolder } from "../harness/weir_folder.ts";
import denoJson from "../../deno.json" with { type: "json" };

const ROOT = new URL("../../", import.meta.url).pathname;
const LOADER = "tests/runtimes/load_module.ts";

testRuntimes("every task starts", async (runtime) => {
  const commands = new Set(Object.values(denoJson.tasks).flatMap((task) => task.split(" && ")));
  for (const command of commands) await starts(runtime, command.split(" ").slice(1));
});

testRuntimes("the start task is ready, and the command of a clone runs", async (runtime) => {
  const folder = await makeWeirFolder();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(folder.path, { recursive: true }));
  const env: Record<string, string> = {
    ...runtimeEnvironment(),
    ...runtime.env,
    ...folder.env,
    ...{
      RUNTIME_APPDIRECTORY: "config",
      WEBHOOK_STORE: `${folder.path}/weir.db`,
      ADMIN_TOKEN: "token-of-the-administration-in-tests",
    },
  };
  const task = new ChildProcess(runtime.deno, { args: ["task", "start"], cwd: ROOT, env });
  // Its service would outlive a killed task.
  stack.defer(async () => void await task.stop());
  await task.find({ ready: /(Weir is ready)/ });
  const path = `${dirname(runtime.deno)}:${env["PATH"] ?? ""}`;
  const args = ["version"];
  const command = stack.use(new ChildProcess(`${ROOT}scripts/weir`, { args, env: { ...env, PATH: path } }));
  assertEquals((await command.exited).code, 0);
  assertMatch(command.stdoutLines.join("\n"), new RegExp(`deno ${RegExp.escape(runtime.release)}\\b`));
  assertEquals(await task.stop(), { code: 0, signal: null });
});

/** Runs a command of a task on a module that loads the script of the task, or on that module alone, and does nothing. */
async function starts(runtime: DenoRuntime, words: readonly string[]): Promise<void> {
  const [subcommand = ""] = words;
  const flags = words.slice(1).filter((word) => word.startsWith("--") && word !== "--watch");
  const places = words.slice(1).filter((word) => !word.startsWith("--"));
  const args = subcommand === "task" ? ["task"] : [subcommand, ...flags, LOADER];
  const { code, text } = await runDeno(
    runtime,
    subcommand === "run" ? [...args, ...places.slice(0, 1)] : args,
  );
  assertEquals(code, 0, `deno ${words.join(" ")}: ${text}`);
  if (subcommand === "run") assertMatch(text, /^Loaded [\w/]+\.ts$/m);
}
