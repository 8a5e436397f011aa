import type { Counted } from "../../src/ratelimit/algorithms/taken.ts";
import type {
  AnyHit,
  Caller,
  CounterCache,
  CountReceiver,
} from "../../src/ratelimit/decision/counter_cache.ts";

/** The counts after the hits of one call, in their order, or errors. */
export type CallAnswers = readonly (Counted | Error)[];

/** A cache that answers the hits of a call together. */
export abstract class CallCache implements CounterCache {
  readonly isConditional: boolean = true;
  readonly isImmediate: boolean = false;
  #caller: Caller | undefined;
  #hits: AnyHit[] = [];
  #receivers: CountReceiver[] = [];

  counterOf(hit: AnyHit): ReturnType<CounterCache["counterOf"]> {
    return {
      take: (hits, caller, receiver) => {
        if (this.#caller !== caller) this.#hits = [];
        if (this.#hits.length === 0) this.#receivers = [];
        this.#caller = caller;
        this.#hits.push({ ...hit, addend: hits });
        this.#receivers.push(receiver);
        if (this.#hits.length < (caller?.hitCount ?? 1)) return;
        const receivers = this.#receivers;
        const answers = this.answer(this.#hits.splice(0), caller);
        if (!(answers instanceof Promise)) return settle(receivers, answers);
        answers.then((later) => settle(receivers, later));
      },
    };
  }

  /** The counts after the hits, or why there is none. */
  abstract answer(hits: readonly AnyHit[], caller: Caller | undefined): CallAnswers | Promise<CallAnswers>;

  remove(_keys: readonly string[]): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function settle(receivers: readonly CountReceiver[], answers: CallAnswers): void {
  for (const [position, receiver] of receivers.entries()) {
    const answer = answers[position];
    if (answer instanceof Error) receiver.failed(answer);
    else receiver.counted(answer ?? 0);
  }
}
