import { fileURLToPath } from "node:url";
import type { Expectation } from "./answer.ts";
import { Child } from "./child.ts";
import type { TargetName } from "./options.ts";
import type { LoadName } from "./rate_limit_message.ts";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));
const GRPC_ADDRESS = /Listening for gRPC on '[^']*:(\d+)'/;
const DEBUG_ADDRESS = /Listening for debug on '[^']*:(\d+)'/;

/** One rule a load, with a limit that no run reaches and a window that no run outlives. */
const RULES = `domain: bench
descriptors:
  - key: load
    value: one
    descriptors:
      - key: key
        rate_limit: { unit: day, requests_per_unit: 4000000000 }
  - key: load
    value: keys
    descriptors:
      - key: key
        rate_limit: { unit: day, requests_per_unit: 4000000000 }
`;

/** What Weir counted for the rule of one load. */
export interface RuleCounts {
  readonly totalHits: number;
  /** Within the limit and over it: hits that were decided. */
  readonly decided: number;
}

/** A server that is measured. */
export interface Target {
  readonly name: TargetName;
  readonly pid: number;
  /** Port of its gRPC listener. */
  readonly port: number;
  readonly expect: Expectation;
  /** What it counted so far; absent where nothing is counted. */
  readonly counts?: (load: LoadName) => Promise<RuleCounts>;
  /** Port of the redis-server that holds its counters. */
  readonly redisPort?: number;
}

/** Starts a target; `owned` gets everything that has to be ended. `folder` is for its files. */
export function startTarget(name: TargetName, owned: AsyncDisposableStack, folder: string): Promise<Target> {
  if (name === "echo") return startEcho(owned);
  return name === "memory" ? startWeir(name, owned, folder) : startWeirWithRedis(owned, folder);
}

async function startEcho(owned: AsyncDisposableStack): Promise<Target> {
  const child = owned.use(denoChild("echo server", ["run", "-A", "scripts/bench/echo_server.ts"], {}));
  const { grpc } = await child.find({ grpc: GRPC_ADDRESS });
  return { name: "echo", pid: child.pid, port: Number(grpc), expect: "echo" };
}

async function startWeirWithRedis(owned: AsyncDisposableStack, folder: string): Promise<Target> {
  const redisPort = freePort();
  const redis = owned.use(
    new Child("redis-server", "redis-server", {
      args: [
        "--port",
        `${redisPort}`,
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        folder,
      ],
    }),
  );
  await redis.find({ ready: /Ready to accept connections/ });
  const target = await startWeir("redis", owned, folder, { KV_URL: `127.0.0.1:${redisPort}` });
  return { ...target, redisPort };
}

async function startWeir(
  name: "memory" | "redis",
  owned: AsyncDisposableStack,
  folder: string,
  env: Record<string, string> = { BACKEND_TYPE: "memory" },
): Promise<Target> {
  const root = `${folder}/${name}`;
  await Deno.mkdir(`${root}/config`, { recursive: true });
  await Deno.writeTextFile(`${root}/config/bench.yaml`, RULES);
  const child = owned.use(denoChild(`Weir with ${name}`, ["run", "-A", "main.ts", "serve"], {
    ...env,
    ...{ HOST: "127.0.0.1", PORT: "0", GRPC_HOST: "127.0.0.1", GRPC_PORT: "0" },
    ...{ DEBUG_HOST: "127.0.0.1", DEBUG_PORT: "0", LOG_LEVEL: "warning" },
    ...{ RUNTIME_ROOT: root, RUNTIME_WATCH_ROOT: "false", DISABLE_STATS: "true" },
  }));
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

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
