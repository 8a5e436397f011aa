import { join } from "node:path";
import type { Certificates } from "./certificates.ts";
import { type RedisOptions, type RedisServer, startRedis } from "./redis_server.ts";
import { until } from "./until.ts";

/** Options of a redis sentinel. */
interface RedisSentinelOptions {
  /** Number of replicas that follow the primary; 1 when absent. */
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
/** Interval at which sentinels tell the others what they know. */
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

/** Servers watched by sentinels; killed at the end of an `await using`. */
export class RedisSentinel implements AsyncDisposable {
  readonly #folder: string;
  readonly #options: RedisSentinelOptions;
  readonly #servers: RedisServer[] = [];
  readonly #sentinels: RedisServer[] = [];

  constructor(folder: string, options: RedisSentinelOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  /** The name of the primary and every sentinel, as `KV_URL` takes them. */
  get url(): string {
    return [PRIMARY_NAME, ...this.#sentinels.map((one) => `127.0.0.1:${this.#clientPort(one)}`)].join(",");
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
    const followed = ["--replicaof", "127.0.0.1", String(this.#clientPort(primary))];
    for (let count = 0; count < replicas; count++) await this.#startServer(followed);
    await until("the replicas to follow the primary", async () => {
      const text = String(await primary.command("INFO", "replication"));
      return (text.match(/state=online/g) ?? []).length === replicas;
    });
    for (let index = 0; index < SENTINELS; index++) await this.#startSentinel(primary, index);
    for (const sentinel of this.#sentinels) {
      await until("a sentinel to know the others", async () => {
        const field = await primaryFields(sentinel);
        return Number(field("num-other-sentinels")) === SENTINELS - 1 &&
          Number(field("num-slaves")) === replicas;
      });
    }
  }

  /** The server that a majority of the sentinels calls the primary and that sees itself as one. */
  async primary(): Promise<RedisServer | undefined> {
    const votes = await Promise.all(this.#sentinels.map(primaryPort));
    for (const server of this.#servers) {
      const port = this.#clientPort(server);
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
    for (const sentinel of this.#sentinels) {
      await until("a sentinel to know the replicas", async () => {
        const text = String(await sentinel.command("SENTINEL", "REPLICAS", PRIMARY_NAME));
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
    await this.#sentinels[index]?.kill();
  }

  /** Kills everything and removes its files. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#sentinels, ...this.#servers].map((one) => one[Symbol.asyncDispose]()));
    await Deno.remove(this.#folder, { recursive: true });
  }

  /** Has a sentinel begin: it would be long until they miss a primary. Answers the new one. */
  async #replace(old: RedisServer): Promise<RedisServer> {
    const sentinel = this.#sentinels.find(({ running }) => running);
    return await until("another primary", async () => {
      if (sentinel === undefined) return undefined;
      const field = await primaryFields(sentinel);
      const isBegun = Number(field("port")) !== this.#clientPort(old) ||
        field("flags")?.includes("failover_in_progress") === true;
      // One that was given up is begun again.
      if (!isBegun) await sentinel.command("SENTINEL", "FAILOVER", PRIMARY_NAME);
      const primary = await this.primary();
      return primary === old ? undefined : primary;
    });
  }

  async #setPublishPeriod(ms: number): Promise<void> {
    for (const sentinel of this.#sentinels) await debug(sentinel, "publish-period", ms);
  }

  /** The TLS port if there is one. */
  #clientPort(server: RedisServer): number {
    return this.#options.certificates === undefined ? server.port : server.tlsPort;
  }

  /** A server or a sentinel: TLS where it is asked for, on its own port. */
  async #start(options: RedisOptions): Promise<RedisServer> {
    const { certificates } = this.#options;
    if (certificates === undefined) return await startRedis(options);
    const args = [...options.args ?? [], "--tls-replication", "yes"];
    return await startRedis({ ...options, args, tls: certificates.redisTls() });
  }

  async #startServer(more: readonly string[] = []): Promise<RedisServer> {
    const { password, args = [] } = this.#options;
    const login = password === undefined ? [] : ["--requirepass", password, "--masterauth", password];
    const server = await this.#start({
      args: ["--repl-diskless-sync-delay", "0", ...login, ...more, ...args],
    });
    this.#servers.push(server);
    return server;
  }

  async #startSentinel(primary: RedisServer, index: number): Promise<void> {
    const { password, sentinelPassword } = this.#options;
    const login = (name: string, word?: string) => word === undefined ? [] : [`sentinel ${name} ${word}`];
    // A sentinel rewrites its file, so that each needs a separate one.
    const configFile = join(this.#folder, `sentinel_${index}.conf`);
    const lines = [
      `sentinel monitor ${PRIMARY_NAME} 127.0.0.1 ${this.#clientPort(primary)} 2`,
      `sentinel down-after-milliseconds ${PRIMARY_NAME} ${LONG_MS}`,
      `sentinel failover-timeout ${PRIMARY_NAME} 10000`,
      ...login(`auth-pass ${PRIMARY_NAME}`, password),
      ...login("sentinel-pass", sentinelPassword),
    ];
    await Deno.writeTextFile(configFile, lines.join("\n") + "\n");
    const own = sentinelPassword === undefined ? [] : ["--requirepass", sentinelPassword];
    const sentinel = await this.#start({ configFile, args: [...own, "--sentinel"] });
    this.#sentinels.push(sentinel);
    // A demoted primary would stay one for 10 seconds else, and the sentinels would meet later.
    await debug(sentinel, "info-period", 1_000);
    await debug(sentinel, "publish-period", PUBLISH_MS);
  }
}

async function debug(sentinel: RedisServer, name: string, ms: number): Promise<void> {
  await sentinel.command("SENTINEL", "DEBUG", name, ms);
}

async function primaryFields(sentinel: RedisServer): Promise<(name: string) => string | undefined> {
  const lines = String(await sentinel.command("SENTINEL", "MASTER", PRIMARY_NAME)).split("\n");
  return (name) => lines[lines.indexOf(name) + 1];
}

/** The port of what a sentinel calls the primary; 0 from one that does not answer. */
async function primaryPort(sentinel: RedisServer): Promise<number> {
  const answer = sentinel.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", PRIMARY_NAME).catch(() => "");
  return Number(String(await answer).split("\n")[1] ?? 0);
}
