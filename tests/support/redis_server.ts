import { join } from "node:path";
import { ChildProcess } from "./child_process.ts";
import { freePort } from "./free_port.ts";
import { redisCommand, type RedisReply } from "./redis_command.ts";
import { requireTool } from "./tools.ts";
import { until } from "./until.ts";

/** How a redis-server is to run. */
export interface RedisOptions {
  /** Listen on a unix socket as well. */
  readonly unixSocket?: boolean;
  /** Further arguments of redis-server, such as `["--requirepass", "secret"]`. */
  readonly args?: readonly string[];
  /** Listen for TLS on a port of its own as well. */
  readonly tls?: RedisTls;
}

/** Files in PEM that a server speaks TLS with. */
export interface RedisTls {
  readonly certFile: string;
  readonly keyFile: string;
  /** Authority of the certificates that clients show. */
  readonly authorityFile: string;
  /** Whether a client has to show one; yes when absent. */
  readonly asksClients?: boolean;
}

/** Starts a redis-server of the test's own, on a free port of the loopback address, without persistence. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const folder = await Deno.makeTempDir({ prefix: "weir_redis_" });
  const attempts = 3;
  for (let attempt = 1;; attempt++) {
    const server = new RedisServer(freePort(), folder, options);
    try {
      await server.restartOnSamePort();
      return server;
    } catch (error) {
      await server.kill();
      // Somebody else may have taken the port in between; anything else fails again.
      if (attempt === attempts) {
        await server[Symbol.asyncDispose]();
        throw error;
      }
    }
  }
}

/** A running redis-server; killed at the end of an `await using`. */
export class RedisServer implements AsyncDisposable {
  /** Its TCP port on 127.0.0.1. */
  readonly port: number;
  /** `127.0.0.1:port`, as `KV_URL` takes it. */
  readonly url: string;
  /** Path of its unix socket, where one was asked for. */
  readonly socketPath: string | undefined;
  /** Port on 127.0.0.1 that speaks TLS, where that was asked for; 0 where not. */
  readonly tlsPort: number;
  /** `127.0.0.1:port` of that port. */
  readonly tlsUrl: string;
  readonly #folder: string;
  readonly #args: readonly string[];
  readonly #password: string | undefined;
  #child: ChildProcess | undefined;

  constructor(port: number, folder: string, options: RedisOptions) {
    this.port = port;
    this.url = `127.0.0.1:${port}`;
    this.socketPath = options.unixSocket === true ? join(folder, "redis.sock") : undefined;
    this.#folder = folder;
    const extra = options.args ?? [];
    const password = extra.indexOf("--requirepass");
    this.#password = password === -1 ? undefined : extra[password + 1];
    const socket = this.socketPath === undefined ? [] : ["--unixsocket", this.socketPath];
    this.tlsPort = options.tls === undefined ? 0 : freePort();
    this.tlsUrl = `127.0.0.1:${this.tlsPort}`;
    const tls = options.tls === undefined ? [] : tlsArgs(options.tls, this.tlsPort);
    const network = ["--port", String(port), "--bind", "127.0.0.1", ...socket, ...tls];
    this.#args = [...network, "--save", "", "--appendonly", "no", "--dir", folder, ...extra];
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
    const child = new ChildProcess(requireTool("redis-server"), { args: this.#args });
    this.#child = child;
    await until("redis-server", async () => !child.running || await this.#answers());
    if (!child.running) {
      throw new Error(`Cannot start "redis-server": it ended: ${child.stdoutLines.slice(-3).join("; ")}`);
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

  /** Sends one command over a connection of its own; lists come back with a line for each element. */
  async command(...args: readonly (string | number)[]): Promise<RedisReply> {
    return await redisCommand(args.map(String), { port: this.port, password: this.#password });
  }

  /** Kills the server and removes its folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await Deno.remove(this.#folder, { recursive: true });
  }

  async #answers(): Promise<boolean> {
    const server = await this.command("INFO", "server");
    // Without this check a server of another test on the same port would pass for ours.
    return String(server).includes(`process_id:${this.#child?.pid}\r\n`);
  }
}

function tlsArgs(tls: RedisTls, port: number): string[] {
  return [
    ...["--tls-port", String(port), "--tls-auth-clients", tls.asksClients === false ? "no" : "yes"],
    ...["--tls-cert-file", tls.certFile, "--tls-key-file", tls.keyFile],
    ...["--tls-ca-cert-file", tls.authorityFile],
  ];
}
