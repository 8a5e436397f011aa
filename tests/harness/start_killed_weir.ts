import { join } from "node:path";
import { serveFlags } from "../../scripts/serve_flags.ts";
import { ChildProcess } from "./child_process.ts";
import type { WebhookFaults } from "./webhook_faults.ts";
import { runtimeEnvironment, weirCommand, weirExecutable } from "./weir_command.ts";
import { WeirProcess } from "./weir_process.ts";

/** How a Weir that may die is to run. */
export interface KilledWeirOptions {
  /** Given, even when there are none, for what only a Weir of the tests can do: to fail, and to be told to by a signal. */
  readonly faults?: WebhookFaults | undefined;
  /** Rule files by name, written into a folder of this process alone. */
  readonly rules: Readonly<Record<string, string>>;
  /** Beside those that keep it on loopback ports and in memory. */
  readonly settings: Readonly<Record<string, string>>;
}

/** The exit code of one that an error reached which nobody expected. */
export const UNEXPECTED_CODE = 3;

const ROOT = new URL("../../", import.meta.url).pathname;
const SCRIPT = new URL("./killed_weir.ts", import.meta.url).pathname;

/**
 * Starts `killed_weir.ts` with the permissions of the serve task, and that to kill itself. Waits until it listens,
 * which one that is to die may never come to. One that is not to fail is the executable that `WEIR_BIN` names, if any.
 */
export async function startKilledWeir(
  { faults, rules, settings }: KilledWeirOptions,
): Promise<WeirProcess> {
  const folder = await Deno.makeTempDir({ prefix: "weir_" });
  const root = join(folder, "root");
  const rulesFolder = join(root, "config");
  await Deno.mkdir(rulesFolder, { recursive: true });
  for (const [name, text] of Object.entries(rules)) await Deno.writeTextFile(join(rulesFolder, name), text);
  const { command, args } = faults === undefined && weirExecutable() !== undefined
    ? weirCommand(["serve"])
    : { command: Deno.execPath(), args: killedArgs(faults) };
  const child = new ChildProcess(command, {
    args,
    cwd: ROOT,
    env: environment(root, settings),
  });
  const weir = new WeirProcess(child, { folder, rulesFolder });
  try {
    if (faults?.kill === undefined) await weir.listening(["gRPC", "HTTP", "debug"]);
    return weir;
  } catch (error) {
    await weir[Symbol.asyncDispose]();
    throw error;
  }
}

function killedArgs(faults: WebhookFaults = {}): string[] {
  return ["run", ...serveFlags(), "--allow-run", SCRIPT, JSON.stringify(faults)];
}

function environment(root: string, settings: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...runtimeEnvironment(),
    ...{ BACKEND_TYPE: "memory", DISABLE_STATS: "true", RUNTIME_ROOT: root, RUNTIME_WATCH_ROOT: "false" },
    ...{
      HOST: "127.0.0.1",
      GRPC_HOST: "127.0.0.1",
      GRPC_PORT: "0",
      DEBUG_HOST: "127.0.0.1",
      DEBUG_PORT: "0",
    },
    ...settings,
  };
}
