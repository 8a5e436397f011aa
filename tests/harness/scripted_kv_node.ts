import type { KvNodeLike, OpenKvNode } from "../../src/cache/kv/cluster/node.ts";
import type { LateExpiry } from "../../src/cache/kv/expiries.ts";
import { type KvAskOptions, KvFailure } from "../../src/cache/kv/node.ts";
import { hostPort } from "../../src/base/host_port.ts";
import type { Taken } from "../../src/ratelimit/algorithms/taken.ts";
import type { ConditionalHit, Hit } from "../../src/ratelimit/counter_cache.ts";

/** A node's replies to hits, by position: a count or an error; absent for a node that never replies. */
type HitScript = (
  hits: readonly Hit[],
  options: KvAskOptions,
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
  options: KvAskOptions = {};
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
      ask: (hits, options = {}) => this.#ask(hits, options),
      askOne: (hit, caller, receiver) => {
        this.#ask([hit], { caller }).then(([count = 0]) => receiver.counted(count), receiver.failed);
      },
      askToTake: (hits, options = {}) => this.#take(hits, options),
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

  async #ask(hits: readonly Hit[], options: KvAskOptions): Promise<number[]> {
    this.options = options;
    this.asked.push([...(options.asking === true ? ["ASKING"] : []), ...hits.map(({ key }) => key)]);
    await this.gate?.promise;
    const answers = this.away ? hits.map(() => "no connection") : this.script(hits, options);
    if (answers === undefined) return await new Promise(() => {});
    const counts = answers.map((answer) => typeof answer === "number" ? answer : undefined);
    const states = answers.map((answer) => typeof answer === "string" ? answer : undefined);
    if (states.every((state) => state === undefined)) return counts.map(Number);
    throw new KvFailure(states.find((state) => state !== undefined) ?? "", { counts, states });
  }

  /** Conditional hits are answered with the counts of the script as what is used. */
  async #take(hits: readonly ConditionalHit[], options: KvAskOptions): Promise<Taken[]> {
    const counts = await this.#ask(hits.map((hit) => ({ ...hit, windowEnd: 0 })), options);
    return counts.map((used) => ({ granted: true, used, available: 0, retryMs: 0, freeMs: 0 }));
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
