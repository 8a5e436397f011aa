import { join } from "node:path";
import type { Certificates } from "./certificates.ts";
import { ChildProcess } from "./child_process.ts";
import { freePort } from "./free_port.ts";
import { redisCommand, type RedisReply } from "./redis_command.ts";
import { type RedisServer, startRedis } from "./redis_server.ts";
import { requireTool } from "./tools.ts";
import { until } from "./until.ts";

/** How a primary with replicas and its sentinels are to run. */
export interface RedisSentinelOptions {
  /** How many replicas follow the primary; 1 when absent. */
  readonly replicas?: number;
  /** Password of the primary and its replicas. */
  readonly password?: string;
  /** Password of the sentinels. */
  readonly sentinelPassword?: string;
  /** Everybody speaks TLS with everybody and shows a certificate. */
  readonly certificates?: Certificates;
  /** Further arguments of the primary and its replicas. */
  readonly args?: readonly string[];
}

const SENTINELS = 3;
/** How often sentinels tell the others what they know. */
const PUBLISH_MS = 500;
/** A machine may stand still for a while without a server being taken for lost. */
const LONG_MS = 30_000;
/** Under which name the sentinels watch the primary. */
const PRIMARY_NAME = "weir-primary";

/** Starts a primary, its replicas and three sentinels that know one another. */
export async function startRedisSentinel(options: RedisSentinelOptions = {}): Promise<RedisSentinel> {
  const group = new RedisSentinel(await Deno.makeTempDir({ prefix: "weir_sentinel_" }), options);
  try {
    await group.start();
    return group;
  } catch (error) {
    await group[Symbol.asyncDispose]();
    throw error;
  }
}

/** One sentinel: a process, and where it listens. */
interface Sentinel {
  readonly child: ChildProcess;
  readonly port: number;
  /** Where clients find it: the TLS port where there is one. */
  readonly clientPort: number;
}

/** Servers watched by sentinels; killed at the end of an `await using`. */
export class RedisSentinel implements AsyncDisposable {
  readonly #folder: string;
  readonly #options: RedisSentinelOptions;
  readonly #servers: RedisServer[] = [];
  readonly #sentinels: Sentinel[] = [];

  constructor(folder: string, options: RedisSentinelOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  /** The name of the primary and every sentinel, as `KV_URL` takes them. */
  get url(): string {
    return [PRIMARY_NAME, ...this.#sentinels.map(({ clientPort }) => `127.0.0.1:${clientPort}`)].join(",");
  }

  /** The primary of the beginning, then the replicas of the beginning. */
  get servers(): readonly RedisServer[] {
    return this.#servers;
  }

  /** Ports on 127.0.0.1 where the sentinels take commands without TLS. */
  get sentinelPorts(): readonly number[] {
    return this.#sentinels.map(({ port }) => port);
  }

  /** Starts everything and waits until every sentinel knows every server. */
  async start(): Promise<void> {
    const replicas = this.#options.replicas ?? 1;
    const primary = await this.#startServer();
    const followed = ["--replicaof", "127.0.0.1", String(this.#announcedPort(primary))];
    for (let count = 0; count < replicas; count++) await this.#startServer(followed);
    await until("the replicas to follow the primary", async () => {
      const text = String(await primary.command("INFO", "replication"));
      return (text.match(/state=online/g) ?? []).length === replicas;
    });
    for (let index = 0; index < SENTINELS; index++) await this.#startSentinel(primary, index);
    for (const { port } of this.#sentinels) {
      await until("a sentinel to know the others", async () => {
        const field = await this.#primaryFields(port);
        return Number(field("num-other-sentinels")) === SENTINELS - 1 &&
          Number(field("num-slaves")) === replicas;
      });
    }
  }

  /** Sends one command to the sentinel at the port. */
  async sentinelCommand(port: number, ...args: readonly string[]): Promise<RedisReply> {
    return await redisCommand(args, { port, password: this.#options.sentinelPassword });
  }

  /** The server that a majority of the sentinels calls the primary and that sees itself as one. */
  async primary(): Promise<RedisServer | undefined> {
    const votes = await Promise.all(this.#sentinels.map(({ port }) => this.#primaryPort(port)));
    for (const server of this.#servers) {
      const port = this.#announcedPort(server);
      if (votes.filter((vote) => vote === port).length <= SENTINELS / 2) continue;
      const role = await server.command("ROLE").catch(() => "");
      return String(role).startsWith("master") ? server : undefined;
    }
    return undefined;
  }

  /**
   * Makes a replica the primary, as an operator would, and answers it; the old one lives on as a replica.
   * During `meanwhile` it goes on as if it were the primary.
   */
  async failover(
    meanwhile: (next: RedisServer) => Promise<void> = () => Promise.resolve(),
  ): Promise<RedisServer> {
    const old = await until("a primary", () => this.primary());
    // Four of these periods after a failover the old primary is demoted.
    await this.#setPublishPeriod(LONG_MS);
    const next = await this.#replace(old);
    await meanwhile(next);
    await this.#setPublishPeriod(PUBLISH_MS);
    await until("the old primary to be demoted", async () => {
      return String(await old.command("ROLE")).startsWith("slave");
    });
    // A sentinel that does not know it yet would demote it once more, whatever it has become by then.
    for (const { port } of this.#sentinels) {
      await until("a sentinel to know the replicas", async () => {
        const text = String(await this.sentinelCommand(port, "SENTINEL", "REPLICAS", PRIMARY_NAME));
        return (text.match(/^role-reported\nslave$/gm) ?? []).length === this.#servers.length - 1;
      });
    }
    return next;
  }

  /** Kills the primary, and answers the replica that is put in its place. */
  async killPrimary(): Promise<RedisServer> {
    const old = await until("a primary", () => this.primary());
    await old.kill();
    return await this.#replace(old);
  }

  /** Kills one sentinel. */
  async killSentinel(index: number): Promise<void> {
    await this.#sentinels[index]?.child.kill();
  }

  /** Kills everything and removes its files. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#sentinels.map(({ child }) => child.kill()));
    await Promise.all(this.#servers.map((server) => server[Symbol.asyncDispose]()));
    await Deno.remove(this.#folder, { recursive: true });
  }

  /** Has a sentinel begin: it would be long until they miss a primary. Answers the new one. */
  async #replace(old: RedisServer): Promise<RedisServer> {
    const { port = 0 } = this.#sentinels.find(({ child }) => child.running) ?? {};
    return await until("another primary", async () => {
      const field = await this.#primaryFields(port);
      const isBegun = Number(field("port")) !== this.#announcedPort(old) ||
        field("flags")?.includes("failover_in_progress") === true;
      // One that was given up is begun again.
      if (!isBegun) await this.sentinelCommand(port, "SENTINEL", "FAILOVER", PRIMARY_NAME);
      const primary = await this.primary();
      return primary === old ? undefined : primary;
    });
  }

  /** What a sentinel knows of the primary, by name. */
  async #primaryFields(port: number): Promise<(name: string) => string | undefined> {
    const text = String(await this.sentinelCommand(port, "SENTINEL", "MASTER", PRIMARY_NAME));
    const lines = text.split("\n");
    return (name) => lines[lines.indexOf(name) + 1];
  }

  async #setPublishPeriod(ms: number): Promise<void> {
    for (const { port } of this.#sentinels) {
      await this.sentinelCommand(port, "SENTINEL", "DEBUG", "publish-period", String(ms));
    }
  }

  /** 0 from a sentinel that does not answer. */
  async #primaryPort(port: number): Promise<number> {
    try {
      const answer = await this.sentinelCommand(port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", PRIMARY_NAME);
      return Number(String(answer).split("\n")[1]);
    } catch {
      return 0;
    }
  }

  #announcedPort(server: RedisServer): number {
    return this.#options.certificates === undefined ? server.port : server.tlsPort;
  }

  async #startServer(more: readonly string[] = []): Promise<RedisServer> {
    const { password, certificates, args = [] } = this.#options;
    const login = password === undefined ? [] : ["--requirepass", password, "--masterauth", password];
    const overTls = certificates === undefined ? [] : ["--tls-replication", "yes"];
    const server = await startRedis({
      args: ["--repl-diskless-sync-delay", "0", ...login, ...overTls, ...more, ...args],
      ...(certificates === undefined ? {} : { tls: certificates.redisTls() }),
    });
    this.#servers.push(server);
    return server;
  }

  async #startSentinel(primary: RedisServer, index: number): Promise<void> {
    const { certificates } = this.#options;
    const port = freePort();
    const clientPort = certificates === undefined ? port : freePort();
    // A sentinel rewrites its file, so that each needs one of its own.
    const file = join(this.#folder, `sentinel_${index}.conf`);
    await Deno.writeTextFile(file, this.#sentinelConfig(primary, port, clientPort).join("\n") + "\n");
    const child = new ChildProcess(requireTool("redis-server"), { args: [file, "--sentinel"] });
    this.#sentinels.push({ child, port, clientPort });
    await until("a sentinel", async () => !child.running || await this.sentinelCommand(port, "PING"));
    if (!child.running) {
      throw new Error(`Cannot start a sentinel: it ended: ${child.stdoutLines.slice(-3).join("; ")}`);
    }
    // A demoted primary would stay one for 10 seconds else, and the sentinels would meet later.
    const periods = ["info-period", "1000", "publish-period", String(PUBLISH_MS)];
    await this.sentinelCommand(port, "SENTINEL", "DEBUG", ...periods);
  }

  #sentinelConfig(primary: RedisServer, port: number, clientPort: number): string[] {
    const { password, sentinelPassword, certificates } = this.#options;
    const lines = [
      ...[`port ${port}`, "bind 127.0.0.1", `dir ${this.#folder}`],
      `sentinel monitor ${PRIMARY_NAME} 127.0.0.1 ${this.#announcedPort(primary)} 2`,
      `sentinel down-after-milliseconds ${PRIMARY_NAME} ${LONG_MS}`,
      `sentinel failover-timeout ${PRIMARY_NAME} 10000`,
    ];
    if (password !== undefined) lines.push(`sentinel auth-pass ${PRIMARY_NAME} ${password}`);
    if (sentinelPassword !== undefined) {
      lines.push(`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`);
    }
    if (certificates !== undefined) {
      lines.push(`tls-port ${clientPort}`, "tls-replication yes", "tls-auth-clients yes");
      lines.push(
        `tls-cert-file ${certificates.server.certFile}`,
        `tls-key-file ${certificates.server.keyFile}`,
      );
      lines.push(`tls-ca-cert-file ${certificates.authority.certFile}`);
    }
    return lines;
  }
}
