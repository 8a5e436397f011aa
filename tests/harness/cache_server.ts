import { ChildProcess } from "./child_process.ts";
import { freePort } from "./free_port.ts";
import { requireTool } from "./tools.ts";
import { until } from "./until.ts";

/** Number of times that a free port is looked for. */
const ATTEMPTS = 3;

/** Starts a server on a free port of the loopback address. */
export async function startOnFreePort<Server extends CacheServer>(
  make: (port: number) => Server,
): Promise<Server> {
  for (let attempt = 1;; attempt++) {
    const server = make(freePort());
    try {
      await server.restartOnSamePort();
      return server;
    } catch (error) {
      await server.kill();
      // Somebody else may have taken the port in between; anything else fails again.
      if (attempt < ATTEMPTS) continue;
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }
}

/** Options of a cache server. */
interface CacheServerOptions {
  readonly program: "redis-server" | "valkey-server" | "memcached";
  /** Its port on 127.0.0.1. */
  readonly port: number;
  readonly args: readonly string[];
  /** Its output goes nowhere. */
  readonly isSilent?: boolean | undefined;
}

/** A cache server that a test started, whatever it speaks; killed at the end of an `await using`. */
export abstract class CacheServer implements AsyncDisposable {
  /** Its port on 127.0.0.1. */
  readonly port: number;
  /** `127.0.0.1:port`, as the settings take it. */
  readonly url: string;
  readonly #options: CacheServerOptions;
  #child: ChildProcess | undefined;

  constructor(options: CacheServerOptions) {
    this.port = options.port;
    this.url = `127.0.0.1:${options.port}`;
    this.#options = options;
  }

  /** Returns whether the server at the port answers, and is the process of this id. */
  protected abstract answers(pid: number): Promise<boolean>;

  /** Returns whether it was started and has not ended. */
  get running(): boolean {
    return this.#child?.running === true;
  }

  /** Asks the server to end and waits until it has; its counters are gone. */
  async stop(): Promise<void> {
    this.resume();
    await this.#child?.stop();
  }

  /** Ends the server without asking it. */
  async kill(): Promise<void> {
    await this.#child?.kill();
  }

  /** Starts the server again, empty, where it stood; one that still runs is killed before. */
  async restartOnSamePort(): Promise<void> {
    await this.kill();
    const { program, args, isSilent = false } = this.#options;
    const child = new ChildProcess(requireTool(program), { args, isSilent });
    this.#child = child;
    await until(program, async () => !child.running || await this.answers(child.pid));
    if (child.running) return;
    const last = [...child.stdoutLines, ...child.stderrLines].slice(-3).join("; ");
    throw new Error(`Cannot start "${program}": it ended: ${last}`);
  }

  /** Stops the server in its tracks: connections stay open, nothing is answered. */
  pause(): void {
    this.#child?.signal("SIGSTOP");
  }

  /** Lets a paused server go on. */
  resume(): void {
    this.#child?.signal("SIGCONT");
  }

  /** Kills the server. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
