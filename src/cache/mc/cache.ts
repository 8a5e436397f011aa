import { crc32 } from "node:zlib";
import type { Clock } from "../../base/clock.ts";
import type { Figures } from "../../base/figures.ts";
import { hostPort } from "../../base/host_port.ts";
import type { Caller, CounterCache, Hit } from "../../ratelimit/counter_cache.ts";
import { CacheError } from "../../ratelimit/errors.ts";
import type { McAddress } from "./connection.ts";
import { McHosts, type McSrv } from "./hosts.ts";
import { checkMcKey, digestedMcKey } from "./keys.ts";
import { McNode } from "./node.ts";
import { McTally } from "./tally.ts";
import type { TlsFiles } from "../tls_files.ts";

/** How the counters are asked. */
export interface McCacheOptions {
  /** The nodes, in the order that every instance uses, or where to look them up. */
  readonly hosts: readonly McAddress[] | McSrv;
  /** How many connections are held to each node at most; 0 is taken as 1. */
  readonly maxIdleConnections: number;
  /** What TLS is spoken with; read anew for each connection. Plain TCP when absent. */
  readonly tls?: TlsFiles | undefined;
  /** Longest time from asking to the answer, in milliseconds. */
  readonly timeoutMs: number;
  /** Store keys that the protocol cannot carry under a digest behind this prefix; refuse them when absent. */
  readonly digestPrefix?: string | undefined;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  /** Called for each node when its first connection is there, and when none can be had, once an outage. */
  readonly onConnection?: ((connected: boolean, reason: string, node: string) => void) | undefined;
  /** Called when the nodes cannot be looked up, once an outage, and when they can again. */
  readonly onLookup?: ((found: boolean, reason: string) => void) | undefined;
  /** Told of each write that was answered: the milliseconds from then to its last reply, with fractions. */
  readonly roundTrip?: ((ms: number) => void) | undefined;
}

/**
 * Counters in a memcached-style cache. The node of a key is chosen as everybody does it who shares
 * these nodes: by the CRC-32 of its octets, modulo their number, in the order of the list.
 */
export class McCache implements CounterCache {
  readonly #options: McCacheOptions;
  readonly #tally = new McTally();
  readonly #ready = Promise.withResolvers<void>();
  readonly #hosts: McHosts | undefined;
  /** By position in the list; an address that is listed twice is one node. */
  #nodes: readonly McNode[] = [];
  /** Nodes that left the list, as long as somebody waits for them. */
  readonly #leaving = new Map<McNode, Promise<void>>();
  #breakersOpened = 0;
  #lookupReason = "";

  constructor(options: McCacheOptions) {
    this.#options = options;
    const { hosts, clock, random } = options;
    if ("name" in hosts) {
      this.#hosts = new McHosts({
        ...hosts,
        clock,
        random,
        onNodes: (nodes) => this.#setNodes(nodes),
        onLookup: (found, reason) => {
          this.#lookupReason = reason;
          options.onLookup?.(found, reason);
        },
      });
    } else this.#setNodes(hosts);
  }

  /** Settles when each of the first nodes has had a connection. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Whether there is a connection to one node at least. */
  get connected(): boolean {
    return this.#nodes.some(({ connected }) => connected);
  }

  /** Commands, connections and breakers of all nodes. */
  get figures(): Figures {
    const sum = (gauge: string) =>
      this.#all().reduce((total, { gauges }) => total + (gauges[gauge]?.() ?? 0), 0);
    const opened = () =>
      this.#all().reduce((total, { breakerOpened }) => total + breakerOpened, this.#breakersOpened);
    return {
      counters: { ...this.#tally.counters, breaker_opened: opened },
      gauges: {
        cx_active: () => sum("cx_active"),
        breaker_open: () => sum("breaker_open"),
        nodes: () => new Set(this.#nodes).size,
      },
    };
  }

  add(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    if (hits.length === 0) return Promise.resolve([]);
    try {
      return this.#ask(this.#storable(hits), caller);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  read(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    return this.add(hits.map((hit) => ({ ...hit, addend: 0 })), caller);
  }

  async remove(keys: readonly string[]): Promise<void> {
    const stored = keys.map((key) => this.#storedKey(key));
    const parts = new Map<McNode, string[]>();
    for (const key of stored) append(parts, this.#nodeOf(key), key);
    const ends = await Promise.allSettled([...parts].map(([node, part]) => node.remove(part)));
    for (const end of ends) {
      if (end.status === "rejected") throw end.reason;
    }
  }

  async close(): Promise<void> {
    await this.#hosts?.close();
    for (const node of this.#all()) node.close();
    await Promise.all(this.#leaving.values());
  }

  /** The hits themselves, unless a key is stored under another one. */
  #storable(hits: readonly Hit[]): readonly Hit[] {
    const isStored = hits.every(({ key }) => this.#storedKey(key) === key);
    return isStored ? hits : hits.map((hit) => ({ ...hit, key: this.#storedKey(hit.key) }));
  }

  #storedKey(key: string): string {
    const { digestPrefix } = this.#options;
    if (digestPrefix !== undefined) return digestedMcKey(key, digestPrefix);
    checkMcKey(key);
    return key;
  }

  #ask(hits: readonly Hit[], caller: Caller | undefined): Promise<number[]> {
    const first = this.#nodeOf(hits[0]?.key ?? "");
    if (hits.every(({ key }) => this.#nodeOf(key) === first)) return first.ask(hits, caller);
    const parts = new Map<McNode, number[]>();
    for (const [position, { key }] of hits.entries()) append(parts, this.#nodeOf(key), position);
    return askAll(hits, parts, caller);
  }

  #nodeOf(key: string): McNode {
    const { length } = this.#nodes;
    const node = this.#nodes[length < 2 ? 0 : crc32(key) % length];
    if (node === undefined) throw this.#unknown();
    return node;
  }

  #unknown(): CacheError {
    const { hosts } = this.#options;
    const name = "name" in hosts ? hosts.name : "";
    const reason = this.#lookupReason === "" ? "" : `: ${this.#lookupReason}`;
    return new CacheError(
      "mc",
      `Cannot ask memcached-style cache "${name}": its nodes are not known yet${reason}`,
    );
  }

  /** Nodes that stay keep their connections; those that are gone end when their calls have ended. */
  #setNodes(addresses: readonly McAddress[]): void {
    const isFirst = this.#nodes.length === 0;
    const known = new Map(this.#nodes.map((node) => [node.address, node]));
    this.#nodes = addresses.map((address) => {
      const text = hostPort(address);
      const node = known.get(text) ?? this.#open(address);
      known.set(text, node);
      return node;
    });
    for (const node of known.values()) {
      if (!this.#nodes.includes(node)) this.#leave(node);
    }
    if (isFirst) Promise.all(this.#nodes.map(({ ready }) => ready)).then(() => this.#ready.resolve());
  }

  #open(address: McAddress): McNode {
    const { tls, timeoutMs, maxIdleConnections, onConnection } = this.#options;
    const { clock, random, roundTrip } = this.#options;
    const node = hostPort(address);
    return new McNode({
      address,
      tls,
      timeoutMs,
      maxIdleConnections,
      clock,
      random,
      tally: this.#tally,
      roundTrip,
      onConnection: (connected, reason) => onConnection?.(connected, reason, node),
    });
  }

  #leave(node: McNode): void {
    this.#leaving.set(
      node,
      node.retire().then(() => {
        this.#leaving.delete(node);
        this.#breakersOpened += node.breakerOpened;
      }),
    );
  }

  #all(): McNode[] {
    return [...new Set(this.#nodes), ...this.#leaving.keys()];
  }
}

/** Asks several nodes at the same time; `parts` has the positions of the hits of each. */
async function askAll(
  hits: readonly Hit[],
  parts: ReadonlyMap<McNode, readonly number[]>,
  caller: Caller | undefined,
): Promise<number[]> {
  const counts: (number | undefined)[] = hits.map(() => undefined);
  const errors: CacheError[] = [];
  await Promise.all([...parts].map(async ([node, positions]) => {
    const part = positions.flatMap((position) => hits[position] ?? []);
    const came = await node.ask(part, caller).catch((error: unknown) => {
      if (!(error instanceof CacheError)) throw error;
      errors.push(error);
      return error.counts;
    });
    for (const [index, position] of positions.entries()) counts[position] = came[index];
  }));
  const [first] = errors;
  if (first === undefined) return counts.map((count) => count ?? 0);
  throw new CacheError("mc", errors.map(({ message }) => message).join("; "), { counts, cause: first });
}

function append<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
