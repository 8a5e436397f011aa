import type { Counted } from "../algorithms/taken.ts";
import type { AnyHit, Caller, Counter, CounterCache, CountReceiver } from "./counter_cache.ts";
import { CacheError } from "../errors.ts";

/** In place of a count: the cache did not count a hit. */
export class Uncounted {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** The count after each hit, or why there is none. */
export type Answers = readonly (Counted | Uncounted)[];

/** Takes the addends of hits in order; returns the answers in the same order. */
export function takeHits(
  cache: CounterCache,
  hits: readonly AnyHit[],
  caller?: Caller,
): Answers | Promise<Answers> {
  // First of all: a key that the cache cannot store fails the call before anything is counted.
  const counters = countersOf(cache, hits);
  const taking = new Taking(hits.length, counters.length, caller);
  let at = 0;
  for (const counter of counters) {
    taking.take(counter, hits[at]?.addend ?? 0, at);
    at += counter.size;
  }
  return taking.answers();
}

/** A counter of one hit, or of those of several windows that are taken together. */
export interface HitsCounter {
  readonly counter: Counter;
  /** The number of hits. */
  readonly size: number;
}

/** The counters of hits, in their order. */
export function countersOf(cache: CounterCache, hits: readonly AnyHit[]): HitsCounter[] {
  const counters: HitsCounter[] = [];
  for (let at = 0; at < hits.length; at += counters.at(-1)?.size ?? 1) {
    const hit = hits[at];
    if (hit === undefined) throw new TypeError("No hit is there");
    const { joint, key, perSecond } = hit;
    const size = joint?.limits.length ?? 1;
    const taken = joint === undefined ? hit : { key, joint, windows: hits.slice(at, at + size), perSecond };
    counters.push({ counter: cache.counterOf(taken), size });
  }
  return counters;
}

/** The counts of hits that were all counted; throws the error of those that were not. */
export function countsOf(answers: Answers): readonly Counted[] {
  if (areCounted(answers)) return answers;
  throw errorOf(answers);
}

/** True if every hit was counted. */
export function areCounted(answers: Answers): answers is readonly Counted[] {
  for (const answer of answers) if (answer instanceof Uncounted) return false;
  return true;
}

/** One error for all hits that were not counted; one that is no `CacheError` takes precedence. */
export function errorOf(answers: Answers): unknown {
  const errors = new Set(answers.flatMap((answer) => answer instanceof Uncounted ? [answer.error] : []));
  const failures: CacheError[] = [];
  for (const error of errors) {
    if (!(error instanceof CacheError)) return error;
    failures.push(error);
  }
  const [first] = failures;
  if (first === undefined || failures.length === 1) return first;
  const message = [...new Set(failures.map((failure) => failure.message))].join("; ");
  const isOverload = failures.every((failure) => failure.isOverload);
  return new CacheError(first.backend, message, { cause: first, isOverload });
}

/** One step of a call, which is the caller of its hits. */
export class Taking implements Caller {
  readonly hitCount: number;
  readonly call: Caller | undefined;
  readonly #answers: (Counted | Uncounted)[];
  #waiting: number;
  #onEnd: ((answers: Answers) => void) | undefined;

  constructor(hits: number, hitCount: number, call: Caller | undefined) {
    this.hitCount = hitCount;
    this.call = call;
    this.#answers = new Array(hits);
    this.#waiting = hits;
  }

  get cancelled(): boolean {
    return this.call?.cancelled === true;
  }

  get since(): number | undefined {
    return this.call?.since;
  }

  /** Takes hits of a counter, the first of which has this position. */
  take({ counter, size }: HitsCounter, hits: number, position: number): void {
    const receiver = size === 1 ? new HitReceiver(this, position) : new JointReceiver(this, position, size);
    counter.take(hits, this, receiver);
  }

  settle(position: number, answer: Counted | Uncounted): void {
    this.#answers[position] = answer;
    if (--this.#waiting === 0) this.#onEnd?.(this.#answers);
  }

  answers(): Answers | Promise<Answers> {
    if (this.#waiting === 0) return this.#answers;
    return new Promise((resolve) => this.#onEnd = resolve);
  }

  /** Calls `onEnd` once all hits have an answer. */
  whenAnswered(onEnd: (answers: Answers) => void): void {
    if (this.#waiting === 0) onEnd(this.#answers);
    else this.#onEnd = onEnd;
  }
}

class HitReceiver implements CountReceiver {
  readonly #taking: Taking;
  readonly #position: number;

  constructor(taking: Taking, position: number) {
    this.#taking = taking;
    this.#position = position;
  }

  counted(count: Counted): void {
    this.#taking.settle(this.#position, count);
  }

  failed(error: unknown): void {
    this.#taking.settle(this.#position, new Uncounted(error));
  }
}

/** Receives the outcome of a list, for each of its hits. */
class JointReceiver implements CountReceiver {
  readonly #taking: Taking;
  readonly #first: number;
  readonly #size: number;

  constructor(taking: Taking, first: number, size: number) {
    this.#taking = taking;
    this.#first = first;
    this.#size = size;
  }

  counted(count: Counted): void {
    const windows = typeof count === "number" ? undefined : count.windows;
    for (let index = 0; index < this.#size; index++) {
      this.#taking.settle(this.#first + index, windows?.[index] ?? count);
    }
  }

  failed(error: unknown): void {
    for (let index = 0; index < this.#size; index++) {
      this.#taking.settle(this.#first + index, new Uncounted(error));
    }
  }
}

/** A caller with one timeout for both steps, read and add. */
export function callerSince(now: number, caller: Caller | undefined): Caller {
  return {
    get cancelled() {
      return caller?.cancelled === true;
    },
    since: now,
  };
}
