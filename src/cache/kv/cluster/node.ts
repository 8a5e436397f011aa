import type { Clock } from "../../../base/clock.ts";
import type { Figures } from "../../../base/figures.ts";
import { hostPort } from "../../../base/host_port.ts";
import type { Caller, Hit } from "../../../ratelimit/counter_cache.ts";
import type { LateExpiry } from "../batch.ts";
import type { KvEndpoint } from "./slots.ts";

/** After this time a failure says nothing any more, when the node was not asked since. */
const FAILING_MS = 10_000;

/** One endpoint of the cluster with its connections, as the cluster sees it. */
export interface KvNodeLike {
  /** Settles at the first connection. */
  readonly ready: Promise<void>;
  /** Whether a connection can be used now. */
  readonly connected: boolean;
  readonly figures: Figures;
  /** Counts after each hit, in order, within the time-out. Rejects with `KvFailure`. */
  ask(hits: readonly Hit[], options?: KvAskOptions): Promise<number[]>;
  /** The answer to one command, within the time-out. */
  command(args: readonly string[]): Promise<unknown>;
  /** Takes expiries of keys that it has now. */
  owe(late: readonly LateExpiry[]): void;
  close(): Promise<void>;
}

/** How hits are asked. */
export interface KvAskOptions {
  readonly caller?: Caller;
  /** The node is told before each command that another one sent us. */
  readonly asking?: boolean;
}

/**
 * Makes a node, which connects by itself and tells when its first connection is there and when none is left.
 * Expiries that it cannot send go to `placeExpiry`, which answers whether another node has taken them.
 */
export type OpenKvNode = (
  endpoint: KvEndpoint,
  onConnection: (connected: boolean, reason: string) => void,
  placeExpiry: (expiry: LateExpiry) => boolean,
) => KvNodeLike;

/** A node of the cluster that is open: who is waiting for it, and how it has been lately. */
export class KvClusterNode {
  readonly endpoint: KvEndpoint;
  /** `host:port`. */
  readonly address: string;
  /** Why there is no connection, where that was told. */
  reason = "no connection";
  readonly #node: KvNodeLike;
  readonly #clock: Clock;
  readonly #opened = Promise.withResolvers<void>();
  #opening = true;
  #underWay = 0;
  #used = true;
  #failedAt = -Infinity;

  constructor(
    endpoint: KvEndpoint,
    { open, placeExpiry, clock, onChange }: {
      readonly open: OpenKvNode;
      readonly placeExpiry: (expiry: LateExpiry) => boolean;
      readonly clock: Clock;
      readonly onChange: () => void;
    },
  ) {
    this.endpoint = endpoint;
    this.#clock = clock;
    this.address = hostPort(endpoint);
    const change = (reason: string) => {
      if (reason !== "") this.reason = reason;
      this.#endOpening();
      // Later, because a node may tell while it is being made.
      queueMicrotask(onChange);
    };
    this.#node = open(endpoint, (_, reason) => change(reason), placeExpiry);
    this.#node.ready.then(() => change(""), () => {});
  }

  /** The first attempt to connect has not ended. */
  get opening(): boolean {
    return this.#opening;
  }

  /** Settles when the first attempt to connect has ended, well or not. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** Whether it can be asked now. */
  get connected(): boolean {
    return this.#node.connected;
  }

  /** It failed lately, by its own fault and not that of a key, and has not answered well since. */
  get failing(): boolean {
    return this.#clock.elapsed() - this.#failedAt < FAILING_MS;
  }

  /** It has failed by its own fault. */
  failed(): void {
    this.#failedAt = this.#clock.elapsed();
  }

  /** It has answered well. */
  succeeded(): void {
    this.#failedAt = -Infinity;
  }

  /** What its connections tell of themselves. */
  get figures(): Figures {
    return this.#node.figures;
  }

  /** Asks the node; `failed` may mend what it did not answer. */
  ask(
    hits: readonly Hit[],
    options: KvAskOptions,
    failed: (error: unknown) => number[] | Promise<number[]>,
  ): Promise<number[]> {
    this.#underWay++;
    this.#used = true;
    return this.#node.ask(hits, options).then((counts) => {
      this.#underWay--;
      this.succeeded();
      return counts;
    }, (error) => {
      this.#underWay--;
      return failed(error);
    });
  }

  /** Sends one command. */
  async command(args: readonly string[]): Promise<unknown> {
    this.#underWay++;
    this.#used = true;
    try {
      return await this.#node.command(args);
    } finally {
      this.#underWay--;
    }
  }

  /** Takes expiries of keys that it has now. */
  owe(late: readonly LateExpiry[]): void {
    this.#node.owe(late);
  }

  /** Whether nothing has been asked since the last time that this was asked, and nothing is under way. */
  takeIdle(): boolean {
    const idle = !this.#used && this.#underWay === 0;
    this.#used = false;
    return idle;
  }

  /** Closes the connections. */
  async close(): Promise<void> {
    this.#endOpening();
    await this.#node.close();
  }

  #endOpening(): void {
    this.#opening = false;
    this.#opened.resolve();
  }
}
