import type { HostAndPort } from "../../base/host_port.ts";
import type { Metrics } from "../../base/metrics.ts";
import {
  type Counter,
  type CounterCache,
  isConditional,
  isJoint,
  type TakenHit,
} from "../../ratelimit/decision/counter_cache.ts";
import { CacheError } from "../../ratelimit/errors.ts";
import type { MC_METRICS } from "../metrics.ts";
import { settleAll } from "../settle_all.ts";
import { McCounter, type McTake } from "./batch.ts";
import { storedMcKey } from "./keys.ts";
import { McNodeChoice, type McNodeChoiceOptions } from "./node_choice.ts";
import { type McSrv, McSrvLookup } from "./srv_lookup.ts";

/** Options of a memcached-style cache. */
export interface McCacheOptions extends McNodeChoiceOptions {
  /** The nodes, in the order that every instance uses, or where to look them up. */
  readonly hosts: readonly HostAndPort[] | McSrv;
  /** Store keys that the protocol cannot carry under a digest behind this prefix; refuse them when absent. */
  readonly digestPrefix?: string | undefined;
  /** Called when a lookup of the nodes fails, once an outage, and when it succeeds again. */
  readonly onLookup?: ((found: boolean, reason: string) => void) | undefined;
}

/** Rules with other algorithms are refused before they are counted. */
const NO_CONDITIONAL_COUNTER: Counter = {
  take: (_hits, _caller, receiver) =>
    receiver.failed(new CacheError("mc", "memcached counts in fixed windows only")),
};

/** Counters in a memcached-style cache. */
export class McCache implements CounterCache {
  readonly isConditional = false;
  readonly isImmediate = false;
  readonly #options: McCacheOptions;
  readonly #choice: McNodeChoice;
  readonly #lookup: McSrvLookup | undefined;
  #lookupReason = "";
  readonly #take: McTake = (counter, hits, caller, receiver) => {
    const node = this.#choice.nodeOf(counter.key);
    if (node === undefined) receiver.failed(this.#noNode());
    else node.take(counter, hits, caller, receiver);
  };

  constructor(options: McCacheOptions) {
    this.#options = options;
    this.#choice = new McNodeChoice(options);
    const { hosts, clock, random } = options;
    if ("name" in hosts) {
      this.#lookup = new McSrvLookup({
        ...hosts,
        clock,
        random,
        onNodes: (nodes) => this.#choice.setNodes(nodes),
        onLookup: (found, reason) => {
          this.#lookupReason = reason;
          options.onLookup?.(found, reason);
        },
      });
    } else this.#choice.setNodes(hosts);
  }

  /** Settles when each of the first nodes has had a connection. */
  get ready(): Promise<void> {
    return this.#choice.ready;
  }

  get connected(): boolean {
    return this.#choice.connected;
  }

  get metrics(): Metrics<typeof MC_METRICS.metrics> {
    return this.#choice.metrics;
  }

  counterOf(hit: TakenHit): Counter {
    if (isJoint(hit) || isConditional(hit)) return NO_CONDITIONAL_COUNTER;
    return new McCounter(hit, storedMcKey(hit.key, this.#options.digestPrefix), this.#take);
  }

  async remove(keys: readonly string[]): Promise<void> {
    const stored = keys.map((key) => storedMcKey(key, this.#options.digestPrefix));
    const parts = Map.groupBy(stored, (key) => this.#choice.nodeOf(key));
    if (parts.has(undefined)) throw this.#noNode();
    await settleAll([...parts].map(([node, part]) => node?.remove(part) ?? Promise.resolve()));
  }

  async close(): Promise<void> {
    await this.#lookup?.close();
    await this.#choice.close();
  }

  #noNode(): CacheError {
    const { hosts } = this.#options;
    const name = "name" in hosts ? hosts.name : "";
    const reason = this.#lookupReason === "" ? "" : `: ${this.#lookupReason}`;
    const message = `Cannot query memcached-style cache "${name}": its nodes are not known yet${reason}`;
    return new CacheError("mc", message);
  }
}
