import { fileURLToPath } from "node:url";
import { serveFlags } from "../serve_flags.ts";
import type { ExpectedCode } from "./answer.ts";
import { makeCertificate } from "./certificate.ts";
import { freePort, type ServerPlace, startCluster, startMemcached, startRedis } from "./cache_servers.ts";
import { Child } from "./child.ts";
import { sumInMemcached, sumInRedis } from "./counter_sums.ts";
import { featureSettings } from "./feature_settings.ts";
import type { EngineName } from "./options.ts";
import { type RuleName, RULES } from "./rate_limit_message.ts";
import type { TargetName } from "./scenario.ts";
import { startPushReceiver, startScraper, startSpanReceiver } from "./stats_receivers.ts";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));
const GRPC_ADDRESS = /Listening for gRPC on '[^']*:(\d+)'/;
const DEBUG_ADDRESS = /Listening for debug on '[^']*:(\d+)'/;

/** Nodes of the cluster. */
const CLUSTER_NODES = 3;

/** What Weir counted for some rules. */
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
  /** Port of its gRPC listener; of redis-server for the bare round trips. */
  readonly port: number;
  readonly expect: ExpectedCode;
  /** What it counted so far; absent where nothing is counted. */
  readonly counts?: (rules: readonly RuleName[]) => Promise<RuleCounts>;
  /** Where its lasting counters are; several targets may share it. */
  readonly store?: CounterStore;
  /** File with the certificate that its own is signed by, when it speaks TLS. */
  readonly caFile?: string;
}

/** Starts targets when they are first asked for, each once; what they need is ended by `owned`. */
export class Targets {
  readonly #engine: EngineName;
  readonly #owned: AsyncDisposableStack;
  readonly #folder: string;
  readonly #started = new Map<TargetName, Promise<Target>>();
  #redis: Promise<{ readonly port: number; readonly store: CounterStore }> | undefined;

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
        const { port, store } = await this.#sharedRedis();
        return { ...await this.#startWeir(name, { KV_URL: `127.0.0.1:${port}` }), store };
      }
      case "bare":
        return { name, ...await this.#sharedRedis(), expect: "OK" };
      case "cluster":
        return await this.#startWithCluster(name);
      case "mc": {
        const port = await startMemcached(this.#place);
        const settings = { BACKEND_TYPE: "mc", MC_HOST_PORT: `127.0.0.1:${port}` };
        const store = { name, sum: () => sumInMemcached(port) };
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
    }
  }

  #startObserved(name: TargetName, settings: Record<string, string>): Promise<Target> {
    return this.#startWeir(name, { BACKEND_TYPE: "memory", DISABLE_STATS: "false", ...settings });
  }

  async #startWithCluster(name: TargetName): Promise<Target> {
    const ports = await startCluster(this.#place, CLUSTER_NODES);
    const KV_URL = ports.map((port) => `127.0.0.1:${port}`).join(",");
    const target = await this.#startWeir(name, { KV_TYPE: "cluster", KV_URL });
    const sum = async () => (await Promise.all(ports.map(sumInRedis))).reduce((total, one) => total + one, 0);
    return { ...target, store: { name, sum } };
  }

  async #startWithTwo(name: TargetName): Promise<Target> {
    const [main, perSecond] = [await startRedis(this.#place), await startRedis(this.#place)];
    const target = await this.#startWeir(name, {
      KV_URL: `127.0.0.1:${main}`,
      KV_PERSECOND: "true",
      KV_PERSECOND_URL: `127.0.0.1:${perSecond}`,
    });
    return { ...target, store: { name: `${name}, main cache`, sum: () => sumInRedis(main) } };
  }

  async #startWithFeatures(name: TargetName): Promise<Target> {
    const folder = `${this.#folder}/${name}`;
    const { settings, metricsUrl, debugToken } = await featureSettings(folder, this.#owned);
    const child = this.#owned.use(
      await startWeir({ ...settings, GRPC_ENGINE: this.#engine }, `${folder}/root`),
    );
    const target = await countingTarget(name, child, debugToken);
    startScraper(this.#owned, metricsUrl);
    return target;
  }

  async #startTls(name: TargetName, script: string, args: string[]): Promise<Target> {
    const { keyFile, certFile } = await makeCertificate(this.#folder);
    const target = await this.#startServer(name, script, [...args, "--key", keyFile, "--cert", certFile]);
    return { ...target, caFile: certFile };
  }

  async #startServer(name: TargetName, script: string, args: string[]): Promise<Target> {
    const child = this.#owned.use(denoChild(name, [script, ...args], {}));
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

  get #place(): ServerPlace {
    return { owned: this.#owned, folder: this.#folder };
  }

  #sharedRedis(): Promise<{ readonly port: number; readonly store: CounterStore }> {
    return this.#redis ??= startRedis(this.#place).then((port) => {
      return { port, store: { name: "redis", sum: () => sumInRedis(port) } };
    });
  }
}

/** A child of the running Deno with Weir and the rules of the bench; it may not listen yet. */
export async function startWeir(settings: Record<string, string>, root: string): Promise<Child> {
  await Deno.mkdir(`${root}/config`, { recursive: true });
  await Deno.writeTextFile(`${root}/config/bench.yaml`, RULES);
  return denoChild("Weir", ["main.ts", "serve"], {
    ...{ HOST: "127.0.0.1", PORT: "0", GRPC_HOST: "127.0.0.1", GRPC_PORT: "0" },
    ...{ DEBUG_HOST: "127.0.0.1", DEBUG_PORT: "0", LOG_LEVEL: "warning" },
    ...{ RUNTIME_ROOT: root, RUNTIME_WATCH_ROOT: "false", DISABLE_STATS: "true" },
    ...settings,
  });
}

/** A target that says where it listens for gRPC and for debug; what it counted is shown with the token, if any. */
export async function countingTarget(name: TargetName, child: Child, debugToken = ""): Promise<Target> {
  const { grpc, debug } = await child.find({ grpc: GRPC_ADDRESS, debug: DEBUG_ADDRESS });
  const counts = (rules: readonly RuleName[]) => readCounts(Number(debug), rules, debugToken);
  return { name, pid: child.pid, port: Number(grpc), expect: "OK", counts };
}

/**
 * A script in a child of the running Deno, with the flags for V8 that Weir is served with: what it is compared
 * with gets them too. It sees no setting of the caller but those that say where programs and caches are. */
function denoChild(name: string, args: string[], settings: Record<string, string>): Child {
  const env: Record<string, string> = { ...settings };
  for (const kept of ["PATH", "HOME", "DENO_DIR", "XDG_CACHE_HOME", "ALLOW_UNSAFE_DENO"]) {
    const value = Deno.env.get(kept);
    if (value !== undefined) env[kept] = value;
  }
  const v8 = serveFlags().filter((flag) => flag.startsWith("--v8-flags="));
  return new Child(name, Deno.execPath(), {
    args: ["run", "-A", ...v8, ...args],
    cwd: PROJECT,
    clearEnv: true,
    env,
  });
}

async function readCounts(port: number, rules: readonly RuleName[], token: string): Promise<RuleCounts> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`http://127.0.0.1:${port}/stats`, { headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`Cannot read /stats: HTTP ${response.status}`);
  const lines = new Map(text.split("\n").map((line) => [line.slice(0, line.lastIndexOf(": ")), line]));
  const count = (stat: string) => {
    const names = rules.map((rule) => `ratelimit.service.rate_limit.bench.load_${rule}.key.${stat}`);
    return names.reduce((sum, name) => sum + Number(lines.get(name)?.slice(name.length + 2) ?? 0), 0);
  };
  return { totalHits: count("total_hits"), decided: count("within_limit") + count("over_limit") };
}
