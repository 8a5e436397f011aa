import { writeAll } from "./redis_command.ts";
import { CacheServer, startOnFreePort } from "./cache_server.ts";
import type { CertificateFiles } from "./certificates.ts";
import { until } from "./until.ts";

/** Options of a memcached. */
interface MemcachedOptions {
  /** Speak TLS, and nothing else. */
  readonly tls?: MemcachedTls;
  /** Further arguments, such as `["-c", "10"]`. */
  readonly args?: readonly string[];
  /** Its output goes nowhere, as that of a server which outlives a test must. */
  readonly isSilent?: boolean;
}

/** The files that TLS is spoken with. */
interface MemcachedTls extends CertificateFiles {
  /** Only clients of this authority are let in. */
  readonly authorityFile: string;
}

/** A command that does nothing, and its answer: what came before that is the whole of another answer. */
const NOTHING = { command: "mn\r\n", answer: "MN\r\n" };

/** Starts a memcached of the test's own, on a free port of the loopback address. */
export async function startMemcached(options: MemcachedOptions = {}): Promise<Memcached> {
  return await startOnFreePort((port) => new Memcached(port, options));
}

/** A running memcached; killed at the end of an `await using`. */
export class Memcached extends CacheServer {
  readonly #isSecure: boolean;

  constructor(port: number, options: MemcachedOptions) {
    // It refuses to run as root unless an option allows it.
    const user = Deno.uid() === 0 ? ["-u", "root"] : [];
    const network = ["-l", "127.0.0.1", "-p", String(port), "-U", "0", "-t", "1", ...user];
    const args = [...network, ...tlsArgs(options.tls), ...options.args ?? []];
    super({ program: "memcached", port, args, isSilent: options.isSilent });
    this.#isSecure = options.tls !== undefined;
  }

  /** Sends one line over its own plain connection and answers the lines that come back. */
  async command(line: string): Promise<string[]> {
    const text = await this.#exchange(`${line}\r\n${NOTHING.command}`, NOTHING.answer);
    return text.slice(0, -NOTHING.answer.length).trimEnd().split("\r\n");
  }

  /** Every key that it holds. */
  async keys(): Promise<string[]> {
    // Whatever follows this command in one piece with it is lost. The server refuses it while its own crawler runs.
    const dump = () => this.#exchange("lru_crawler metadump all\r\n", "END\r\n");
    const text = await until("the list of keys", dump);
    const keys = Array.from(text.matchAll(/^key=(\S+)/gm), ([, key = ""]) => decodeURIComponent(key));
    return [...new Set(keys)];
  }

  async #exchange(request: string, end: string): Promise<string> {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port: this.port });
    // It may not read on before its answers are read.
    const written = writeAll(connection, new TextEncoder().encode(request));
    const decoder = new TextDecoder();
    const buffer = new Uint8Array(65_536);
    let text = "";
    while (!text.endsWith(end)) {
      const length = await connection.read(buffer);
      if (length === null) throw new Error("Cannot read an answer of memcached: it closed the connection");
      text += decoder.decode(buffer.subarray(0, length), { stream: true });
      if (/^(?:BUSY|[A-Z]*ERROR)\b.*\r\n$/.test(text) && end !== NOTHING.answer) {
        throw new Error(`Cannot use an answer of memcached: ${text.trimEnd()}`);
      }
    }
    await written;
    return text;
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

  protected override async answers(pid: number): Promise<boolean> {
    if (this.#isSecure) {
      // It says nothing to those who do not speak TLS, but only itself can hold the port.
      using connection = await Deno.connect({ hostname: "127.0.0.1", port: this.port });
      return connection.remoteAddr !== undefined;
    }
    // Without this check a server of another test on the same port would pass for ours.
    return await this.stat("pid") === pid;
  }
}

function tlsArgs(tls: MemcachedTls | undefined): string[] {
  if (tls === undefined) return [];
  const files = `ssl_chain_cert=${tls.certFile},ssl_key=${tls.keyFile},ssl_ca_cert=${tls.authorityFile}`;
  // 2: a client without a certificate of the authority is refused.
  return ["-Z", "-o", `${files},ssl_verify_mode=2`];
}
