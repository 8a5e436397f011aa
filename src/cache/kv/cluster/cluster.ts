import { errorText } from "../../../base/error_text.ts";
import type { Metrics } from "../../../base/metrics.ts";
import type { KV_CLUSTER_METRICS } from "../../metrics.ts";
import type { Counted, Taken } from "../../../ratelimit/algorithms/taken.ts";
import type {
  Caller,
  ConditionalHit,
  CounterCache,
  CountReceiver,
  Hit,
} from "../../../ratelimit/counter_cache.ts";
import { kvError } from "../cache.ts";
import { noAnswer } from "../../server_connection.ts";
import { KvClusterCall, type KvClusterCallOptions } from "./call.ts";
import type { KvClusterNode, KvOperation } from "./node.ts";
import { parseRedirect, slotOf, type SlotRedirect } from "./slots.ts";
import { KvTopology, type KvTopologyOptions } from "./slot_table.ts";
import { KvClusterWaits } from "./waits.ts";

/** Most calls that wait for something other than the node that they have asked. */
const MAX_WAITS = 10_000;
const PARALLEL_REMOVALS = 16;
const MAX_REDIRECTIONS = 5;
const ADD: KvOperation<Hit, number> = (kv, hits, options) => kv.ask(hits, options);
const TAKE: KvOperation<ConditionalHit, Taken> = (kv, hits, options) => kv.askToTake(hits, options);

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
    return this.#ask(ADD, hits, caller);
  }

  take(hits: readonly ConditionalHit[], caller?: Caller): Promise<Taken[]> {
    return this.#ask(TAKE, hits, caller);
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
        const call = new KvClusterCall(this.#callOptions, { operation: ADD, hits: [hit], caller, startedAt });
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

  #ask<Asked extends Pick<Hit, "key">, Answer extends Counted>(
    operation: KvOperation<Asked, Answer>,
    hits: readonly Asked[],
    caller: Caller | undefined,
  ): Promise<Answer[]> {
    const startedAt = this.#options.clock.elapsed();
    const call = () => new KvClusterCall(this.#callOptions, { operation, hits, caller, startedAt });
    const node = this.#onlyNode(hits);
    // Most calls: one node has all the keys, and answers.
    if (node !== undefined && !node.isOpening) {
      return node.ask(operation, hits, { caller }, (failure) => {
        return call().resume(node, failure).catch((error) => this.#throw(error));
      });
    }
    return call().run().catch((error) => this.#throw(error));
  }

  #onlyNode(hits: readonly Pick<Hit, "key">[]): KvClusterNode | undefined {
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
    let isAsking = false;
    for (let redirections = 0; node !== undefined && redirections <= MAX_REDIRECTIONS; redirections++) {
      const redirect: SlotRedirect | undefined = await this.#removeOn(node, key, { within, isAsking });
      if (redirect === undefined) return;
      node = topology.follow(redirect);
      isAsking = redirect.kind === "ASK";
    }
    throw new Error(topology.isKnown ? `no node removes keys of slot ${slot}` : topology.reason);
  }

  /** Removes a key on one node; returns where else to try when that node does not have it. */
  async #removeOn(
    node: KvClusterNode,
    key: string,
    { within, isAsking }: { readonly within: Within; readonly isAsking: boolean },
  ): Promise<SlotRedirect | undefined> {
    if (node.isOpening) await within(node.opened);
    try {
      const isDone = await within(node.command(["DEL", key], { asking: isAsking }).then(() => true));
      if (isDone !== true) throw new Error(noAnswer(this.#options.timeoutMs));
      return undefined;
    } catch (error) {
      const redirect = parseRedirect(errorText(error), node.endpoint);
      if (redirect !== undefined) return redirect;
      this.#topology.refresh.suspect();
      throw node.error(errorText(error), error);
    }
  }

  #throw(error: unknown): never {
    throw kvError(this.#options.address, error);
  }
}
