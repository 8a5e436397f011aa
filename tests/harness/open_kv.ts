import { type Clock, systemClock } from "../../src/base/clock.ts";
import { Pool } from "../../src/net/pool.ts";
import { parseKvAddress } from "../../src/cache/kv/address.ts";
import { KvCache } from "../../src/cache/kv/cache.ts";
import { KvCluster, type KvClusterOptions } from "../../src/cache/kv/cluster/cluster.ts";
import type { KvConnection } from "../../src/cache/kv/connection.ts";
import { KvConnections } from "../../src/cache/kv/connections.ts";
import { KvNode, type KvNodeOptions } from "../../src/cache/kv/node.ts";
import { hostPort } from "../../src/base/host_port.ts";
import type { TlsFiles } from "../../src/cache/tls_files.ts";
import { kvCounterOf } from "../../src/cache/kv/counters.ts";
import type { Counted } from "../../src/ratelimit/algorithms/taken.ts";
import type { AnyHit, Caller } from "../../src/ratelimit/decision/counter_cache.ts";
import { handled } from "./handled.ts";

/** Nothing that is meant to be answered takes so long, however slow the machine is. */
const PATIENCE_MS = 30_000;

/** Options of an open kv. */
export interface OpenKvOptions {
  readonly poolSize?: number;
  readonly onEmpty?: KvNodeOptions["onEmpty"];
  readonly onEmptyWaitMs?: number;
  readonly windowMs?: number;
  readonly timeoutMs?: number;
  readonly onConnection?: (connected: boolean, reason: string) => void;
  readonly clock?: Clock;
  readonly roundTrip?: (ms: number) => void;
  readonly auth?: string | undefined;
  readonly sentinelAuth?: string | undefined;
  readonly tls?: boolean;
  readonly type?: "single" | "sentinel";
  readonly tlsFiles?: TlsFiles;
}

/** A key-value cache at this address, as `KV_URL` takes it; closed at the end of an `await using`. */
export function openKvCache(url: string, options: OpenKvOptions = {}): KvCache & AsyncDisposable {
  const cache = new KvCache(nodeOptions(url, options));
  return Object.assign(cache, { [Symbol.asyncDispose]: () => cache.close() });
}

/** One node at this address, once it is connected; closed at the end of an `await using`. */
export async function openKvNode(
  url: string,
  options: OpenKvOptions = {},
): Promise<KvNode & AsyncDisposable> {
  const node = new KvNode(nodeOptions(url, options));
  await node.ready;
  return Object.assign(node, { [Symbol.asyncDispose]: () => node.close() });
}

/** A cluster with its nodes at these ports; closed at the end of an `await using`. */
export function openKvCluster(
  ports: readonly number[],
  options: Partial<KvClusterOptions> = {},
): KvCluster & AsyncDisposable {
  const { timeoutMs = PATIENCE_MS } = options;
  const seeds = ports.map((port) => ({ host: "127.0.0.1", port }));
  const address = parseKvAddress("cluster", seeds.map(hostPort).join(","));
  const shared = { timeoutMs, clock: systemClock, random: Math.random };
  const connections = new KvConnections({ address, ...shared });
  const pool = { poolSize: 2, onEmpty: "WAIT", onEmptyWaitMs: 1_000, windowMs: 0 } as const;
  const cluster = new KvCluster({
    seeds,
    address: "cluster",
    openNode(endpoint, onConnection, placeExpiry) {
      return new KvNode({ ...connections.server(endpoint), ...pool, ...shared, onConnection, placeExpiry });
    },
    parallelism: 0,
    ...shared,
    ...options,
  });
  return Object.assign(cluster, { [Symbol.asyncDispose]: () => cluster.close() });
}

/** So many connections, and why each of them was lost or not made. */
export function openKvPool(
  connections: KvConnections,
  { size = 1, clock = systemClock }: { readonly size?: number; readonly clock?: Clock } = {},
): { readonly pool: Pool<KvConnection>; readonly errors: string[] } {
  const errors: string[] = [];
  const pool = new Pool({
    ...connections.server(),
    minSize: size,
    maxSize: size,
    isShared: false,
    settledMs: 1_000,
    clock,
    events: { free: () => {}, lost: (reason) => void errors.push(reason) },
  });
  return { pool, errors };
}

function nodeOptions(url: string, options: OpenKvOptions): KvNodeOptions & { readonly address: string } {
  const { timeoutMs = PATIENCE_MS, type = "single", auth, sentinelAuth, tls, tlsFiles, clock = systemClock } =
    options;
  const address = parseKvAddress(type, url, { auth, sentinelAuth, ...(tls === undefined ? {} : { tls }) });
  const connections = new KvConnections({ address, tls: tlsFiles, timeoutMs, clock, random: Math.random });
  return {
    ...connections.server(),
    address: address.text,
    timeoutMs,
    poolSize: 3,
    onEmpty: "CREATE",
    onEmptyWaitMs: 1_000,
    windowMs: 0,
    ...options,
    clock,
    random: Math.random,
  };
}

/** The counts after hits of one node, which are one batch; rejects with the first error. */
export function askNode(
  node: KvNode,
  hits: readonly AnyHit[],
  { caller, asking = false }: { readonly caller?: Caller; readonly asking?: boolean } = {},
): Promise<Counted[]> {
  return handled(Promise.all(hits.map((hit) => {
    const { promise, resolve, reject } = Promise.withResolvers<Counted>();
    const receiver = { counted: resolve, failed: reject };
    node.take(kvCounterOf(hit, () => {}), hit.addend, { caller, receiver, asking });
    return promise;
  })));
}
