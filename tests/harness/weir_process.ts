import { ChildProcess } from "./child_process.ts";
import type { DenoRuntime } from "./deno_runtime.ts";
import { until } from "./until.ts";
import type { WebhookFaults } from "./webhook_faults.ts";
import {
  type CommandLine,
  commandOf,
  faultyWeirCommand,
  runtimeEnvironment,
  weirCommand,
  workingFolder,
} from "./weir_command.ts";
import { makeWeirFolder, type WeirFolder } from "./weir_folder.ts";

/** The listeners of Weir, as its log lines name them. */
type Listener = "gRPC" | "HTTP" | "debug";

/** Options of a Weir process. */
export interface WeirOptions {
  /** Settings next to those that keep it on free loopback ports, in memory, with the rules below. */
  readonly env?: Readonly<Record<string, string>>;
  /** Rule files by name, written into a folder of this process alone. */
  readonly rules?: Readonly<Record<string, string>>;
  /** Listeners to wait for; all of them when absent, none with an empty list. */
  readonly waitFor?: readonly Listener[];
  /** Flags of `deno run` in place of those of the serve task. */
  readonly flags?: readonly string[];
  /** File descriptors that it may have open; on Linux only. */
  readonly descriptors?: number;
  /** Another release of Deno, which always runs the sources. */
  readonly runtime?: DenoRuntime;
  /** Faults. Set, even without any, for a process that a signal tells to fail. */
  readonly faults?: WebhookFaults | undefined;
}

/**
 * Starts Weir as its own process and waits until it listens, which one that is to die may never come to.
 * `WEIR_BIN` names an executable to start.
 */
export async function startWeir(options: WeirOptions = {}): Promise<WeirProcess> {
  const { env, faults } = options;
  const folder = await makeWeirFolder(options.rules);
  const line = commandLine(options);
  const settings = { ...runtimeEnvironment(line), ...options.runtime?.env, ...folder.env, ...env };
  const child = { args: line.args, cwd: workingFolder(line), env: settings };
  const weir = new WeirProcess(new ChildProcess(line.command, child), folder);
  try {
    await weir.listening(options.waitFor ?? (faults?.kill === undefined ? ["gRPC", "HTTP", "debug"] : []));
    return weir;
  } catch (error) {
    await weir[Symbol.asyncDispose]();
    throw error;
  }
}

function commandLine({ faults, flags, descriptors, runtime }: WeirOptions): CommandLine {
  if (runtime !== undefined) return { ...commandOf(undefined, ["serve"], flags), command: runtime.deno };
  const line = faults === undefined ? weirCommand(["serve"], flags) : faultyWeirCommand(faults);
  if (descriptors === undefined) return line;
  return { command: "prlimit", args: [`--nofile=${descriptors}:${descriptors}`, line.command, ...line.args] };
}

/** A running Weir; killed at the end of an `await using`. */
export class WeirProcess implements AsyncDisposable {
  /** Folder of its rule files. */
  readonly rulesFolder: string;
  readonly #folder: string;
  readonly #child: ChildProcess;

  constructor(child: ChildProcess, { path, rulesFolder }: Omit<WeirFolder, "env">) {
    this.rulesFolder = rulesFolder;
    this.#folder = path;
    this.#child = child;
  }

  /** Address for gRPC calls: `host:port`, or the path of a unix socket. */
  get grpcAddress(): string {
    return this.#address("gRPC");
  }

  /** Address for HTTP requests: `host:port`. */
  get httpAddress(): string {
    return this.#address("HTTP");
  }

  /** Address of the debug pages: `host:port`. */
  get debugAddress(): string {
    return this.#address("debug");
  }

  /** Id of the process. */
  get pid(): number {
    return this.#child.pid;
  }

  /** Lines of its log so far. */
  get stderrLines(): readonly string[] {
    return this.#child.stderrLines;
  }

  /** Lines that it printed so far. */
  get stdoutLines(): readonly string[] {
    return this.#child.stdoutLines;
  }

  /** Settles with the exit code when it has ended. */
  get exited(): ChildProcess["exited"] {
    return this.#child.exited;
  }

  /** Waits until these listeners are open. */
  async listening(listeners: readonly Listener[]): Promise<void> {
    const open = () => listeners.every((listener) => this.#find(listener) !== undefined);
    await until("Weir to listen", () => open() || !this.#child.running, { deadlineMs: 120_000 });
    if (open()) return;
    const { code } = await this.exited;
    throw new Error(`Cannot start Weir: it ended with code ${code}:\n${this.stderrLines.join("\n")}`);
  }

  /** Sends a signal, such as SIGHUP. */
  signal(signal: Deno.Signal): void {
    this.#child.signal(signal);
  }

  /** Asks it to end by SIGTERM; answers its exit code. */
  async stop(): Promise<number> {
    return (await this.#child.stop()).code;
  }

  /** Ends it without asking. */
  async kill(): Promise<void> {
    await this.#child.kill();
  }

  /** Kills it and removes its folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await Deno.remove(this.#folder, { recursive: true });
  }

  #address(listener: Listener): string {
    const address = this.#find(listener);
    if (address === undefined) throw new Error(`Cannot call Weir's "${listener}" port: it is not open yet`);
    return address;
  }

  // The last line counts: Weir may say more than once where it listens.
  #find(listener: Listener): string | undefined {
    const line = this.stderrLines.findLast((text) => text.includes(`Listening for ${listener} on '`));
    return line === undefined ? undefined : /Listening for \w+ on '([^']+)'/.exec(line)?.[1];
  }
}
