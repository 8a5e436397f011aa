import type { Clock } from "../../../base/clock.ts";
import { type HostAndPort, hostPort } from "../../../base/host_port.ts";
import type { Counted } from "../../../ratelimit/algorithms/taken.ts";
import type { KvCounter } from "../counters.ts";
import type { LateExpiry } from "../expiries.ts";
import type { KvNode, KvTakeOptions } from "../node.ts";

/** A failure is forgotten after this time without a call. */
const FAILING_MS = 10_000;

/** A node with its connections, as the cluster uses it. */
export type KvNodeLike = Pick<
  KvNode,
  "ready" | "connected" | "metrics" | "take" | "command" | "owe" | "close"
>;

/** Opens a node. `placeExpiry` takes expiries that it cannot send; returns whether another node has them. */
export type OpenKvNode = (
  endpoint: HostAndPort,
  onConnection: (connected: boolean, reason: string) => void,
  placeExpiry: (expiry: LateExpiry) => boolean,
) => KvNodeLike;

/** Options of a node of the cluster. */
interface KvClusterNodeOptions {
  readonly open: OpenKvNode;
  readonly placeExpiry: (expiry: LateExpiry) => boolean;
  readonly clock: Clock;
  /** Called, in a later turn, when the connections or their absence are known. */
  readonly onChange: () => void;
}

/** An open node of the cluster: whether it is used, and whether it failed lately. */
export class KvClusterNode {
  readonly endpoint: HostAndPort;
  readonly address: string;
  readonly kv: KvNodeLike;
  reason = "no connection";
  /** The first attempt to connect has not ended. */
  isOpening = true;
  readonly #opened = Promise.withResolvers<void>();
  readonly #clock: Clock;
  #inFlight = 0;
  #isUsed = true;
  #failedAt = -Infinity;

  constructor(endpoint: HostAndPort, { open, placeExpiry, clock, onChange }: KvClusterNodeOptions) {
    this.endpoint = endpoint;
    this.address = hostPort(endpoint);
    this.#clock = clock;
    const change = (reason: string) => {
      if (reason !== "") this.reason = reason;
      this.#endOpening();
      queueMicrotask(onChange);
    };
    this.kv = open(endpoint, (_, reason) => change(reason), placeExpiry);
    this.kv.ready.then(() => change(""), () => {});
  }

  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** It failed lately, other than by refusing a key, and has not succeeded since. */
  get isFailing(): boolean {
    return this.#clock.elapsed() - this.#failedAt < FAILING_MS;
  }

  failed(): void {
    this.#failedAt = this.#clock.elapsed();
  }

  succeeded(): void {
    this.#failedAt = -Infinity;
  }

  /** Takes hits of a counter. */
  take(counter: KvCounter, hits: number, options: KvTakeOptions): void {
    const { receiver } = options;
    this.#inFlight++;
    this.#isUsed = true;
    const noted = {
      counted: (count: Counted) => {
        this.#inFlight--;
        this.succeeded();
        receiver.counted(count);
      },
      failed: (error: unknown) => {
        this.#inFlight--;
        receiver.failed(error);
      },
    };
    this.kv.take(counter, hits, { ...options, receiver: noted });
  }

  async command(...command: Parameters<KvNode["command"]>): Promise<unknown> {
    this.#inFlight++;
    this.#isUsed = true;
    try {
      return await this.kv.command(...command);
    } finally {
      this.#inFlight--;
    }
  }

  /** True if it was not used since the last call of this, and nothing is in flight. */
  takeIdle(): boolean {
    const isIdle = !this.#isUsed && this.#inFlight === 0;
    this.#isUsed = false;
    return isIdle;
  }

  async close(): Promise<void> {
    this.#endOpening();
    await this.kv.close();
  }

  error(state: string, cause?: unknown): Error {
    return new Error(this.describe(state), { cause });
  }

  describe(state: string): string {
    return `node "${this.address}": ${state}`;
  }

  #endOpening(): void {
    this.isOpening = false;
    this.#opened.resolve();
  }
}
