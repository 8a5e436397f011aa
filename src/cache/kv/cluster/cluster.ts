import { errorText } from "../../../base/error_text.ts";
import type { Metrics } from "../../../base/metrics.ts";
import type { KV_CLUSTER_METRICS } from "../../metrics.ts";
import type { Caller, CounterCache, CountReceiver, Hit } from "../../../ratelimit/counter_cache.ts";
import { kvError } from "../cache.ts";
import { noAnswer } from "../connection.ts";
import { KvClusterCall, type KvClusterCallOptions } from "./call.ts";
import type { KvClusterNode } from "./node.ts";
import { parseRedirect, slotOf, type SlotRedirect } from "./slots.ts";
import { KvTopology, type KvTopologyOptions } from "./slot_table.ts";
import { KvClusterWaits } from "./waits.ts";

/** Most calls that wait for something other than the node that they have asked. */
const MAX_WAITS = 10_000;
const PARALLEL_REMOVALS = 16;
const MAX_REDIRECTIONS = 5;
/** More than any counter holds: giving this much back leaves 0. */
const EVERYTHING = 2 ** 52;

/** How a cluster is asked. */
export interface KvClusterOptions extends KvTopologyOptions {
  /** The cluster's name in errors; holds no password. */
  readonly address: string;
  /** How many nodes one call asks at the same time; 0 for all. */
  readonly parallelism: number;
}

type Within = <T>(promise: Promise<T>) => Promise<T | undefined>;

/** Counters in a key-value cache of many nodes, each of which has some of the keys. */
export class KvCluster implements CounterCache {
  readonly #options: KvClusterOptions;
  readonly #topology: KvTopology;
  readonly #waits: KvClusterWaits;
  readonly #callOptions: KvClusterCallOptions;

  constructor(options: KvClusterOptions) {
    this.#options = options;
    this.#topology = new KvTopology(options);
    this.#waits = new KvClusterWaits(options.clock, MAX_WAITS);
    this.#callOptions = { ...options, topology: this.#topology, waits: this.#waits };
  }

  get ready(): Promise<void> {
    return this.#topology.ready;
  }

  get metrics(): Metrics<typeof KV_CLUSTER_METRICS> {
    return this.#topology.metrics;
  }

  add(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    const startedAt = this.#options.clock.elapsed();
    const call = () => new KvClusterCall(this.#callOptions, { hits, caller, startedAt });
    const node = this.#onlyNode(hits);
    // Most calls: one node has all the keys, and answers.
    if (node !== undefined && !node.isOpening) {
      return node.ask(hits, { caller }, (failure) => {
        return call().resume(node, failure).catch((error) => this.#throw(error));
      });
    }
    return call().run().catch((error) => this.#throw(error));
  }

  addOne(hit: Hit, caller: Caller | undefined, receiver: CountReceiver): void {
    const startedAt = this.#options.clock.elapsed();
    const settle = (counts: Promise<number[]>) => {
      counts.then(([count = 0]) => receiver.counted(count), (error) => receiver.failed(error));
    };
    const node = this.#topology.nodeOf(slotOf(hit.key));
    if (node === undefined || node.isOpening) return settle(this.add([hit], caller));
    node.askOne(hit, caller, {
      counted: (count) => receiver.counted(count),
      failed: (failure) => {
        const call = new KvClusterCall(this.#callOptions, { hits: [hit], caller, startedAt });
        settle(call.resume(node, failure).catch((error) => this.#throw(error)));
      },
    });
  }

  read(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    return this.add(hits.map((hit) => ({ ...hit, addend: 0 })), caller);
  }

  /** Removes each key on its node, within the timeout for all. */
  async remove(keys: readonly string[]): Promise<void> {
    const { clock, timeoutMs } = this.#options;
    const endsAt = clock.elapsed() + timeoutMs;
    const within: Within = (promise) => this.#waits.within(promise, endsAt - clock.elapsed());
    const { isKnown, refresh } = this.#topology;
    if (!isKnown) await within(refresh.running ?? Promise.resolve());
    const queue = keys.values();
    const work = async () => {
      for (const key of queue) await this.#removeKey(key, within);
    };
    const workers = await Promise.allSettled(Array.from({ length: PARALLEL_REMOVALS }, work));
    const failed = workers.find((worker) => worker.status === "rejected");
    if (failed !== undefined) this.#throw(failed.reason);
  }

  async close(): Promise<void> {
    this.#waits.close();
    await this.#topology.close();
  }

  #onlyNode(hits: readonly Hit[]): KvClusterNode | undefined {
    let only: KvClusterNode | undefined;
    for (const { key } of hits) {
      const node = this.#topology.nodeOf(slotOf(key));
      if (node === undefined || (only !== undefined && node !== only)) return undefined;
      only = node;
    }
    return only;
  }

  async #removeKey(key: string, within: Within): Promise<void> {
    const topology = this.#topology;
    const slot = slotOf(key);
    let node = topology.nodeOf(slot);
    for (let redirections = 0; node !== undefined && redirections <= MAX_REDIRECTIONS; redirections++) {
      const redirect: SlotRedirect | undefined = await this.#removeOn(node, key, within);
      if (redirect === undefined) return;
      node = topology.follow(redirect);
      if (redirect.kind === "ASK" && node !== undefined) return await this.#emptyOn(node, key, within);
    }
    throw new Error(topology.isKnown ? `no node removes keys of slot ${slot}` : topology.reason);
  }

  /** Removes a key on one node; returns where else to try when that node does not have it. */
  async #removeOn(node: KvClusterNode, key: string, within: Within): Promise<SlotRedirect | undefined> {
    if (node.isOpening) await within(node.opened);
    try {
      const isDone = await within(node.command(["DEL", key]).then(() => true));
      if (isDone !== true) throw new Error(noAnswer(this.#options.timeoutMs));
      return undefined;
    } catch (error) {
      const redirect = parseRedirect(errorText(error), node.endpoint);
      if (redirect !== undefined) return redirect;
      this.#topology.refresh.suspect();
      throw node.error(errorText(error), error);
    }
  }

  /** Empties a counter whose slot moves to this node: ASKING goes with hits only, and 0 is as good as none. */
  async #emptyOn(node: KvClusterNode, key: string, within: Within): Promise<void> {
    if (node.isOpening) await within(node.opened);
    const hit = { key, addend: -EVERYTHING, windowEnd: 0, expiresInSeconds: 1, perSecond: false };
    const failed = (error: unknown) => Promise.reject(node.error(errorText(error), error));
    const counts = await within(node.ask([hit], { asking: true }, failed));
    if (counts === undefined) throw node.error(noAnswer(this.#options.timeoutMs));
  }

  #throw(error: unknown): never {
    throw kvError(this.#options.address, error);
  }
}
