import type { Clock } from "../../../base/clock.ts";
import { errorText } from "../../../base/error_text.ts";
import type { Figures } from "../../../base/figures.ts";
import { hostPort } from "../../../base/host_port.ts";
import type { LateExpiry } from "../batch.ts";
import { KvClusterFigures, type KvClusterTally } from "./metrics.ts";
import { KvClusterNode, type OpenKvNode } from "./node.ts";
import { KvClusterRefresh } from "./refresh.ts";
import { KvClusterWaits } from "./waits.ts";
import { type KvEndpoint, parseSlotRanges, SLOT_COUNT, slotOf, type SlotRange } from "./slots.ts";

/** Most nodes that are open at a time: as many as a cluster is advised to have. */
const MAX_NODES = 1_000;
/** Longest wait for what one node knows of the cluster; another one may answer sooner. */
const MAX_LOOK_MS = 1_000;
/** A node that is no longer named is closed when nothing was asked of it for this time. */
const RETIRE_MS = 5_000;

/** Where the cluster is found, and how its nodes are opened. */
export interface KvTopologyOptions {
  /** Nodes that are asked while no other one can be. */
  readonly seeds: readonly KvEndpoint[];
  readonly openNode: OpenKvNode;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  /** Called when the cluster can be asked, and when it cannot: with the reason, once an outage. */
  readonly onConnection?: ((connected: boolean, reason: string) => void) | undefined;
}

/** Which node has which slot, kept up with the cluster; the owner of all nodes. */
export class KvTopology {
  readonly tally: KvClusterTally = { moved: 0, asked: 0, refreshes: 0 };
  readonly figures: KvClusterFigures;
  readonly #options: KvTopologyOptions;
  readonly #ready = Promise.withResolvers<void>();
  readonly #waits: KvClusterWaits;
  readonly #refresh: KvClusterRefresh;
  /** By `host:port`. */
  readonly #nodes = new Map<string, KvClusterNode>();
  /** Nodes that the latest answer names. */
  #named = new Set<KvClusterNode>();
  #table: (KvClusterNode | undefined)[] = [];
  #turn = 0;
  #looked = false;
  #reason = "no node has answered";
  /** What was told last. */
  #told: boolean | undefined;
  #cancelRetire: (() => void) | undefined;
  #closed = false;

  constructor(options: KvTopologyOptions) {
    this.#options = options;
    const { clock, random, seeds } = options;
    this.#waits = new KvClusterWaits(clock, Infinity);
    this.#refresh = new KvClusterRefresh({ look: () => this.#look(), clock, random });
    const [first] = seeds.flatMap((seed) => this.open(seed) ?? []);
    const open = (): Figures[] => [...this.#nodes.values()].map(({ figures }) => figures);
    this.figures = new KvClusterFigures(first?.figures ?? { counters: {}, gauges: {} }, open, this.tally);
    this.#refresh.start();
  }

  /** Settles when the cluster can be asked for the first time. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Whether some primary can be asked now. */
  get connected(): boolean {
    for (const node of this.#named) {
      if (node.connected) return true;
    }
    return false;
  }

  /** Whether some node has told which one has which slot. */
  get known(): boolean {
    return this.#table.length > 0;
  }

  /** Why the cluster cannot be asked. */
  get reason(): string {
    return this.#reason;
  }

  /** Settles when the look at the cluster that is under way ends; absent when none is. */
  get looking(): Promise<void> | undefined {
    return this.#refresh.running;
  }

  /** The node that has a slot. */
  nodeOf(slot: number): KvClusterNode | undefined {
    return this.#table[slot];
  }

  /** The node at an endpoint, opened if need be; nothing when it is closed or too many are open. */
  open(endpoint: KvEndpoint): KvClusterNode | undefined {
    const address = hostPort(endpoint);
    const known = this.#nodes.get(address);
    if (known !== undefined) return known;
    if (this.#closed || this.#nodes.size >= MAX_NODES) return undefined;
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

  /** A node told that another one has this slot now. */
  move(slot: number, endpoint: KvEndpoint): KvClusterNode | undefined {
    const node = this.open(endpoint);
    if (node !== undefined && this.known) this.#table[slot] = node;
    this.#refresh.request();
    return node;
  }

  /** Something does not fit what is known of the cluster. */
  suspect(): void {
    this.#refresh.suspect();
  }

  /** Closes all nodes and ends all timers. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#refresh.close();
    this.#waits.close();
    this.#cancelRetire?.();
    await Promise.all([this.#refresh.running, ...[...this.#nodes.values()].map((node) => node.close())]);
  }

  /** A node could not set an expiry: its key may be on another one by now. */
  #placeExpiry(expiry: LateExpiry): boolean {
    if (this.#closed) return false;
    this.suspect();
    const node = this.nodeOf(slotOf(expiry.key));
    node?.owe([expiry]);
    return node !== undefined;
  }

  /** Asks nodes until one tells the slots; answers whether every primary can be asked. */
  async #look(): Promise<boolean> {
    this.tally.refreshes++;
    const ranges = await this.#readRanges();
    if (this.#closed) return true;
    if (ranges !== undefined) this.#apply(ranges);
    this.#looked = true;
    this.#tell();
    return ranges !== undefined && [...this.#named].every((node) => node.connected && !node.failing);
  }

  /** From the nodes that are known in turn, and then from whichever seed answers first. */
  async #readRanges(): Promise<SlotRange[] | undefined> {
    const asked = new Set<KvClusterNode>();
    for (const node of this.known ? this.#candidates() : []) {
      asked.add(node);
      const ranges = await this.#ask(node).catch(() => undefined);
      if (ranges !== undefined) return ranges;
    }
    const seeds = this.#options.seeds.flatMap((seed) => this.open(seed) ?? []).filter((node) =>
      !asked.has(node)
    );
    try {
      return await Promise.any(seeds.map((node) => this.#ask(node)));
    } catch (error) {
      const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
      if (first instanceof Error) this.#reason = first.message;
      return undefined;
    }
  }

  /** Beginning with another one each time; those that have failed lately come last. */
  #candidates(): KvClusterNode[] {
    const nodes = [...this.#nodes.values()].filter((node) => node.connected);
    const from = this.#turn++ % Math.max(1, nodes.length);
    const turned = [...nodes.slice(from), ...nodes.slice(0, from)];
    return [...turned.filter(({ failing }) => !failing), ...turned.filter(({ failing }) => failing)];
  }

  async #ask(node: KvClusterNode): Promise<SlotRange[]> {
    const limitMs = Math.min(this.#options.timeoutMs, MAX_LOOK_MS);
    if (node.opening) await this.#waits.within(node.opened, limitMs);
    if (!node.connected) throw new Error(nodeState(node, node.reason));
    const reply = await this.#waits.within(node.command(["CLUSTER", "SLOTS"]), limitMs).catch((error) => {
      throw new Error(nodeState(node, errorText(error)));
    });
    if (reply === undefined) throw new Error(nodeState(node, `no answer within ${limitMs} ms`));
    const ranges = parseSlotRanges(reply, node.endpoint);
    if (ranges.length === 0) throw new Error(nodeState(node, "it knows of no slots"));
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
    this.#named = named;
    if (this.#nodes.size > named.size) this.#planRetire();
  }

  /** The first sweep marks the nodes that are not named; a later one closes those that stayed idle. */
  #planRetire(): void {
    this.#cancelRetire ??= this.#options.clock.after(RETIRE_MS, () => {
      this.#cancelRetire = undefined;
      for (const node of [...this.#nodes.values()]) {
        if (!this.#named.has(node) && node.takeIdle() && !this.#table.includes(node)) this.#retire(node);
      }
      if (this.#nodes.size > this.#named.size) this.#planRetire();
    });
  }

  #retire(node: KvClusterNode): void {
    this.#nodes.delete(node.address);
    this.figures.keep(node.figures);
    // Nobody waits for it, and the next look does not need it.
    node.close().catch(() => {});
  }

  /** A node has got its first connection, or has none left. */
  #changed(node: KvClusterNode): void {
    if (this.#closed) return;
    if (!node.connected) this.#reason = nodeState(node, node.reason);
    this.#tell();
    if (!node.connected) this.#refresh.suspect();
    else if (!this.connected) this.#refresh.request();
  }

  /** Tells what has changed; that nothing is there yet, only once a look has ended. */
  #tell(): void {
    const connected = this.connected;
    if (connected === this.#told || (!connected && !this.#looked)) return;
    if (connected) this.#ready.resolve();
    this.#told = connected;
    this.#options.onConnection?.(connected, connected ? "" : this.#reason);
  }
}

/** What is wrong with one node. */
export function nodeState(node: KvClusterNode, state: string): string {
  return `node "${node.address}": ${state}`;
}
