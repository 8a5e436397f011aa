import type { CountReceiver } from "../../../ratelimit/decision/counter_cache.ts";
import type { KvClusterNode } from "./node.ts";

/** The takes of one node that wait, or were begun. */
interface Turn {
  isBegun: boolean;
  left: number;
  readonly begin: (() => void)[];
}

/** Takes of one call, which asks at most so many nodes at the same time. */
export class NodeTurns {
  readonly #parallelism: number;
  readonly #turns = new Map<KvClusterNode | undefined, Turn>();
  #asked = 0;

  constructor(parallelism: number) {
    this.#parallelism = parallelism;
  }

  /** Takes from a node in its turn; `take` passes the outcome to the receiver that it gets. */
  run(
    node: KvClusterNode | undefined,
    receiver: CountReceiver,
    take: (receiver: CountReceiver) => void,
  ): void {
    let turn = this.#turns.get(node);
    if (turn === undefined) this.#turns.set(node, turn = { isBegun: false, left: 0, begin: [] });
    turn.left++;
    const noted: CountReceiver = {
      counted: (count) => {
        receiver.counted(count);
        this.#end(node);
      },
      failed: (error) => {
        receiver.failed(error);
        this.#end(node);
      },
    };
    turn.begin.push(() => take(noted));
    this.#next();
  }

  #end(node: KvClusterNode | undefined): void {
    const turn = this.#turns.get(node);
    if (turn === undefined || --turn.left > 0) return;
    this.#turns.delete(node);
    this.#asked--;
    this.#next();
  }

  #next(): void {
    for (const turn of this.#turns.values()) {
      if (!turn.isBegun && this.#asked >= this.#parallelism) continue;
      if (!turn.isBegun) this.#asked++;
      turn.isBegun = true;
      for (const begin of turn.begin.splice(0)) begin();
    }
  }
}
