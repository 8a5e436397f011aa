import type { KvNodeLike, OpenKvNode } from "../../src/cache/kv/cluster/node.ts";
import type { LateExpiry } from "../../src/cache/kv/expiries.ts";
import type { KvTakeOptions } from "../../src/cache/kv/node.ts";
import type { KvCounter } from "../../src/cache/kv/counters.ts";
import { hostPort } from "../../src/base/host_port.ts";
import type { CountReceiver, Hit } from "../../src/ratelimit/decision/counter_cache.ts";

type ScriptedHit = Pick<Hit, "key" | "addend">;

interface ScriptedTake {
  readonly hit: ScriptedHit;
  readonly isConditional: boolean;
  readonly receiver: CountReceiver;
}

/** A node's replies to hits, by position: a count or an error; absent for a node that never replies. */
type HitScript = (
  hits: readonly ScriptedHit[],
  options: KvTakeOptions,
) => readonly (number | string)[] | undefined;

/** A node whose answers a test writes; it keeps what it was asked. */
class ScriptedKvNode {
  /** Keys of each call, with `ASKING` before those that came with it. */
  readonly asked: string[][] = [];
  /** Keys whose expiries it was given. */
  readonly owed: string[] = [];
  /** Number of times that it was asked for the slots. */
  looks = 0;
  /** Number of times that it was closed. */
  closed = 0;
  /** Connections are refused. */
  away = false;
  /** The first connection comes with `connect` only. */
  slow = false;
  /** Answers to hits wait for it. */
  gate: PromiseWithResolvers<void> | undefined;
  script: HitScript = (hits) => hits.map(({ addend }) => addend);
  /** Answers CLUSTER SLOTS; one that never does is absent. */
  slots: (() => unknown) | undefined;
  /** Answers other commands. */
  run: (args: readonly string[], asking: boolean) => unknown = () => 1;
  /** Receives expiries that it cannot send. */
  placeExpiry: (expiry: LateExpiry) => boolean = () => false;
  /** Callers of the latest call. */
  options: KvTakeOptions | undefined;
  #batch: { readonly isAsking: boolean; readonly takes: ScriptedTake[] } | undefined;
  #tell: ((connected: boolean, reason: string) => void) | undefined;
  #arrive: (() => void) | undefined;

  /** Opens the node for a cluster. */
  open(onConnection: (connected: boolean, reason: string) => void): KvNodeLike {
    const ready = Promise.withResolvers<void>();
    this.#tell = onConnection;
    this.#arrive = ready.resolve;
    let open = true;
    queueMicrotask(() => {
      if (this.away) onConnection(false, "refused");
      else if (!this.slow) this.connect();
    });
    const isConnected = () => open && !this.away && !this.slow;
    const calls = () => this.asked.length;
    const none = () => 0;
    const metrics: KvNodeLike["metrics"] = {
      counters: {
        cx_total: calls,
        cx_local_close: none,
        exhausted: none,
        timeouts: none,
        breaker_opened: none,
      },
      gauges: { cx_active: () => isConnected() ? 1 : 0, breaker_open: none, batches_in_flight: none },
    };
    return {
      ready: ready.promise,
      get connected() {
        return isConnected();
      },
      metrics,
      take: (counter, hits, options) => this.#take(counter, hits, options),
      command: (args, options) => this.#command(args, options?.asking === true),
      owe: (late) => void this.owed.push(...late.map(({ key }) => key)),
      close: () => {
        open = false;
        this.closed++;
        return Promise.resolve();
      },
    };
  }

  /** A connection is there. */
  connect(): void {
    this.away = false;
    this.slow = false;
    this.#arrive?.();
    this.#tell?.(true, "");
  }

  /** No connection is left. */
  leave(): void {
    this.away = true;
    this.#tell?.(false, "gone");
  }

  /** Takes of one turn are one question, as they are one batch. */
  #take(counter: KvCounter, hits: number, options: KvTakeOptions): void {
    this.options = options;
    const isAsking = options.asking === true;
    let batch = this.#batch;
    if (batch?.isAsking !== isAsking) {
      const created = batch = this.#batch = { isAsking, takes: [] as ScriptedTake[] };
      this.asked.push(isAsking ? ["ASKING"] : []);
      queueMicrotask(() => {
        if (this.#batch === created) this.#batch = undefined;
        void this.#answer(created.takes, options);
      });
    }
    const { key } = counter;
    this.asked.at(-1)?.push(key);
    batch.takes.push({
      hit: { key, addend: hits },
      isConditional: "limit" in counter,
      receiver: options.receiver,
    });
  }

  /** Conditional hits are answered with the counts of the script as what is used. */
  async #answer(takes: readonly ScriptedTake[], options: KvTakeOptions): Promise<void> {
    await this.gate?.promise;
    const hits = takes.map(({ hit }) => hit);
    const answers = this.away ? hits.map(() => "no connection") : this.script(hits, options);
    if (answers === undefined) return;
    for (const [position, { receiver, isConditional }] of takes.entries()) {
      const answer = answers[position] ?? "no answer";
      if (typeof answer === "string") receiver.failed(new Error(answer));
      else if (!isConditional) receiver.counted(answer);
      else receiver.counted({ granted: true, used: answer, available: 0, retryMs: 0, freeMs: 0 });
    }
  }

  #command(args: readonly string[], asking: boolean): Promise<unknown> {
    if (args.join(" ") !== "CLUSTER SLOTS") return new Promise((resolve) => resolve(this.run(args, asking)));
    this.looks++;
    const { slots } = this;
    return slots === undefined ? new Promise(() => {}) : new Promise((resolve) => resolve(slots()));
  }
}

/** Nodes by `host:port`, made when they are first named. */
export class ScriptedKvNodes {
  readonly #nodes = new Map<string, ScriptedKvNode>();

  /** Opens nodes for a cluster. */
  readonly openNode: OpenKvNode = (endpoint, onConnection, placeExpiry) => {
    const node = this.at(hostPort(endpoint));
    node.placeExpiry = placeExpiry;
    return node.open(onConnection);
  };

  /** The node at an address. */
  at(address: string): ScriptedKvNode {
    let node = this.#nodes.get(address);
    if (node === undefined) this.#nodes.set(address, node = new ScriptedKvNode());
    return node;
  }
}
