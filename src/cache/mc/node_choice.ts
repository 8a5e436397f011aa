import { crc32 } from "node:zlib";
import { type HostAndPort, hostPort } from "../../base/host_port.ts";
import type { Metrics } from "../../base/metrics.ts";
import { MC_METRICS, MC_NODE_METRICS } from "../metrics.ts";
import { ServerChecks } from "../server_checks.ts";
import { SummedMetrics } from "../summed_metrics.ts";
import { McNode, type McNodesOptions } from "./node.ts";
import { createMcTally, tallyCounters } from "./tally.ts";

/** Options of the nodes. */
export interface McNodeChoiceOptions extends McNodesOptions {
  /** Called for each node when its first connection is there, and when it has none, once an outage. */
  readonly onConnection?: ((connected: boolean, reason: string, node: string) => void) | undefined;
  /** Called once for a node that is used although it did not report its state. */
  readonly onUnknownState?: ((node: string, reason: string) => void) | undefined;
  /** Called when a node left the list. */
  readonly onLeft?: ((node: string) => void) | undefined;
}

/** Chooses the node of a key: the CRC-32 of the key modulo the nodes, as in other programs. It owns the nodes. */
export class McNodeChoice {
  readonly #options: McNodeChoiceOptions;
  readonly #tally = createMcTally();
  readonly #checks: ServerChecks;
  readonly #ready = Promise.withResolvers<void>();
  readonly #metrics = new SummedMetrics(MC_NODE_METRICS, () => this.#all().map(({ metrics }) => metrics));
  /** By position in the list; an address that is listed twice is one node. */
  #nodes: readonly McNode[] = [];
  /** Nodes that left the list and still have callers. */
  readonly #leaving = new Map<McNode, Promise<void>>();

  constructor(options: McNodeChoiceOptions) {
    this.#options = options;
    this.#checks = new ServerChecks(options.onUnknownState);
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

  /** The node of a key; undefined while there are no nodes. */
  nodeOf(key: string): McNode | undefined {
    const { length } = this.#nodes;
    return this.#nodes[length < 2 ? 0 : crc32(key) % length];
  }

  /** Nodes that stay keep their connections; those that left end when their calls have ended. */
  setNodes(addresses: readonly HostAndPort[]): void {
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

  async close(): Promise<void> {
    for (const node of this.#all()) node.close();
    await Promise.all(this.#leaving.values());
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
