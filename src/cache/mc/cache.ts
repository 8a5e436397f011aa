import { crc32 } from "node:zlib";
import type { Metrics } from "../../base/metrics.ts";
import { type HostAndPort, hostPort } from "../../base/host_port.ts";
import {
  type AnyHit,
  type Counter,
  type CounterCache,
  isConditional,
} from "../../ratelimit/decision/counter_cache.ts";
import { CacheError } from "../../ratelimit/errors.ts";
import { settleAll } from "../settle_all.ts";
import { MC_METRICS, MC_NODE_METRICS } from "../metrics.ts";
import { ServerChecks } from "../server_checks.ts";
import { SummedMetrics } from "../summed_metrics.ts";
import { McCounter, type McTake } from "./batch.ts";
import { McHosts, type McSrv } from "./hosts.ts";
import { storedMcKey } from "./keys.ts";
import { McNode, type McNodesOptions } from "./node.ts";
import { createMcTally, tallyCounters } from "./tally.ts";

/** Options of a memcached-style cache. */
export interface McCacheOptions extends McNodesOptions {
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

/** Rules with other algorithms are refused before they are counted. */
const NO_CONDITIONAL_COUNTER: Counter = {
  take: (_hits, _caller, receiver) =>
    receiver.failed(new CacheError("mc", "memcached counts in fixed windows only")),
};

/** Counters in a memcached-style cache. The node of a key is its CRC-32 modulo the nodes, as in other programs. */
export class McCache implements CounterCache {
  readonly isConditional = false;
  readonly isImmediate = false;
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
  readonly #take: McTake = (counter, hits, caller, receiver) => {
    const node = this.#nodeOf(counter.key);
    if (node === undefined) receiver.failed(this.#noNode());
    else node.take(counter, hits, caller, receiver);
  };

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

  counterOf(hit: AnyHit): Counter {
    if (isConditional(hit)) return NO_CONDITIONAL_COUNTER;
    return new McCounter(hit, storedMcKey(hit.key, this.#options.digestPrefix), this.#take);
  }

  async remove(keys: readonly string[]): Promise<void> {
    const stored = keys.map((key) => storedMcKey(key, this.#options.digestPrefix));
    if (stored.length > 0 && this.#nodes.length === 0) throw this.#noNode();
    const parts = Map.groupBy(stored, (key) => this.#nodeOf(key));
    await settleAll([...parts].map(([node, part]) => node?.remove(part) ?? Promise.resolve()));
  }

  async close(): Promise<void> {
    await this.#hosts?.close();
    for (const node of this.#all()) node.close();
    await Promise.all(this.#leaving.values());
  }

  #nodeOf(key: string): McNode | undefined {
    const { length } = this.#nodes;
    return this.#nodes[length < 2 ? 0 : crc32(key) % length];
  }

  #noNode(): CacheError {
    const { hosts } = this.#options;
    const name = "name" in hosts ? hosts.name : "";
    const reason = this.#lookupReason === "" ? "" : `: ${this.#lookupReason}`;
    const message = `Cannot query memcached-style cache "${name}": its nodes are not known yet${reason}`;
    return new CacheError("mc", message);
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
