import { join } from "node:path";
import { serveFlags } from "../../scripts/serve_flags.ts";
import { ChildProcess } from "./child_process.ts";
import { runtimeEnvironment, weirCommand, weirExecutable } from "./weir_command.ts";
import { startWeir, type WeirOptions, type WeirProcess } from "./weir_process.ts";

/** How a program that was run to its end ended. */
export interface AuditedRun {
  readonly code: number;
  readonly lines: readonly string[];
}

/**
 * Programs of Weir whose every question for a permission is written down, those too that were answered with no and of
 * which the program says nothing. Removed at the end of an `await using`.
 */
export class PermissionAudit implements AsyncDisposable {
  /** For what the programs use. */
  readonly folder: string;
  readonly #flags: readonly string[];
  readonly #isWhole: boolean;
  readonly #lines: (() => readonly string[])[] = [];
  /** Every program has its own, because it begins by emptying it. */
  readonly #paths: string[] = [];

  private constructor(folder: string, flags: readonly string[], isWhole: boolean) {
    this.folder = folder;
    this.#flags = flags;
    this.#isWhole = isWhole;
  }

  /** For programs with the flags of the serve task, or with these in their place. */
  static async open(flags?: readonly string[]): Promise<PermissionAudit> {
    const folder = await Deno.makeTempDir({ prefix: "weir_audit_" });
    return new PermissionAudit(folder, flags ?? serveFlags(), flags === undefined);
  }

  /** Starts Weir. */
  async start(options: WeirOptions = {}): Promise<WeirProcess> {
    const env = { ...options.env, ...this.#env() };
    const weir = await startWeir({ ...options, env, ...(this.#isWhole ? {} : { flags: this.#flags }) });
    this.#lines.push(() => [...weir.stderrLines, ...weir.stdoutLines]);
    return weir;
  }

  /** Runs a command to its end. */
  async run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<AuditedRun> {
    const line = weirCommand(args, this.#isWhole ? undefined : this.#flags);
    await using child = new ChildProcess(line.command, {
      args: line.args,
      cwd: this.folder,
      env: { ...runtimeEnvironment(), ...env, ...this.#env() },
    });
    const { code } = await child.exited;
    const lines = [...child.stdoutLines, ...child.stderrLines];
    this.#lines.push(() => lines);
    return { code, lines };
  }

  /** What was asked for, such as `sys hostname`; of files and the network only the kind, such as `read`. */
  asked(): string[] {
    return [...new Set(this.#questions().map(({ shown }) => shown))].sort();
  }

  /** What was asked for and is not granted, and the lines that tell of a refusal. */
  refusals(): string[] {
    const refused = this.#questions().filter(({ isGranted }) => !isGranted).map(({ shown }) => shown);
    const told = this.#lines.flatMap((lines) => lines()).filter((line) =>
      /NotCapable|Requires .* access/.test(line)
    );
    return [...new Set(refused), ...told];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }

  #env(): Record<string, string> {
    const path = join(this.folder, `audit_${this.#paths.length}.jsonl`);
    this.#paths.push(path);
    return { DENO_AUDIT_PERMISSIONS: path };
  }

  #questions(): { readonly shown: string; readonly isGranted: boolean }[] {
    const lines = this.#paths.flatMap((path) => auditText(path).split("\n"));
    // The last line of a program that runs may be half written.
    return lines.filter((line) => line.endsWith("}")).map((line) => {
      const { permission, value } = JSON.parse(line);
      const granted = this.#flags.find((flag) => flag.split("=")[0] === `--allow-${permission}`);
      const list = granted?.split("=")[1]?.split(",");
      const isGranted = granted !== undefined && (list === undefined || list.includes(String(value)));
      return { shown: permission === "sys" ? `sys ${value}` : String(permission), isGranted };
    });
  }
}

function auditText(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    // An executable need not write one; what it says of refusals is looked at all the same.
    if (error instanceof Deno.errors.NotFound && weirExecutable() !== undefined) return "";
    throw error;
  }
}
