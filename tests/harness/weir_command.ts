import { dirname } from "node:path";
import { SERVE_FLAGS } from "../../scripts/serve_flags.ts";
import type { WebhookFaults } from "./webhook_faults.ts";

/** A command line to start. */
export interface CommandLine {
  readonly command: string;
  readonly args: readonly string[];
}

const ROOT = new URL("../../", import.meta.url).pathname;
const MAIN = new URL("../../main.ts", import.meta.url).pathname;
const FAULTY = new URL("./killed_weir.ts", import.meta.url).pathname;
// Of the test's own environment only what the runtime needs, so that no stray setting decides a test.
const PASSED_ON = ["PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "DENO_DIR", "DENO_TLS_CA_STORE", "DENO_CERT"];

/** The executable that the tests run in place of the sources; absent when `WEIR_BIN` names none. */
export function weirExecutable(): string | undefined {
  return Deno.env.get("WEIR_BIN") || undefined;
}

/**
 * The command line of Weir: the executable that `WEIR_BIN` names, or `main.ts` with the permissions of
 * `SERVE_FLAGS`, so that a test fails when one is missing there. With `flags` it is always `main.ts`.
 */
export function weirCommand(args: readonly string[], flags?: readonly string[]): CommandLine {
  return commandOf(weirExecutable(), args, flags);
}

/** The same with this executable, or none. */
export function commandOf(
  executable: string | undefined,
  args: readonly string[],
  flags?: readonly string[],
): CommandLine {
  if (executable !== undefined && flags === undefined) return { command: executable, args };
  return { command: Deno.execPath(), args: ["run", ...flags ?? SERVE_FLAGS, MAIN, ...args] };
}

/** The command line of a Weir that fails: always the sources, with the permission to kill itself. */
export function faultyWeirCommand(faults: WebhookFaults): CommandLine {
  const args = ["run", ...SERVE_FLAGS, "--allow-run", FAULTY, JSON.stringify(faults)];
  return { command: Deno.execPath(), args };
}

/**
 * The variables of the test's own environment that a started program needs; an executable runs as on a machine
 * without Deno.
 */
export function runtimeEnvironment(line?: CommandLine): Record<string, string> {
  const isAlone = line !== undefined && isExecutable(line);
  const passed = Object.fromEntries((isAlone ? ["TMPDIR"] : PASSED_ON).flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined ? [] : [[name, value]];
  }));
  return isAlone ? { ...passed, PATH: "/usr/bin:/bin" } : passed;
}

/** The working folder of a program: that of the sources in the project, an executable in its own folder. */
export function workingFolder(line: CommandLine): string {
  return isExecutable(line) ? dirname(weirExecutable() ?? ROOT) : ROOT;
}

function isExecutable({ command, args }: CommandLine): boolean {
  const executable = weirExecutable();
  return executable !== undefined && [command, ...args].includes(executable);
}
