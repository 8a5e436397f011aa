import { crc32 } from "node:zlib";
import type { Metrics } from "../../base/metrics.ts";
import { type HostAndPort, hostPort } from "../../base/host_port.ts";
import type { Caller, CounterCache, CountReceiver, Hit } from "../../ratelimit/counter_cache.ts";
import { CacheError } from "../../ratelimit/errors.ts";
import { askParts, settleAll } from "../hit_parts.ts";
import { MC_METRICS, MC_NODE_METRICS } from "../metrics.ts";
import { ServerChecks } from "../server_checks.ts";
import { SummedMetrics } from "../summed_metrics.ts";
import { McHosts, type McSrv } from "./hosts.ts";
import { storedMcKey } from "./keys.ts";
import { McNode, type McNodeOptions } from "./node.ts";
import { createMcTally, tallyCounters } from "./tally.ts";

/** How counters in a memcached-style cache are asked. */
export interface McCacheOptions extends Omit<McNodeOptions, "address" | "tally" | "onConnection" | "checks"> {
  /** The nodes, in the order that every instance uses, or where to look them up. */
  readonly hosts: readonly HostAndPort[] | McSrv;
  /** Store keys that the protocol cannot carry under a digest behind this prefix; refuse them when absent. */
  readonly digestPrefix?: string | undefined;
  /** Called for each node when its first connection is there, and when it has none, once an outage. */
  readonly onConnection?: ((connected: boolean, reason: string, node: string) => void) | undefined;
  /** Called once for a node that is used although it did not report its state. */
  readonly onUnknownState?: ((node: string, reason: string) => void) | undefined;
  /** Called when a node left the list. */
  readonly onLeft?: ((node: string) => void) | undefined;
  /** Called when a lookup of the nodes fails, once an outage, and when it succeeds again. */
  readonly onLookup?: ((found: boolean, reason: string) => void) | undefined;
}

/** Counters in a memcached-style cache. The node of a key is its CRC-32 modulo the nodes, as in other programs. */
export class McCache implements CounterCache {
  readonly #options: McCacheOptions;
  readonly #tally = createMcTally();
  readonly #checks: ServerChecks;
  readonly #ready = Promise.withResolvers<void>();
  readonly #hosts: McHosts | undefined;
  readonly #metrics = new SummedMetrics(MC_NODE_METRICS, () => this.#all().map(({ metrics }) => metrics));
  /** By position in the list; an address that is listed twice is one node. */
  #nodes: readonly McNode[] = [];
  /** Nodes that left the list and still have callers. */
  readonly #leaving = new Map<McNode, Promise<void>>();
  #lookupReason = "";

  constructor(options: McCacheOptions) {
    this.#options = options;
    this.#checks = new ServerChecks(options.onUnknownState);
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

  get connected(): boolean {
    return this.#nodes.some(({ connected }) => connected);
  }

  get metrics(): Metrics<typeof MC_METRICS.metrics> {
    const { counters, gauges } = this.#metrics;
    return {
      counters: { ...tallyCounters(this.#tally), ...counters },
      gauges: { ...gauges, nodes: () => new Set(this.#nodes).size },
    };
  }

  add(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    try {
      const counts = askParts(this.#storable(hits), {
        targets: this.#nodes,
        targetOf: ({ key }) => this.#nodeOf(key),
        ask: (node, part) => node.ask(part, caller),
      });
      return counts instanceof Promise ? counts : Promise.resolve(counts);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  addOne(hit: Hit, caller: Caller | undefined, receiver: CountReceiver): void {
    try {
      const key = storedMcKey(hit.key, this.#options.digestPrefix);
      this.#nodeOf(key).askOne(key === hit.key ? hit : { ...hit, key }, caller, receiver);
    } catch (error) {
      receiver.failed(error);
    }
  }

  read(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    return this.add(hits.map((hit) => ({ ...hit, addend: 0 })), caller);
  }

  async remove(keys: readonly string[]): Promise<void> {
    const stored = keys.map((key) => storedMcKey(key, this.#options.digestPrefix));
    const parts = Map.groupBy(stored, (key) => this.#nodeOf(key));
    await settleAll([...parts].map(([node, part]) => node.remove(part)));
  }

  async close(): Promise<void> {
    await this.#hosts?.close();
    for (const node of this.#all()) node.close();
    await Promise.all(this.#leaving.values());
  }

  /** The hits themselves, unless a key is stored under another one. */
  #storable(hits: readonly Hit[]): readonly Hit[] {
    const { digestPrefix } = this.#options;
    const isStored = hits.every(({ key }) => storedMcKey(key, digestPrefix) === key);
    return isStored ? hits : hits.map((hit) => ({ ...hit, key: storedMcKey(hit.key, digestPrefix) }));
  }

  #nodeOf(key: string): McNode {
    const { length } = this.#nodes;
    const node = this.#nodes[length < 2 ? 0 : crc32(key) % length];
    if (node !== undefined) return node;
    const { hosts } = this.#options;
    const name = "name" in hosts ? hosts.name : "";
    const reason = this.#lookupReason === "" ? "" : `: ${this.#lookupReason}`;
    const message = `Cannot query memcached-style cache "${name}": its nodes are not known yet${reason}`;
    throw new CacheError("mc", message);
  }

  /** Nodes that stay keep their connections; those that left end when their calls have ended. */
  #setNodes(addresses: readonly HostAndPort[]): void {
    const isFirst = this.#nodes.length === 0;
    const known = new Map(this.#nodes.map((node) => [node.address, node]));
    this.#nodes = addresses.map((address) => {
      const text = hostPort(address);
      const node = known.get(text) ?? this.#open(address);
      known.set(text, node);
      return node;
    });
    for (const node of known.values()) {
      if (this.#nodes.includes(node)) continue;
      this.#leaving.set(node, this.#leave(node));
      this.#options.onLeft?.(node.address);
    }
    if (isFirst) Promise.all(this.#nodes.map(({ ready }) => ready)).then(() => this.#ready.resolve());
  }

  #open(address: HostAndPort): McNode {
    const { onConnection } = this.#options;
    return new McNode({
      ...this.#options,
      address,
      tally: this.#tally,
      checks: this.#checks,
      onConnection: (connected, reason) => onConnection?.(connected, reason, hostPort(address)),
    });
  }

  async #leave(node: McNode): Promise<void> {
    await node.retire();
    this.#leaving.delete(node);
    this.#metrics.keep(node.metrics);
  }

  #all(): McNode[] {
    return [...new Set(this.#nodes), ...this.#leaving.keys()];
  }
}
