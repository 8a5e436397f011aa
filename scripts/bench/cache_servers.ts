import { CacheConnection } from "./cache_connection.ts";
import { Child } from "./child.ts";

/** What a cluster divides its keys into. */
const SLOTS = 16_384;
/** How long servers may take to get ready, and the pause between two looks. */
const READY_MS = 30_000;
const LOOK_MS = 50;
/** Room for counters; what is not used is not taken. */
const MEMCACHED_MB = 256;

/** Where servers are started: what ends them, and a folder for their files. */
export interface ServerPlace {
  readonly owned: AsyncDisposableStack;
  readonly folder: string;
}

/** Starts a redis-server without persistence; answers its port. */
export async function startRedis(place: ServerPlace, ...more: readonly string[]): Promise<number> {
  const port = freePort();
  const network = ["--port", `${port}`, "--bind", "127.0.0.1"];
  const args = [...network, "--save", "", "--appendonly", "no", "--dir", place.folder, ...more];
  const redis = place.owned.use(new Child("redis-server", "redis-server", { args }));
  await redis.find({ ready: /Ready to accept connections/ });
  return port;
}

/** Starts so many redis-servers and makes them a cluster without replicas; answers their ports. */
export async function startCluster(place: ServerPlace, nodes: number): Promise<number[]> {
  const started = await Promise.all(Array.from({ length: nodes }, async () => {
    const bus = freePort();
    const settings = {
      "cluster-enabled": "yes",
      "cluster-announce-ip": "127.0.0.1",
      "cluster-port": `${bus}`,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
    const port = await startRedis(place, ...flags, "--cluster-config-file", `nodes-${bus}.conf`);
    return { port, bus };
  }));
  for (const [index, { port }] of started.entries()) {
    using node = await CacheConnection.open(port);
    await node.ask("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
    const [from, next] = [index, index + 1].map((count) => Math.floor(count * SLOTS / nodes));
    await node.ask("CLUSTER", "ADDSLOTSRANGE", from ?? 0, (next ?? SLOTS) - 1);
    for (const other of started.slice(0, index)) {
      await node.ask("CLUSTER", "MEET", "127.0.0.1", other.port, other.bus);
    }
  }
  for (const { port } of started) await ready("a cluster", () => knowsCluster(port, nodes));
  return started.map(({ port }) => port);
}

/** Starts a memcached; answers its port. */
export async function startMemcached({ owned }: ServerPlace): Promise<number> {
  const port = freePort();
  // It refuses to run as root unless told so.
  const user = Deno.uid() === 0 ? ["-u", "root"] : [];
  const args = ["-l", "127.0.0.1", "-p", `${port}`, "-U", "0", "-m", `${MEMCACHED_MB}`, ...user];
  const memcached = owned.use(new Child("memcached", "memcached", { args }));
  await ready("memcached", async () => {
    using server = await CacheConnection.open(port);
    const [line = ""] = await server.exchange("stats\r\n", 1, firstLine);
    // Somebody else may have taken the port in between.
    return line === `STAT pid ${memcached.pid}`;
  });
  return port;
}

/** A port of the loopback that nobody listens on now. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

async function knowsCluster(port: number, nodes: number): Promise<boolean> {
  using node = await CacheConnection.open(port);
  const state = String(await node.ask("CLUSTER", "INFO"));
  const slots = await node.ask("CLUSTER", "SLOTS");
  return state.includes("cluster_state:ok") && Array.isArray(slots) && slots.length === nodes;
}

/** The lines that follow belong to the same answer, and nothing else is asked. */
function firstLine(text: string, start: number): { reply: string; end: number } | undefined {
  const end = text.indexOf("\r\n", start);
  return end < 0 ? undefined : { reply: text.slice(start, end), end: end + 2 };
}

async function ready(what: string, isReady: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + READY_MS;
  let cause: unknown;
  while (performance.now() < deadline) {
    try {
      if (await isReady()) return;
    } catch (error) {
      cause = error;
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  throw new Error(`Cannot start ${what}: it did not get ready within ${READY_MS} ms`, { cause });
}
