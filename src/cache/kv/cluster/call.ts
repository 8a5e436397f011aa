import type { Clock } from "../../../base/clock.ts";
import { errorText } from "../../../base/error_text.ts";
import type { Counted } from "../../../ratelimit/algorithms/taken.ts";
import type { Caller } from "../../../ratelimit/decision/counter_cache.ts";
import { noAnswer } from "../../server_connection.ts";
import type { KvCounter } from "../counters.ts";
import type { KvClusterNode } from "./node.ts";
import type { KvTopology } from "./topology.ts";
import type { KvClusterWaits } from "./waits.ts";
import { parseRedirect } from "./slots.ts";

/** Waits before a redirected hit is sent on, by its redirections; nodes may take a moment to agree on a slot. */
const PAUSES_MS = [0, 0, 20, 50, 100];
/** Errors of a node that cannot serve now, unlike one that refuses a key. */
const NODE_STATE = /^(?:CLUSTERDOWN|LOADING|MASTERDOWN|READONLY|TRYAGAIN)\b/;
/** Errors of a node begin with a word in capitals. */
const ERROR_REPLY = /^[A-Z]{2,} /;

/** Shared by all calls. */
export interface KvClusterCallOptions {
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly topology: KvTopology;
  readonly waits: KvClusterWaits;
}

/** Hits of one counter that a caller waits for. */
export interface KvClusterTake {
  readonly counter: KvCounter;
  readonly slot: number;
  readonly hits: number;
  readonly caller: Caller | undefined;
  readonly startedAt: number;
}

/** Destination of hits. */
interface Target {
  readonly node: KvClusterNode;
  readonly asking: boolean;
}

/** Hits that are waited for. Only redirected ones are sent again: any others without an answer may be counted. */
export class KvClusterCall implements Caller {
  readonly #options: KvClusterCallOptions;
  readonly #take: KvClusterTake;
  /** Time has passed, so that the timeout of a node would be too long. */
  #hasWaited = false;
  #isOver = false;

  constructor(options: KvClusterCallOptions, take: KvClusterTake) {
    this.#options = options;
    this.#take = take;
  }

  get cancelled(): boolean {
    return this.#isOver || this.#take.caller?.cancelled === true;
  }

  /** Takes the hits once the slots are known. */
  async run(): Promise<Counted> {
    const { topology, waits, clock } = this.#options;
    this.#hasWaited = clock.elapsed() > this.#take.startedAt;
    if (!topology.isKnown) {
      this.#hasWaited = true;
      await waits.within(topology.refresh.running ?? Promise.resolve(), this.#left());
    }
    if (!topology.isKnown) throw new Error(topology.reason);
    const { slot } = this.#take;
    const node = topology.nodeOf(slot);
    if (node !== undefined) return await this.#ask({ node, asking: false }, 0);
    topology.refresh.suspect();
    throw new Error(`no node has slot ${slot}`);
  }

  /** Continues after a node did not count the hits. */
  async resume(node: KvClusterNode, failure: unknown): Promise<Counted> {
    return await this.#sendOn(node, errorText(failure), 0);
  }

  async #ask({ node, asking }: Target, redirections: number): Promise<Counted> {
    const { waits, timeoutMs } = this.#options;
    if (node.isOpening) {
      this.#hasWaited = true;
      await waits.within(node.opened, this.#left());
    }
    if (this.#hasWaited && (waits.isFull || this.#left() <= 0)) {
      throw this.#failure(node, waits.isFull ? "too many calls wait" : noAnswer(timeoutMs));
    }
    const { counter, hits } = this.#take;
    const answer = new Promise<Counted | Error>((resolve) => {
      const failed = (error: unknown) =>
        resolve(error instanceof Error ? error : new Error(errorText(error)));
      node.take(counter, hits, { caller: this, asking, receiver: { counted: resolve, failed } });
    });
    const count = await (this.#hasWaited ? waits.within(answer, this.#left()) : answer);
    if (count === undefined) {
      this.#isOver = true;
      throw this.#failure(node, noAnswer(timeoutMs));
    }
    return count instanceof Error ? await this.#sendOn(node, errorText(count), redirections) : count;
  }

  async #sendOn(node: KvClusterNode, state: string, redirections: number): Promise<Counted> {
    const target = this.#target(node, state);
    if (target === undefined) throw this.#failure(node, state);
    const pauseMs = PAUSES_MS[redirections];
    if (pauseMs === undefined) throw this.#failure(target.node, "the nodes send the hit to one another");
    this.#hasWaited = true;
    if (pauseMs > 0) {
      await this.#options.waits.within(new Promise<never>(() => {}), Math.min(pauseMs, this.#left()));
    }
    return await this.#ask(target, redirections + 1);
  }

  #target(node: KvClusterNode, state: string): Target | undefined {
    const redirect = parseRedirect(state, node.endpoint);
    if (redirect === undefined) return undefined;
    const asking = redirect.kind === "ASK";
    const { topology } = this.#options;
    topology.tally[asking ? "asked" : "moved"]++;
    const target = topology.follow(redirect);
    return target === undefined ? undefined : { node: target, asking };
  }

  #failure(node: KvClusterNode, state: string): Error {
    const isRefused = ERROR_REPLY.test(state) && !NODE_STATE.test(state);
    if (this.#take.caller?.cancelled !== true && !isRefused) {
      node.failed();
      this.#options.topology.refresh.suspect();
    }
    return node.error(state);
  }

  #left(): number {
    const { clock, timeoutMs } = this.#options;
    return this.#take.startedAt + timeoutMs - clock.elapsed();
  }
}
