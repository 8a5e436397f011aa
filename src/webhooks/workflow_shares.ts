import type { DueQueue, ExecutionQueue, QueueClaim } from "./execution_store.ts";

/** How much executions in work may hold altogether. */
export interface WorkflowLimits {
  readonly runs: number;
  /** Of their inputs and results. */
  readonly bytes: number;
}

/**
 * A trigger and a workflow may hold so many times what is free: alone at most four fifths and nine tenths of all, and
 * the more of them hold their share, the smaller it is. However many hang, something is left for the others.
 */
const TRIGGER_TIMES_FREE = 4;
const WORKFLOW_TIMES_FREE = 9;

interface Held {
  readonly runs: number;
  readonly bytes: number;
}

const NOTHING: Held = { runs: 0, bytes: 0 };
const ALL = "";

/** Divides places and memory between workflows, and between the triggers of each. */
export class WorkflowShares {
  readonly #limits: WorkflowLimits;
  /** By the keys of each queue. */
  readonly #held: Map<string, Held>;

  constructor(limits: WorkflowLimits, held: ReadonlyMap<string, Held> = new Map()) {
    this.#limits = limits;
    this.#held = new Map(held);
  }

  /** What is free; negative where results came to more than that. */
  get free(): WorkflowLimits {
    const { runs, bytes } = this.#of(ALL);
    return { runs: this.#limits.runs - runs, bytes: this.#limits.bytes - bytes };
  }

  /** Counts executions of a queue, or what they hold, in or out. */
  add(queue: ExecutionQueue, { runs, bytes }: Held): void {
    for (const key of keysOf(queue)) {
      const held = this.#of(key);
      const sum = { runs: held.runs + runs, bytes: held.bytes + bytes };
      if (sum.runs === 0) this.#held.delete(key);
      else this.#held.set(key, sum);
    }
  }

  /** What to claim of the queues: one execution after the other of those that have the fewest in work. */
  claims(due: readonly DueQueue[], most: number): readonly QueueClaim[] {
    const planned = new WorkflowShares(this.#limits, this.#held);
    const claims = new Map<DueQueue, QueueClaim>();
    for (let count = 0; count < most; count++) {
      const [first, ...others] = due.filter((queue) => planned.#mayBegin(queue));
      if (first === undefined) break;
      const next = others.reduce((least, one) => planned.#compare(one, least) < 0 ? one : least, first);
      const { dueAt: _, ...queue } = next;
      const { max, maxBytes } = claims.get(next) ?? { max: 0, maxBytes: this.#freeBytesOf(next) };
      claims.set(next, { ...queue, max: max + 1, maxBytes });
      planned.add(next, { runs: 1, bytes: 0 });
    }
    return [...claims.values()];
  }

  #mayBegin(queue: ExecutionQueue): boolean {
    const [, workflow, trigger] = keysOf(queue);
    const { runs: free } = this.free;
    const isWithin = (key: string, times: number) => {
      const { runs } = this.#of(key);
      return runs === 0 || runs < times * (free - 1);
    };
    return free > 0 && isWithin(workflow, WORKFLOW_TIMES_FREE) && isWithin(trigger, TRIGGER_TIMES_FREE) &&
      this.#freeBytesOf(queue) > 0;
  }

  /** How many more bytes executions of this queue may hold. */
  #freeBytesOf(queue: ExecutionQueue): number {
    const [, workflow, trigger] = keysOf(queue);
    const { bytes: free } = this.free;
    const left = (key: string, times: number) => (times * free - this.#of(key).bytes) / (times + 1);
    return Math.floor(Math.min(left(workflow, WORKFLOW_TIMES_FREE), left(trigger, TRIGGER_TIMES_FREE)));
  }

  /** Below zero where the first of two queues comes first; voided ones, those with fewer void claims first, come last. */
  #compare(one: DueQueue, other: DueQueue): number {
    if (one.voids !== other.voids) return one.voids - other.voids;
    const keys = keysOf(other);
    for (const [index, key] of keysOf(one).entries()) {
      const fewer = this.#of(key).runs - this.#of(keys[index] ?? key).runs;
      if (fewer !== 0) return fewer;
    }
    return one.dueAt - other.dueAt;
  }

  #of(key: string): Held {
    return this.#held.get(key) ?? NOTHING;
  }
}

/** Under what an execution counts: all, its workflow, its trigger there, its queue. */
function keysOf({ workflow, triggerId, stage }: ExecutionQueue): readonly [string, string, string, string] {
  const trigger = JSON.stringify([workflow, triggerId]);
  return [ALL, JSON.stringify([workflow]), trigger, `${trigger} ${stage}`];
}
