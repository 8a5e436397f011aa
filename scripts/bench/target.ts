import { fileURLToPath } from "node:url";
import { makeCertificates } from "../../tests/harness/certificates.ts";
import { ChildProcess } from "../../tests/harness/child_process.ts";
import { freePort } from "../../tests/harness/free_port.ts";
import { startMemcached } from "../../tests/harness/memcached.ts";
import { startRedisCluster } from "../../tests/harness/redis_cluster.ts";
import { startRedis } from "../../tests/harness/redis_server.ts";
import { runtimeEnvironment } from "../../tests/harness/weir_command.ts";
import { startWeir, type WeirOptions, type WeirProcess } from "../../tests/harness/weir_process.ts";
import { SERVE_FLAGS } from "../serve_flags.ts";
import type { ExpectedCode } from "../../tests/harness/bench_answer.ts";
import { sumInMemcached, sumInRedis } from "./counter_sums.ts";
import { featureSettings } from "./feature_settings.ts";
import type { EngineName } from "./options.ts";
import { type RuleName, RULES, RULES_WITH_EVENTS } from "../../tests/harness/bench_rules.ts";
import { type Peer, type PeerName, startOriginal } from "./peers.ts";
import type { TargetName } from "./scenario.ts";
import { startEventReceiver, storeSettings, subscribeToLimits } from "./event_settings.ts";
import { startPushReceiver, startScraper, startSpanReceiver } from "./stats_receivers.ts";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));
const GRPC_ADDRESS = /Listening for gRPC on '[^']*:(\d+)'/;

/** Nodes of the cluster. */
const CLUSTER_NODES = 3;
/** Room for counters, which is not taken before it is used, and the threads that memcached has by itself. */
const MEMCACHED_ARGS = ["-m", "256", "-t", "4"];

const WITHOUT_TABLE = fileURLToPath(new URL("./without_table.ts", import.meta.url));
const KV = { BACKEND_TYPE: "kv" } as const;

/** Hits that Weir counted for some rules. */
export interface RuleCounts {
  readonly totalHits: number;
  /** Within the limit and over it: hits that were decided. */
  readonly decided: number;
}

/** Servers that hold counters to the end of the run. */
export interface CounterStore {
  readonly name: string;
  /** The sum of all its counters. */
  readonly sum: () => Promise<number>;
}

/** Something that is measured. */
export interface Target {
  readonly name: TargetName;
  /** The process whose CPU is counted; absent where it is the generator itself. */
  readonly pid?: number;
  /** Its address if it runs already, perhaps on another machine; absent for the servers of the bench. */
  readonly host?: string;
  /** Port of its gRPC listener; of redis-server for the bare round trips. */
  readonly port: number;
  readonly expect: ExpectedCode;
  /** An answer without any status is right as well. */
  readonly areStatusesOptional?: true;
  /** Its counts so far; absent where nothing is counted. */
  readonly counts?: (rules: readonly RuleName[]) => Promise<RuleCounts>;
  /** The store of its lasting counters; several targets may share it. */
  readonly store?: CounterStore;
  /** File with the certificate that its own is signed by, when it speaks TLS. */
  readonly caFile?: string;
}

/** Starts targets when they are first asked for, each once; what they need is ended by `owned`. */
export class Targets {
  readonly #engine: EngineName;
  readonly #peers: readonly Peer[];
  readonly #owned: AsyncDisposableStack;
  readonly #folder: string;
  readonly #started = new Map<TargetName, Promise<Target>>();
  #certificates: ReturnType<typeof makeCertificates> | undefined;
  #redis: Promise<{ readonly port: number; readonly store: CounterStore }> | undefined;

  constructor(options: {
    readonly engine: EngineName;
    readonly peers?: readonly Peer[] | undefined;
    readonly owned: AsyncDisposableStack;
    /** For files; it exists. */
    readonly folder: string;
  }) {
    this.#engine = options.engine;
    this.#peers = options.peers ?? [];
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
      case "echo-tls": {
        const { keyFile, certFile, caFile } = await this.#tlsFiles();
        const args = ["--key", keyFile, "--cert", certFile];
        return { ...await this.#startServer(name, "scripts/bench/echo_server.ts", args), caFile };
      }
      case "memory-tls": {
        const { keyFile, certFile, caFile } = await this.#tlsFiles();
        const tls = {
          GRPC_SERVER_USE_TLS: "true",
          GRPC_SERVER_TLS_CERT: certFile,
          GRPC_SERVER_TLS_KEY: keyFile,
        };
        return { ...await this.#startWeir(name, { BACKEND_TYPE: "memory", ...tls }), caFile };
      }
      case "memory":
        return await this.#startWeir(name, { BACKEND_TYPE: "memory" });
      case "memory-plain":
        return await this.#startWeir(name, { BACKEND_TYPE: "memory" }, ["--preload", WITHOUT_TABLE]);
      case "redis":
      case "redis-workers": {
        const { port, store } = await this.#sharedRedis();
        const workers = name === "redis" ? {} : { WORKERS: "2" };
        return { ...await this.#startWeir(name, { ...KV, KV_URL: `127.0.0.1:${port}`, ...workers }), store };
      }
      case "bare":
        return { name, ...await this.#sharedRedis(), expect: "OK" };
      case "cluster":
        return await this.#startWithCluster(name);
      case "mc": {
        const memcached = this.#owned.use(await startMemcached({ isSilent: true, args: MEMCACHED_ARGS }));
        const settings = { BACKEND_TYPE: "mc", MC_HOST_PORT: memcached.url };
        const store = { name, sum: () => sumInMemcached(memcached) };
        return { ...await this.#startWeir(name, settings), store };
      }
      case "two-caches":
        return await this.#startWithTwo(name);
      case "memory-push":
        return await this.#startObserved(name, {
          STATS_FLUSH_INTERVAL: "1s",
          PUSH_STATS_HOST: "127.0.0.1",
          PUSH_STATS_PORT: `${startPushReceiver(this.#owned)}`,
        });
      case "memory-pull": {
        const port = freePort();
        const settings = { USE_PULL_METRICS: "true", PULL_METRICS_ADDR: `127.0.0.1:${port}` };
        const target = await this.#startObserved(name, settings);
        startScraper(this.#owned, `http://127.0.0.1:${port}/metrics`);
        return target;
      }
      case "memory-tracing":
        return await this.#startObserved(name, {
          DISABLE_STATS: "true",
          TRACING_ENABLED: "true",
          TRACING_SAMPLING_RATE: "0.01",
          OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await startSpanReceiver(this.#owned)}`,
        });
      case "features":
        return await this.#startWithFeatures(name);
      case "memory-store":
        return await this.#startWithStore(name, RULES);
      case "memory-events":
        return await this.#startWithStore(name, RULES_WITH_EVENTS);
      default:
        return await this.#peer(name);
    }
  }

  async #peer(name: PeerName): Promise<Target> {
    const peer = this.#peers.find((given) => given.name === name);
    if (peer === undefined) throw new Error(`Cannot measure ${name}: it was not given`);
    if (peer.name !== "original") return { ...peer, expect: "OK", areStatusesOptional: true };
    const { port } = this.#owned.use(await startRedis({ isSilent: true }));
    const server = await startOriginal(peer, port, this.#owned);
    return { name, ...server, expect: "OK", store: { name, sum: () => sumInRedis(port) } };
  }

  #startObserved(name: TargetName, settings: Record<string, string>): Promise<Target> {
    return this.#startWeir(name, { BACKEND_TYPE: "memory", DISABLE_STATS: "false", ...settings });
  }

  async #startWithCluster(name: TargetName): Promise<Target> {
    const cluster = this.#owned.use(await startRedisCluster({ primaries: CLUSTER_NODES }));
    const target = await this.#startWeir(name, { ...KV, KV_TYPE: "cluster", KV_URL: cluster.url });
    const sums = () => Promise.all(cluster.nodes.map(({ port }) => sumInRedis(port)));
    const sum = async () => (await sums()).reduce((total, one) => total + one, 0);
    return { ...target, store: { name, sum } };
  }

  async #startWithTwo(name: TargetName): Promise<Target> {
    const main = this.#owned.use(await startRedis({ isSilent: true }));
    const perSecond = this.#owned.use(await startRedis({ isSilent: true }));
    const second = { KV_PERSECOND: "true", KV_PERSECOND_URL: perSecond.url };
    const target = await this.#startWeir(name, { ...KV, KV_URL: main.url, ...second });
    return { ...target, store: { name: `${name}, main cache`, sum: () => sumInRedis(main.port) } };
  }

  async #startWithFeatures(name: TargetName): Promise<Target> {
    const folder = `${this.#folder}/${name}`;
    const { settings, metricsUrl, debugToken } = await featureSettings(folder, this.#owned);
    const weir = this.#owned.use(await startBenchWeir({ ...settings, GRPC_ENGINE: this.#engine }));
    const target = await weirTarget(name, weir, debugToken);
    startScraper(this.#owned, metricsUrl);
    return target;
  }

  /** An endpoint subscribes to the events of limits; it is in this process. */
  async #startWithStore(name: TargetName, rules: string): Promise<Target> {
    const folder = `${this.#folder}/${name}`;
    await Deno.mkdir(folder);
    const settings = { ...storeSettings(folder), BACKEND_TYPE: "memory", GRPC_ENGINE: this.#engine };
    const weir = this.#owned.use(await startBenchWeir(settings, { rules: { "bench.yaml": rules } }));
    const target = await weirTarget(name, weir);
    await weir.listening(["HTTP"]);
    await subscribeToLimits(`http://${weir.httpAddress}`, startEventReceiver(this.#owned));
    return target;
  }

  async #tlsFiles(): Promise<{ keyFile: string; certFile: string; caFile: string }> {
    this.#certificates ??= makeCertificates().then((made) => this.#owned.use(made));
    const { server, authority } = await this.#certificates;
    return { ...server, caFile: authority.certFile };
  }

  async #startServer(name: TargetName, script: string, args: string[]): Promise<Target> {
    const child = this.#owned.use(
      new ChildProcess(Deno.execPath(), {
        args: ["run", "-A", ...v8Flags(), script, ...args],
        cwd: PROJECT,
        env: runtimeEnvironment(),
      }),
    );
    const { pid } = child;
    const { grpc } = await child.find({ grpc: GRPC_ADDRESS });
    return { name, pid, port: Number(grpc), expect: "echo" };
  }

  async #startWeir(
    name: TargetName,
    settings: Record<string, string>,
    flags: readonly string[] = [],
  ): Promise<Target> {
    const weir = await startBenchWeir({ ...settings, GRPC_ENGINE: this.#engine }, { flags });
    return await weirTarget(name, this.#owned.use(weir));
  }

  #sharedRedis(): Promise<{ readonly port: number; readonly store: CounterStore }> {
    return this.#redis ??= startRedis({ isSilent: true }).then((redis) => {
      const { port } = this.#owned.use(redis);
      return { port, store: { name: "redis", sum: () => sumInRedis(port) } };
    });
  }
}

/**
 * Weir in its own process with the rules of the bench and others, from its sources; it may not listen yet.
 * `flags` are further ones of `deno run`.
 */
export async function startBenchWeir(
  settings: Record<string, string>,
  { flags = [], rules = {} }: Pick<WeirOptions, "flags" | "rules"> = {},
): Promise<WeirProcess> {
  const kept = Deno.env.get("ALLOW_UNSAFE_DENO");
  return await startWeir({
    env: { ...(kept === undefined ? {} : { ALLOW_UNSAFE_DENO: kept }), LOG_LEVEL: "warning", ...settings },
    rules: { "bench.yaml": RULES, ...rules },
    flags: ["-A", ...v8Flags(), ...flags],
    waitFor: [],
  });
}

/** The port of an address of a listener. */
export function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}

/** Weir as a target, once it listens; what it counted is shown with the token, if any. */
export async function weirTarget(name: TargetName, weir: WeirProcess, debugToken = ""): Promise<Target> {
  await weir.listening(["gRPC", "debug"]);
  const { pid, grpcAddress, debugAddress } = weir;
  const counts = (rules: readonly RuleName[]) => readCounts(portOf(debugAddress), rules, debugToken);
  return { name, pid, port: portOf(grpcAddress), expect: "OK", counts };
}

/** Servers that Weir is compared with get its V8 flags. */
function v8Flags(): readonly string[] {
  return SERVE_FLAGS.filter((flag) => flag.startsWith("--v8-flags="));
}

async function readCounts(port: number, rules: readonly RuleName[], token: string): Promise<RuleCounts> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`http://127.0.0.1:${port}/stats`, { headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`Cannot read /stats: HTTP ${response.status}`);
  const lines = new Map(text.split("\n").map((line) => [line.slice(0, line.lastIndexOf(": ")), line]));
  const count = (stat: string) => {
    const names = rules.flatMap((rule) => {
      const key = `ratelimit.service.rate_limit.bench.load_${rule}.key`;
      return rule === "events" ? [`${key}.${stat}`, `${key}_*00.${stat}`] : [`${key}.${stat}`];
    });
    return names.reduce((sum, name) => sum + Number(lines.get(name)?.slice(name.length + 2) ?? 0), 0);
  };
  return { totalHits: count("total_hits"), decided: count("within_limit") + count("over_limit") };
}
