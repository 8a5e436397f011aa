import type { DueQueue, ExecutionQueue, QueueClaim } from "../store/operations/execution_claims.ts";

/** Places, and bytes of inputs and results. */
interface Amounts {
  readonly runs: number;
  readonly bytes: number;
}

/**
 * A trigger and a workflow may hold so many times what is free: alone at most four fifths and nine tenths of all, and
 * less the more of them hold their share. However many hang, something is left for the others.
 */
const TRIGGER_TIMES_FREE = 4;
const WORKFLOW_TIMES_FREE = 9;

/** A due queue in a plan. */
interface Candidate {
  readonly due: DueQueue;
  /** The load of each, planned executions included. */
  readonly held: readonly [workflow: Count, trigger: Count, queue: Count];
  readonly maxBytes: number;
  max: number;
}

interface Count {
  runs: number;
}

const NOTHING: Amounts = { runs: 0, bytes: 0 };
const ALL = "";

/** Divides places and memory between workflows, and between the triggers of each. */
export class WorkflowShares {
  readonly #limits: Amounts;
  /** By the keys of `keysOf`. */
  readonly #held = new Map<string, Amounts>();

  constructor(limits: Amounts) {
    this.#limits = limits;
  }

  /** The free places and bytes; negative where results exceed the limits. */
  get free(): Amounts {
    const { runs, bytes } = this.#of(ALL);
    return { runs: this.#limits.runs - runs, bytes: this.#limits.bytes - bytes };
  }

  /** Counts executions of a queue, or what they hold, in or out. */
  add(queue: ExecutionQueue, { runs, bytes }: Amounts): void {
    for (const key of keysOf(queue)) {
      const held = this.#of(key);
      const sum = { runs: held.runs + runs, bytes: held.bytes + bytes };
      if (sum.runs === 0) this.#held.delete(key);
      else this.#held.set(key, sum);
    }
  }

  /** The executions to claim: one execution after the other from the queues with the fewest in flight. */
  claims(due: readonly DueQueue[], most: number): readonly QueueClaim[] {
    let free = this.free.runs;
    const candidates = this.#candidates(due);
    const chosen = new Set<Candidate>();
    for (const end = free - most; free > Math.max(end, 0); free--) {
      let next: Candidate | undefined;
      for (const one of candidates) {
        if (mayBegin(one, free) && (next === undefined || compare(one, next) < 0)) next = one;
      }
      if (next === undefined) break;
      chosen.add(next);
      next.max++;
      for (const count of next.held) count.runs++;
    }
    return [...chosen].map(({ due: { dueAt: _, ...queue }, max, maxBytes }) => ({ ...queue, max, maxBytes }));
  }

  /** The queues that have bytes left; equal keys share a count. */
  #candidates(due: readonly DueQueue[]): readonly Candidate[] {
    const counts = new Map<string, Count>();
    const countOf = (key: string) => {
      const count = counts.get(key) ?? { runs: this.#of(key).runs };
      counts.set(key, count);
      return count;
    };
    return due.flatMap((one) => {
      const [, workflow, trigger, queue] = keysOf(one);
      const maxBytes = this.#freeBytesOf(workflow, trigger);
      if (maxBytes <= 0) return [];
      return { due: one, held: [countOf(workflow), countOf(trigger), countOf(queue)], maxBytes, max: 0 };
    });
  }

  /** The bytes that executions of a trigger of a workflow may still hold. */
  #freeBytesOf(workflow: string, trigger: string): number {
    const { bytes: free } = this.free;
    const left = (key: string, times: number) => (times * free - this.#of(key).bytes) / (times + 1);
    return Math.floor(Math.min(left(workflow, WORKFLOW_TIMES_FREE), left(trigger, TRIGGER_TIMES_FREE)));
  }

  #of(key: string): Amounts {
    return this.#held.get(key) ?? NOTHING;
  }
}

/** True if an execution of this queue may begin while so many places are free. */
function mayBegin({ held: [workflow, trigger] }: Candidate, free: number): boolean {
  return (workflow.runs === 0 || workflow.runs < WORKFLOW_TIMES_FREE * (free - 1)) &&
    (trigger.runs === 0 || trigger.runs < TRIGGER_TIMES_FREE * (free - 1));
}

/** Sorts queues; voided ones come last, by the number of their void claims. */
function compare({ due: one, held: a }: Candidate, { due: other, held: b }: Candidate): number {
  return one.expiredClaims - other.expiredClaims || a[0].runs - b[0].runs || a[1].runs - b[1].runs ||
    a[2].runs - b[2].runs ||
    one.dueAt - other.dueAt;
}

/** The keys that an execution counts for: all, its workflow, its trigger there, its queue. */
function keysOf({ workflow, triggerId, stage }: ExecutionQueue): readonly [string, string, string, string] {
  const trigger = JSON.stringify([workflow, triggerId]);
  return [ALL, JSON.stringify([workflow]), trigger, `${trigger} ${stage}`];
}
