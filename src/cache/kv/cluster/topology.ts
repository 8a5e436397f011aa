import { errorText } from "../../../base/error_text.ts";
import type { Metrics } from "../../../base/metrics.ts";
import { type HostAndPort, hostPort } from "../../../base/host_port.ts";
import { noAnswer } from "../../server_connection.ts";
import type { LateExpiry } from "../expiries.ts";
import type { ConnectionEvents, SharedCacheOptions } from "../../shared_cache_options.ts";
import { type KV_CLUSTER_METRICS, KV_NODE_METRICS } from "../../metrics.ts";
import { SummedMetrics } from "../../summed_metrics.ts";
import { KvClusterNode, type OpenKvNode } from "./node.ts";
import { KvClusterRefresh } from "./refresh.ts";
import { KvClusterWaits } from "./waits.ts";
import { parseSlotRanges, SLOT_COUNT, slotOf, type SlotRange, type SlotRedirect } from "./slots.ts";

/** Most nodes that are open at a time, the recommended limit of a cluster. */
const MAX_NODES = 1_000;
/** Longest wait for the slots of one node; another one may answer sooner. */
const MAX_LOOK_MS = 1_000;
/** A node that left the cluster is closed after this time without a call. */
const RETIRE_MS = 5_000;

/** Options of a cluster. */
export interface KvTopologyOptions extends SharedCacheOptions, ConnectionEvents {
  /** Nodes that are asked while no other node answers. */
  readonly seeds: readonly HostAndPort[];
  readonly openNode: OpenKvNode;
  /** Called when a node that has slots has no connection, with the reason, and without one when it is over. */
  readonly onNodeState?: ((node: string, reason: string | undefined) => void) | undefined;
}

/** Which node has which slot; it owns all nodes. */
export class KvTopology {
  /** The numbers of hits that nodes redirected, by kind, and of reads of the slots. */
  readonly tally = { moved: 0, asked: 0, refreshes: 0 };
  /** Why the cluster cannot be asked. */
  reason = "no node has answered";
  readonly #metrics: SummedMetrics<typeof KV_NODE_METRICS>;
  readonly #options: KvTopologyOptions;
  readonly #ready = Promise.withResolvers<void>();
  readonly #waits: KvClusterWaits;
  /** Reads the slots of the cluster. */
  readonly refresh: KvClusterRefresh;
  readonly #nodes = new Map<string, KvClusterNode>();
  /** The nodes of the latest answer. */
  #named = new Set<KvClusterNode>();
  #table: (KvClusterNode | undefined)[] = [];
  #hasLooked = false;
  #reported: boolean | undefined;
  #cancelRetire: (() => void) | undefined;
  readonly #closing = new AbortController();

  constructor(options: KvTopologyOptions) {
    this.#options = options;
    this.#waits = new KvClusterWaits(options.clock);
    this.refresh = new KvClusterRefresh(() => this.#look(), options);
    for (const seed of options.seeds) this.open(seed);
    this.#metrics = new SummedMetrics(KV_NODE_METRICS, () => {
      return [...this.#nodes.values()].map(({ kv }) => kv.metrics);
    });
    this.refresh.start();
  }

  get metrics(): Metrics<typeof KV_CLUSTER_METRICS> {
    const { counters, gauges } = this.#metrics;
    return {
      counters: {
        ...counters,
        cluster_moved: () => this.tally.moved,
        cluster_ask: () => this.tally.asked,
        cluster_refreshes: () => this.tally.refreshes,
      },
      gauges: { ...gauges, cluster_nodes: () => this.#nodes.size },
    };
  }

  /** Settles when the cluster can be asked for the first time. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get connected(): boolean {
    return [...this.#named].some(({ kv }) => kv.connected);
  }

  get isKnown(): boolean {
    return this.#table.length > 0;
  }

  nodeOf(slot: number): KvClusterNode | undefined {
    return this.#table[slot];
  }

  /** The node at an endpoint, opened if needed; absent when this is closed or too many nodes are open. */
  open(endpoint: HostAndPort): KvClusterNode | undefined {
    const address = hostPort(endpoint);
    const known = this.#nodes.get(address);
    if (known !== undefined) return known;
    if (this.#closing.signal.aborted || this.#nodes.size >= MAX_NODES) return undefined;
    const { openNode, clock } = this.#options;
    const node = new KvClusterNode(endpoint, {
      open: openNode,
      placeExpiry: (expiry) => this.#placeExpiry(expiry),
      clock,
      onChange: () => this.#changed(node),
    });
    this.#nodes.set(address, node);
    return node;
  }

  /** The node that a redirect leads to; a MOVED holds for all keys of the slot. */
  follow({ kind, slot, endpoint }: SlotRedirect): KvClusterNode | undefined {
    const node = this.open(endpoint);
    if (kind === "ASK") return node;
    if (node !== undefined && this.isKnown) this.#table[slot] = node;
    this.refresh.request();
    return node;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.refresh.close();
    this.#waits.close();
    this.#cancelRetire?.();
    await Promise.all([this.refresh.running, ...[...this.#nodes.values()].map((node) => node.close())]);
  }

  /** The key may be on another node than the one that could not set its expiry. */
  #placeExpiry(expiry: LateExpiry): boolean {
    if (this.#closing.signal.aborted) return false;
    this.refresh.suspect();
    const node = this.nodeOf(slotOf(expiry.key));
    node?.kv.owe([expiry]);
    return node !== undefined;
  }

  /** Reads the slots; returns whether every primary can be asked. */
  async #look(): Promise<boolean> {
    this.tally.refreshes++;
    const ranges = await this.#readRanges();
    if (this.#closing.signal.aborted) return true;
    if (ranges !== undefined) this.#apply(ranges);
    this.#hasLooked = true;
    this.#report();
    return ranges !== undefined && [...this.#named].every((node) => node.kv.connected && !node.isFailing);
  }

  /** From the open nodes in turn, and then from the seed that answers first. */
  async #readRanges(): Promise<SlotRange[] | undefined> {
    const asked = new Set<KvClusterNode>();
    for (const node of this.isKnown ? this.#candidates() : []) {
      asked.add(node);
      // Another one is the first next time.
      this.#nodes.delete(node.address);
      this.#nodes.set(node.address, node);
      const ranges = await this.#ask(node).catch(() => undefined);
      if (ranges !== undefined) return ranges;
    }
    const seeds = this.#options.seeds.flatMap((seed) => this.open(seed) ?? []);
    try {
      return await Promise.any(seeds.filter((node) => !asked.has(node)).map((node) => this.#ask(node)));
    } catch (error) {
      const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
      if (first instanceof Error) this.reason = first.message;
      return undefined;
    }
  }

  /** Those that failed lately come last. */
  #candidates(): KvClusterNode[] {
    const nodes = [...this.#nodes.values()].filter((node) => node.kv.connected);
    return [...nodes.filter(({ isFailing }) => !isFailing), ...nodes.filter(({ isFailing }) => isFailing)];
  }

  async #ask(node: KvClusterNode): Promise<SlotRange[]> {
    const limitMs = Math.min(this.#options.timeoutMs, MAX_LOOK_MS);
    if (node.isOpening) await this.#waits.within(node.opened, limitMs);
    if (!node.kv.connected) throw node.error(node.reason);
    const reply = await this.#waits.within(node.command(["CLUSTER", "SLOTS"]), limitMs).catch((error) => {
      throw node.error(errorText(error));
    });
    if (reply === undefined) throw node.error(noAnswer(limitMs));
    const ranges = parseSlotRanges(reply, node.endpoint);
    if (ranges.length === 0) throw node.error("it knows of no slots");
    node.succeeded();
    return ranges;
  }

  #apply(ranges: readonly SlotRange[]): void {
    const table = new Array<KvClusterNode | undefined>(SLOT_COUNT).fill(undefined);
    const named = new Set<KvClusterNode>();
    for (const { from, to, endpoint } of ranges) {
      const node = this.open(endpoint);
      if (node === undefined) continue;
      named.add(node);
      table.fill(node, from, to + 1);
    }
    this.#table = table;
    for (const node of this.#named) {
      if (!named.has(node)) this.#options.onNodeState?.(node.address, undefined);
    }
    this.#named = named;
    for (const node of named) this.#noteState(node);
    if (this.#nodes.size > named.size) this.#planRetire();
  }

  /** The first sweep marks nodes that left the cluster; a later one closes those that stayed idle. */
  #planRetire(): void {
    this.#cancelRetire ??= this.#options.clock.after(RETIRE_MS, () => {
      this.#cancelRetire = undefined;
      for (const node of [...this.#nodes.values()]) {
        if (this.#named.has(node) || !node.takeIdle() || this.#table.includes(node)) continue;
        this.#nodes.delete(node.address);
        this.#metrics.keep(node.kv.metrics);
        node.close().catch(() => {});
      }
      if (this.#nodes.size > this.#named.size) this.#planRetire();
    });
  }

  #noteState(node: KvClusterNode): void {
    if (node.isOpening) return;
    this.#options.onNodeState?.(node.address, node.kv.connected ? undefined : node.reason);
  }

  #changed(node: KvClusterNode): void {
    if (this.#closing.signal.aborted) return;
    if (this.#named.has(node)) this.#noteState(node);
    if (!node.kv.connected) this.reason = node.describe(node.reason);
    this.#report();
    if (!node.kv.connected) this.refresh.suspect();
    else if (!this.connected) this.refresh.request();
  }

  /** Reports a change; that there is no connection yet, only once a look has ended. */
  #report(): void {
    const connected = this.connected;
    if (connected === this.#reported || (!connected && !this.#hasLooked)) return;
    if (connected) this.#ready.resolve();
    this.#reported = connected;
    this.#options.onConnection?.(connected, connected ? "" : this.reason);
  }
}
