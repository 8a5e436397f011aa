import { errorText } from "../../../base/error_text.ts";
import type { Figures } from "../../../base/figures.ts";
import type { Caller, CounterCache, Hit } from "../../../ratelimit/counter_cache.ts";
import { CacheError } from "../../../ratelimit/errors.ts";
import { KvFailure } from "../node.ts";
import { KvClusterCall, type KvClusterCallOptions } from "./call.ts";
import type { KvClusterNode } from "./node.ts";
import { removeFromCluster } from "./remove.ts";
import { KvTopology, type KvTopologyOptions } from "./topology.ts";
import { KvClusterWaits } from "./waits.ts";
import { slotOf } from "./slots.ts";

/** Most calls that wait for something beside the node that they have asked. */
const MAX_WAITS = 10_000;

/** How a cluster is asked. */
export interface KvClusterOptions extends KvTopologyOptions {
  /** The cluster's name in errors; holds no password. */
  readonly address: string;
  /** How many nodes one call asks at the same time; 0 for all. */
  readonly parallelism: number;
}

/** Counters in a key-value cache of many nodes, each of which has some of the keys. */
export class KvCluster implements CounterCache {
  readonly #options: KvClusterOptions;
  readonly #topology: KvTopology;
  readonly #waits: KvClusterWaits;
  readonly #callOptions: KvClusterCallOptions;

  constructor(options: KvClusterOptions) {
    this.#options = options;
    const { clock, timeoutMs, parallelism } = options;
    this.#topology = new KvTopology(options);
    this.#waits = new KvClusterWaits(clock, MAX_WAITS);
    this.#callOptions = { topology: this.#topology, waits: this.#waits, timeoutMs, parallelism, clock };
  }

  /** Settles when counters can be asked for the first time. */
  get ready(): Promise<void> {
    return this.#topology.ready;
  }

  /** Whether some primary can be asked now. */
  get connected(): boolean {
    return this.#topology.connected;
  }

  /** Those of all nodes added up, and the cluster's own. */
  get figures(): Figures {
    return this.#topology.figures;
  }

  add(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    const startedAt = this.#options.clock.now();
    const call = () => new KvClusterCall(this.#callOptions, { hits, caller, startedAt });
    const node = this.#onlyNode(hits);
    // Most calls: one node has all the keys, and answers.
    if (node !== undefined && !node.opening) {
      return node.ask(hits, caller === undefined ? {} : { caller }, (failure) => {
        return call().resume(node, failure).catch((error) => this.#throw(error));
      });
    }
    return call().run().catch((error) => this.#throw(error));
  }

  read(hits: readonly Hit[], caller?: Caller): Promise<number[]> {
    return this.add(hits.map((hit) => ({ ...hit, addend: 0 })), caller);
  }

  async remove(keys: readonly string[]): Promise<void> {
    try {
      await removeFromCluster(keys, this.#callOptions);
    } catch (error) {
      this.#throw(error);
    }
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

  #throw(error: unknown): never {
    const state = errorText(error);
    const counts = error instanceof KvFailure ? error.counts : [];
    const came = counts.some((count) => count !== undefined) ? counts : [];
    const message = `Cannot ask key-value cache "${this.#options.address}": ${state}`;
    throw new CacheError("kv", message, { counts: came, cause: error });
  }
}
