/** How long a child may take to end after it was asked to. */
const STOP_MS = 5_000;
/** How long a server may take until it says where it listens. */
const START_MS = 60_000;
const KEPT_LINES = 20;

/** A server that the bench started. It is ended by its process id when the bench lets go of it. */
export class Child implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #name: string;
  readonly #lines: string[] = [];
  readonly #reading: Promise<unknown>;
  #onLine: (line: string) => void = () => {};
  #hasEnded = false;

  constructor(name: string, command: string, options: Deno.CommandOptions) {
    this.#name = name;
    this.#process = new Deno.Command(command, { ...options, stdin: "null", stdout: "piped", stderr: "piped" })
      .spawn();
    this.#reading = Promise.all([this.#read(this.#process.stdout), this.#read(this.#process.stderr)]);
    void this.#process.status.then(() => this.#hasEnded = true);
  }

  /** The process id. */
  get pid(): number {
    return this.#process.pid;
  }

  /** Waits until each pattern matched a line of either output; answers the first group of each. */
  async find<K extends string>(patterns: Readonly<Record<K, RegExp>>): Promise<Record<K, string>> {
    const names = Object.keys(patterns) as K[];
    const found = new Map<K, string>();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onLine = (line) => {
      for (const name of names) {
        const match = patterns[name].exec(line);
        if (match !== null) found.set(name, match[1] ?? line);
      }
      if (found.size === names.length) resolve();
    };
    const timer = setTimeout(resolve, START_MS);
    await Promise.race([promise, this.#reading]);
    clearTimeout(timer);
    this.#onLine = () => {};
    if (found.size === names.length) return Object.fromEntries(found) as Record<K, string>;
    throw new Error(
      `Cannot start ${this.#name} "${this.pid}": it did not get ready\n${this.#lines.join("\n")}`,
    );
  }

  /** Ends the process: asks first, and after a while insists. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#kill("SIGTERM");
    const timer = setTimeout(() => this.#kill("SIGKILL"), STOP_MS);
    await this.#process.status;
    clearTimeout(timer);
    await this.#reading;
  }

  #kill(signal: Deno.Signal): void {
    if (!this.#hasEnded) this.#process.kill(signal);
  }

  async #read(output: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    let rest = "";
    for await (const text of output.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        this.#lines.push(line);
        if (this.#lines.length > KEPT_LINES) this.#lines.shift();
        this.#onLine(line);
      }
    }
  }
}

/** Runs a command to its end and answers its standard output, whatever its exit code; the signal ends it. */
export async function outputOf(
  command: string,
  args: readonly string[],
  signal?: AbortSignal,
): Promise<string> {
  const running = new Deno.Command(command, {
    args: [...args],
    stdin: "null",
    ...(signal === undefined ? {} : { signal }),
  });
  const { stdout, stderr, success } = await running.output();
  signal?.throwIfAborted();
  const text = new TextDecoder().decode(stdout);
  if (success || text !== "") return text;
  throw new Error(`Cannot run "${command}": ${new TextDecoder().decode(stderr).trim()}`);
}
