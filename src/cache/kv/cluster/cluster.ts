import { errorText } from "../../../base/error_text.ts";
import type { Metrics } from "../../../base/metrics.ts";
import type { KV_CLUSTER_METRICS } from "../../metrics.ts";
import type { Counted } from "../../../ratelimit/algorithms/taken.ts";
import type {
  Caller,
  Counter,
  CounterCache,
  CountReceiver,
  TakenHit,
} from "../../../ratelimit/decision/counter_cache.ts";
import { kvError } from "../cache.ts";
import { noAnswer } from "../../server_connection.ts";
import { kvCounterOf, type KvTake } from "../counters.ts";
import { KvClusterCall, type KvClusterCallOptions, type KvClusterTake } from "./call.ts";
import { NodeTurns } from "./node_turns.ts";
import type { KvClusterNode } from "./node.ts";
import { parseRedirect, slotOf, type SlotRedirect } from "./slots.ts";
import { KvTopology, type KvTopologyOptions } from "./topology.ts";
import { KvClusterWaits } from "./waits.ts";

/** Most calls that wait for something other than the node that they have asked. */
const MAX_WAITS = 10_000;
const PARALLEL_REMOVALS = 16;
const MAX_REDIRECTIONS = 5;

/** Options of a cluster. */
export interface KvClusterOptions extends KvTopologyOptions {
  /** The cluster's name in errors; holds no password. */
  readonly address: string;
  /** The number of nodes that one call asks at the same time; 0 for all. */
  readonly parallelism: number;
}

type Within = <T>(promise: Promise<T>) => Promise<T | undefined>;

/** Counters in a key-value cache of many nodes, each of which has some of the keys. */
export class KvCluster implements CounterCache {
  readonly isConditional = true;
  readonly isImmediate = false;
  readonly #options: KvClusterOptions;
  readonly #topology: KvTopology;
  readonly #waits: KvClusterWaits;
  readonly #callOptions: KvClusterCallOptions;
  /** Of calls that ask a limited number of nodes at the same time. */
  readonly #turns = new WeakMap<Caller, NodeTurns>();
  readonly #take: KvTake = (counter, hits, caller, receiver) => {
    const slot = counter.slot ??= slotOf(counter.key);
    const { parallelism, clock } = this.#options;
    const take = { counter, slot, hits, caller, startedAt: clock.elapsed() };
    if (parallelism === 0 || caller === undefined || (caller.hitCount ?? 1) === 1) {
      return this.#takeNow(take, receiver);
    }
    let turns = this.#turns.get(caller);
    if (turns === undefined) this.#turns.set(caller, turns = new NodeTurns(parallelism));
    turns.run(this.#topology.nodeOf(slot), receiver, (noted) => this.#takeNow(take, noted));
  };

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

  counterOf(hit: TakenHit): Counter {
    return kvCounterOf(hit, this.#take);
  }

  /** Runs a command on the node of a key, within the timeout. */
  async commandFor(key: string, command: readonly string[]): Promise<unknown> {
    const within = this.#within();
    await this.#known(within);
    return await this.#commandFor(key, command, within);
  }

  /** Removes each key on its node, within the timeout for all. */
  async remove(keys: readonly string[]): Promise<void> {
    const within = this.#within();
    await this.#known(within);
    const queue = keys.values();
    const work = async () => {
      for (const key of queue) await this.#commandFor(key, ["DEL", key], within);
    };
    const workers = await Promise.allSettled(Array.from({ length: PARALLEL_REMOVALS }, work));
    const failed = workers.find((worker) => worker.status === "rejected");
    if (failed !== undefined) throw this.#error(failed.reason);
  }

  async close(): Promise<void> {
    this.#waits.close();
    await this.#topology.close();
  }

  /** Most takes: the node of the slot is known, and counts. */
  #takeNow(take: KvClusterTake, receiver: CountReceiver): void {
    const { counter, slot, hits, caller, startedAt } = take;
    const settle = (count: Promise<Counted>) => {
      count.then(
        (counted) => receiver.counted(counted),
        (error) => receiver.failed(this.#error(error)),
      );
    };
    const node = this.#topology.nodeOf(slot);
    const isLate = this.#options.clock.elapsed() > startedAt;
    if (node === undefined || node.isOpening || isLate) {
      return settle(new KvClusterCall(this.#callOptions, take).run());
    }
    node.take(counter, hits, {
      caller,
      receiver: {
        counted: (count) => receiver.counted(count),
        failed: (failure) => settle(new KvClusterCall(this.#callOptions, take).resume(node, failure)),
      },
    });
  }

  #within(): Within {
    const { clock, timeoutMs } = this.#options;
    const endsAt = clock.elapsed() + timeoutMs;
    return (promise) => this.#waits.within(promise, endsAt - clock.elapsed());
  }

  /** Waits until the nodes are known, if they are asked for. */
  async #known(within: Within): Promise<void> {
    const { isKnown, refresh } = this.#topology;
    if (!isKnown) await within(refresh.running ?? Promise.resolve());
  }

  async #commandFor(key: string, command: readonly string[], within: Within): Promise<unknown> {
    const topology = this.#topology;
    const slot = slotOf(key);
    let node = topology.nodeOf(slot);
    let isAsking = false;
    for (let redirections = 0; node !== undefined && redirections <= MAX_REDIRECTIONS; redirections++) {
      const outcome = await this.#commandOn(node, command, { within, isAsking });
      if ("reply" in outcome) return outcome.reply;
      const { redirect } = outcome;
      node = topology.follow(redirect);
      isAsking = redirect.kind === "ASK";
    }
    throw new Error(topology.isKnown ? `no node has slot ${slot}` : topology.reason);
  }

  /** Runs a command on one node; returns where else to try when that node does not have its key. */
  async #commandOn(
    node: KvClusterNode,
    command: readonly string[],
    { within, isAsking }: { readonly within: Within; readonly isAsking: boolean },
  ): Promise<{ readonly reply: unknown } | { readonly redirect: SlotRedirect }> {
    if (node.isOpening) await within(node.opened);
    try {
      const answer = await within(node.command(command, { asking: isAsking }).then((reply) => ({ reply })));
      if (answer === undefined) throw new Error(noAnswer(this.#options.timeoutMs));
      return answer;
    } catch (error) {
      const redirect = parseRedirect(errorText(error), node.endpoint);
      if (redirect !== undefined) return { redirect };
      this.#topology.refresh.suspect();
      throw node.error(errorText(error), error);
    }
  }

  #error(error: unknown): Error {
    return kvError(this.#options.address, errorText(error), error);
  }
}
