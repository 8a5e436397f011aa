import { join } from "node:path";
import { CacheServer, startOnFreePort } from "./cache_server.ts";
import { freePort } from "./free_port.ts";
import { redisCommand, type RedisReply } from "./redis_command.ts";

/** Options of a redis-server. */
export interface RedisOptions {
  /** The program; redis-server when absent. */
  readonly program?: "redis-server" | "valkey-server";
  /** Listen on a unix socket as well. */
  readonly unixSocket?: boolean;
  /** A file of settings that the server may rewrite, as a sentinel does. */
  readonly configFile?: string;
  /** Further arguments of redis-server, such as `["--requirepass", "secret"]`. */
  readonly args?: readonly string[];
  /** Listen for TLS on its own port as well. */
  readonly tls?: RedisTls;
  /** Its output goes nowhere, as that of a server which outlives a test must. */
  readonly isSilent?: boolean;
}

/** Files in PEM that a server speaks TLS with. */
export interface RedisTls {
  readonly certFile: string;
  readonly keyFile: string;
  /** Authority of the certificates that clients show. */
  readonly authorityFile: string;
  /** True if a client has to show one; yes when absent. */
  readonly asksClients?: boolean;
}

/** Starts a redis-server of the test's own, on a free port of the loopback address, without persistence. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const folder = await Deno.makeTempDir({ prefix: "weir_redis_" });
  return await startOnFreePort((port) => new RedisServer(port, folder, options));
}

/** A running redis-server; killed at the end of an `await using`. */
export class RedisServer extends CacheServer {
  /** Path of its unix socket, where one was asked for. */
  readonly socketPath: string | undefined;
  /** Port on 127.0.0.1 that speaks TLS, where that was asked for; 0 where not. */
  readonly tlsPort: number;
  /** `127.0.0.1:port` of that port. */
  readonly tlsUrl: string;
  readonly folder: string;
  readonly #password: string | undefined;

  constructor(port: number, folder: string, options: RedisOptions) {
    const extra = options.args ?? [];
    const socketPath = options.unixSocket === true ? join(folder, "redis.sock") : undefined;
    const socket = socketPath === undefined ? [] : ["--unixsocket", socketPath];
    const tlsPort = options.tls === undefined ? 0 : freePort();
    const tls = options.tls === undefined ? [] : tlsArgs(options.tls, tlsPort);
    const network = ["--port", String(port), "--bind", "127.0.0.1", ...socket, ...tls];
    const file = options.configFile === undefined ? [] : [options.configFile];
    const args = [...file, ...network, "--save", "", "--appendonly", "no", "--dir", folder, ...extra];
    super({ program: options.program ?? "redis-server", port, args, isSilent: options.isSilent });
    this.socketPath = socketPath;
    this.tlsPort = tlsPort;
    this.tlsUrl = `127.0.0.1:${tlsPort}`;
    this.folder = folder;
    const password = extra.indexOf("--requirepass");
    this.#password = password === -1 ? undefined : extra[password + 1];
  }

  /** Sends one command over its own connection; lists come back with a line for each element. */
  async command(...args: readonly (string | number)[]): Promise<RedisReply> {
    return await redisCommand(args.map(String), { port: this.port, password: this.#password });
  }

  /** Kills the server and removes its folder. */
  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true });
  }

  protected override async answers(pid: number): Promise<boolean> {
    const server = await this.command("INFO", "server");
    // Without this check a server of another test on the same port would pass for ours.
    return String(server).includes(`process_id:${pid}\r\n`);
  }
}

function tlsArgs(tls: RedisTls, port: number): string[] {
  return [
    ...["--tls-port", String(port), "--tls-auth-clients", tls.asksClients === false ? "no" : "yes"],
    ...["--tls-cert-file", tls.certFile, "--tls-key-file", tls.keyFile],
    ...["--tls-ca-cert-file", tls.authorityFile],
  ];
}
