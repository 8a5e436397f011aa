import { ChildProcess } from "./child_process.ts";
import type { CertificateFiles } from "./certificates.ts";
import { freePort } from "./free_port.ts";
import { requireTool } from "./tools.ts";
import { until } from "./until.ts";

/** How a memcached is to run. */
export interface MemcachedOptions {
  /** Speak TLS, and nothing else. */
  readonly tls?: MemcachedTls;
  /** Further arguments, such as `["-c", "10"]`. */
  readonly args?: readonly string[];
}

/** The files that TLS is spoken with. */
export interface MemcachedTls extends CertificateFiles {
  /** Only clients of this authority are let in. */
  readonly authorityFile: string;
}

/** A command that does nothing, and its answer: what came before that is the whole of another answer. */
const NOTHING = { command: "mn\r\n", answer: "MN\r\n" };

/** Starts a memcached of the test's own, on a free port of the loopback address. */
export async function startMemcached(options: MemcachedOptions = {}): Promise<Memcached> {
  const attempts = 3;
  for (let attempt = 1;; attempt++) {
    const server = new Memcached(freePort(), options);
    try {
      await server.restartOnSamePort();
      return server;
    } catch (error) {
      await server.kill();
      // Somebody else may have taken the port in between; anything else fails again.
      if (attempt === attempts) throw error;
    }
  }
}

/** A running memcached; killed at the end of an `await using`. */
export class Memcached implements AsyncDisposable {
  /** Its port on 127.0.0.1. */
  readonly port: number;
  /** `127.0.0.1:port`, as `MC_HOST_PORT` takes it. */
  readonly url: string;
  readonly #isSecure: boolean;
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;

  constructor(port: number, options: MemcachedOptions) {
    this.port = port;
    this.url = `127.0.0.1:${port}`;
    this.#isSecure = options.tls !== undefined;
    // It refuses to run as root unless it is told so.
    const user = Deno.uid() === 0 ? ["-u", "root"] : [];
    const network = ["-l", "127.0.0.1", "-p", String(port), "-U", "0", "-t", "1", ...user];
    this.#args = [...network, ...tlsArgs(options.tls), ...options.args ?? []];
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
    const child = new ChildProcess(requireTool("memcached"), { args: this.#args });
    this.#child = child;
    await until("memcached", async () => !child.running || await this.#answers());
    if (!child.running) {
      throw new Error(`Cannot start "memcached": it ended: ${child.stderrLines.slice(-3).join("; ")}`);
    }
  }

  /** Stops the server in its tracks: connections stay open, nothing is answered. */
  pause(): void {
    this.#child?.signal("SIGSTOP");
  }

  /** Lets a paused server go on. */
  resume(): void {
    this.#child?.signal("SIGCONT");
  }

  /** Sends one line over a plain connection of its own and answers the lines that come back. */
  async command(line: string): Promise<string[]> {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port: this.port });
    await connection.write(new TextEncoder().encode(`${line}\r\n${NOTHING.command}`));
    const decoder = new TextDecoder();
    const buffer = new Uint8Array(65_536);
    let text = "";
    while (!text.endsWith(NOTHING.answer)) {
      const length = await connection.read(buffer);
      if (length === null) throw new Error("Cannot read an answer of memcached: it closed the connection");
      text += decoder.decode(buffer.subarray(0, length), { stream: true });
    }
    return text.slice(0, -NOTHING.answer.length).trimEnd().split("\r\n");
  }

  /** The value of a key as it stands; absent when there is none. */
  async value(key: string): Promise<string | undefined> {
    const [first = "", value] = await this.command(`get ${key}`);
    return first.startsWith("VALUE ") ? value : undefined;
  }

  /** For how many seconds a key is still kept; -1 is without end, and absent when there is none. */
  async secondsLeft(key: string): Promise<number | undefined> {
    const [line = ""] = await this.command(`mg ${key} t`);
    const text = /^HD t(-?\d+)/.exec(line)?.[1];
    return text === undefined ? undefined : Number(text);
  }

  /** One of the numbers that `stats` shows. */
  async stat(name: string): Promise<number> {
    const lines = await this.command("stats");
    return Number(lines.find((line) => line.startsWith(`STAT ${name} `))?.split(" ")[2]);
  }

  /** Kills the server. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #answers(): Promise<boolean> {
    if (this.#isSecure) {
      // It says nothing to those who do not speak TLS, but only itself can hold the port.
      using connection = await Deno.connect({ hostname: "127.0.0.1", port: this.port });
      return connection.remoteAddr !== undefined;
    }
    // Without this check a server of another test on the same port would pass for ours.
    return await this.stat("pid") === this.#child?.pid;
  }
}

function tlsArgs(tls: MemcachedTls | undefined): string[] {
  if (tls === undefined) return [];
  const files = `ssl_chain_cert=${tls.certFile},ssl_key=${tls.keyFile},ssl_ca_cert=${tls.authorityFile}`;
  // 2: whoever shows no certificate of the authority is not let in.
  return ["-Z", "-o", `${files},ssl_verify_mode=2`];
}
