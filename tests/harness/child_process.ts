import { until } from "./until.ts";

/** Options of a child. */
interface ChildOptions {
  readonly args: readonly string[];
  /** The whole environment of the child; that of the test when absent. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Its output goes nowhere: a server that outlives a test would write lines that belong to another one. */
  readonly isSilent?: boolean;
}

/** Exit code and signal of a child. */
interface ChildExit {
  readonly code: number;
  readonly signal: Deno.Signal | null;
}

/** A program that a test started. It never outlives the test run. */
export class ChildProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #killAtExit = () => this.#signal("SIGKILL");
  readonly #stdoutLines: string[] = [];
  readonly #stderrLines: string[] = [];
  #running = true;
  /** Settles once the program has ended and all its output was read. */
  readonly exited: Promise<ChildExit>;

  constructor(command: string, options: ChildOptions) {
    const output = options.isSilent === true ? "null" : "piped";
    this.#child = new Deno.Command(command, {
      args: [...options.args],
      ...(options.env === undefined ? {} : { env: { ...options.env }, clearEnv: true }),
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      stdin: "null",
      stdout: output,
      stderr: output,
    }).spawn();
    globalThis.addEventListener("unload", this.#killAtExit);
    this.exited = this.#watch(options.isSilent === true);
  }

  /** Id of the process. */
  get pid(): number {
    return this.#child.pid;
  }

  /** False once the program has ended. */
  get running(): boolean {
    return this.#running;
  }

  /** Lines that it wrote to standard output so far. */
  get stdoutLines(): readonly string[] {
    return this.#stdoutLines;
  }

  /** Lines that it wrote to standard error so far. */
  get stderrLines(): readonly string[] {
    return this.#stderrLines;
  }

  /** Waits until each pattern has matched a line that it wrote; answers the first group of each. */
  async find<Name extends string>(patterns: Readonly<Record<Name, RegExp>>): Promise<Record<Name, string>> {
    const found: Partial<Record<Name, string>> = {};
    const names = Object.keys(patterns) as Name[];
    const isFound = () =>
      names.every((name) => {
        const lines = [...this.#stdoutLines, ...this.#stderrLines];
        found[name] = lines.map((line) => patterns[name].exec(line)?.[1]).find((group) =>
          group !== undefined
        );
        return found[name] !== undefined;
      });
    await until("what a program writes", () => isFound() || !this.#running);
    if (isFound()) return found as Record<Name, string>;
    const last = [...this.#stdoutLines, ...this.#stderrLines].slice(-20).join("\n");
    throw new Error(`Cannot use process ${this.pid}: it ended\n${last}`);
  }

  /** Sends a signal; a program that has ended is left alone. */
  signal(signal: Deno.Signal): void {
    this.#signal(signal);
  }

  /** Asks the program to end and answers how it did; one that does not within `graceMs` is killed. */
  async stop(graceMs = 60_000): Promise<ChildExit> {
    this.#signal("SIGTERM");
    const timer = setTimeout(() => this.#signal("SIGKILL"), graceMs);
    try {
      return await this.exited;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends the program without asking it. */
  async kill(): Promise<void> {
    this.#signal("SIGKILL");
    await this.exited;
  }

  /** Ends the program without asking it, at the end of an `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #watch(isSilent: boolean): Promise<ChildExit> {
    const output = isSilent ? [] : [
      collect(this.#child.stdout, this.#stdoutLines),
      collect(this.#child.stderr, this.#stderrLines),
    ];
    const [status] = await Promise.all([this.#child.status, ...output]);
    this.#running = false;
    globalThis.removeEventListener("unload", this.#killAtExit);
    return { code: status.code, signal: status.signal };
  }

  #signal(signal: Deno.Signal): void {
    if (!this.#running) return;
    try {
      this.#child.kill(signal);
    } catch (error) {
      // Between its end and the moment that we hear of it no process is left to signal.
      if (!(error instanceof TypeError || error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}

/** Runs a command to its end and answers its standard output, whatever its exit code; the signal ends it. */
export async function outputOf(
  command: string,
  args: readonly string[],
  signal?: AbortSignal,
): Promise<string> {
  const options = signal === undefined ? {} : { signal };
  const running = new Deno.Command(command, { args: [...args], stdin: "null", ...options });
  const { stdout, stderr, success } = await running.output();
  signal?.throwIfAborted();
  const text = new TextDecoder().decode(stdout);
  if (success || text !== "") return text;
  throw new Error(`Cannot run "${command}": ${new TextDecoder().decode(stderr).trim()}`);
}

async function collect(stream: ReadableStream<Uint8Array<ArrayBuffer>>, lines: string[]): Promise<void> {
  let open = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    const parts = (open + chunk).split(/\r?\n/);
    open = parts.pop() ?? "";
    lines.push(...parts);
  }
  if (open !== "") lines.push(open);
}
