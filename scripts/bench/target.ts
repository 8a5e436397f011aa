import { fileURLToPath } from "node:url";
import type { ExpectedCode } from "./answer.ts";
import { makeCertificate } from "./certificate.ts";
import { Child } from "./child.ts";
import type { EngineName } from "./options.ts";
import { type LoadName, RULES } from "./rate_limit_message.ts";
import type { TargetName } from "./scenario.ts";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));
const GRPC_ADDRESS = /Listening for gRPC on '[^']*:(\d+)'/;
const DEBUG_ADDRESS = /Listening for debug on '[^']*:(\d+)'/;

/** What Weir counted for the rule of one load. */
export interface RuleCounts {
  readonly totalHits: number;
  /** Within the limit and over it: hits that were decided. */
  readonly decided: number;
}

/** Something that is measured. */
export interface Target {
  readonly name: TargetName;
  /** The process whose CPU is counted; absent where it is the generator itself. */
  readonly pid?: number;
  /** Port of its gRPC listener; of redis-server for the bare round trips. */
  readonly port: number;
  readonly expect: ExpectedCode;
  /** What it counted so far; absent where nothing is counted. */
  readonly counts?: (load: LoadName) => Promise<RuleCounts>;
  /** Port of the redis-server that holds its counters. */
  readonly redisPort?: number;
  /** File with the certificate that its own is signed by, when it speaks TLS. */
  readonly caFile?: string;
}

/** Starts targets when they are first asked for, each once; what they need is ended by `owned`. */
export class Targets {
  readonly #engine: EngineName;
  readonly #owned: AsyncDisposableStack;
  readonly #folder: string;
  readonly #started = new Map<TargetName, Promise<Target>>();
  #redis: Promise<number> | undefined;

  constructor(options: {
    readonly engine: EngineName;
    readonly owned: AsyncDisposableStack;
    /** For files; it exists. */
    readonly folder: string;
  }) {
    this.#engine = options.engine;
    this.#owned = options.owned;
    this.#folder = options.folder;
  }

  /** The target with this name. */
  get(name: TargetName): Promise<Target> {
    let target = this.#started.get(name);
    if (target === undefined) this.#started.set(name, target = this.#start(name));
    return target;
  }

  async #start(name: TargetName): Promise<Target> {
    switch (name) {
      case "echo":
        return await this.#startServer(name, "scripts/bench/echo_server.ts", []);
      case "echo-tls":
        return await this.#startTls(name, "scripts/bench/echo_server.ts", []);
      case "memory-tls":
        return await this.#startTls(name, "scripts/bench/tls_server.ts", ["--engine", this.#engine]);
      case "memory":
        return await this.#startWeir(name, { BACKEND_TYPE: "memory" });
      case "redis": {
        const redisPort = await this.#redisPort();
        return { ...await this.#startWeir(name, { KV_URL: `127.0.0.1:${redisPort}` }), redisPort };
      }
      case "bare": {
        const redisPort = await this.#redisPort();
        return { name, port: redisPort, redisPort, expect: "OK" };
      }
    }
  }

  async #startTls(name: TargetName, script: string, args: string[]): Promise<Target> {
    const { keyFile, certFile } = await makeCertificate(this.#folder);
    const target = await this.#startServer(name, script, [...args, "--key", keyFile, "--cert", certFile]);
    return { ...target, caFile: certFile };
  }

  async #startServer(name: TargetName, script: string, args: string[]): Promise<Target> {
    const child = this.#owned.use(denoChild(name, ["run", "-A", script, ...args], {}));
    if (name === "echo" || name === "echo-tls") {
      const { grpc } = await child.find({ grpc: GRPC_ADDRESS });
      return { name, pid: child.pid, port: Number(grpc), expect: "echo" };
    }
    return await countingTarget(name, child);
  }

  async #startWeir(name: TargetName, settings: Record<string, string>): Promise<Target> {
    const child = this.#owned.use(
      await startWeir({ ...settings, GRPC_ENGINE: this.#engine }, `${this.#folder}/${name}`),
    );
    return await countingTarget(name, child);
  }

  #redisPort(): Promise<number> {
    return this.#redis ??= startRedis(this.#owned, this.#folder);
  }
}

/** A child of the running Deno with Weir and the rules of the bench; it may not listen yet. */
export async function startWeir(settings: Record<string, string>, root: string): Promise<Child> {
  await Deno.mkdir(`${root}/config`, { recursive: true });
  await Deno.writeTextFile(`${root}/config/bench.yaml`, RULES);
  return denoChild("Weir", ["run", "-A", "main.ts", "serve"], {
    ...{ HOST: "127.0.0.1", PORT: "0", GRPC_HOST: "127.0.0.1", GRPC_PORT: "0" },
    ...{ DEBUG_HOST: "127.0.0.1", DEBUG_PORT: "0", LOG_LEVEL: "warning" },
    ...{ RUNTIME_ROOT: root, RUNTIME_WATCH_ROOT: "false", DISABLE_STATS: "true" },
    ...settings,
  });
}

/** A target that says where it listens for gRPC and for debug. */
export async function countingTarget(name: TargetName, child: Child): Promise<Target> {
  const { grpc, debug } = await child.find({ grpc: GRPC_ADDRESS, debug: DEBUG_ADDRESS });
  const counts = (load: LoadName) => readCounts(Number(debug), load);
  return { name, pid: child.pid, port: Number(grpc), expect: "OK", counts };
}

/** A child of the running Deno. It sees no setting of the caller but those that say where programs and caches are. */
function denoChild(name: string, args: string[], settings: Record<string, string>): Child {
  const env: Record<string, string> = { ...settings };
  for (const kept of ["PATH", "HOME", "DENO_DIR", "XDG_CACHE_HOME", "ALLOW_UNSAFE_DENO"]) {
    const value = Deno.env.get(kept);
    if (value !== undefined) env[kept] = value;
  }
  return new Child(name, Deno.execPath(), { args, cwd: PROJECT, clearEnv: true, env });
}

async function startRedis(owned: AsyncDisposableStack, folder: string): Promise<number> {
  const port = freePort();
  const args = [
    "--port",
    `${port}`,
    "--bind",
    "127.0.0.1",
    "--save",
    "",
    "--appendonly",
    "no",
    "--dir",
    folder,
  ];
  const redis = owned.use(new Child("redis-server", "redis-server", { args }));
  await redis.find({ ready: /Ready to accept connections/ });
  return port;
}

async function readCounts(debugPort: number, load: LoadName): Promise<RuleCounts> {
  const response = await fetch(`http://127.0.0.1:${debugPort}/stats`);
  const text = await response.text();
  if (!response.ok) throw new Error(`Cannot read /stats: HTTP ${response.status}`);
  const count = (stat: string) => {
    const name = `ratelimit.service.rate_limit.bench.load_${load}.key.${stat}: `;
    const line = text.split("\n").find((candidate) => candidate.startsWith(name));
    return line === undefined ? 0 : Number(line.slice(name.length));
  };
  return { totalHits: count("total_hits"), decided: count("within_limit") + count("over_limit") };
}

/** A port of the loopback that nobody listens on now. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
