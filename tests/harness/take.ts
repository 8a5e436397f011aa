import type { Counted, Taken } from "../../src/ratelimit/algorithms/taken.ts";
import type {
  AnyHit,
  Caller,
  Counter,
  CounterCache,
  Hit,
} from "../../src/ratelimit/decision/counter_cache.ts";
import { handled } from "./handled.ts";
import { type Answers, countsOf, takeHits } from "../../src/ratelimit/decision/take_hits.ts";

/**
 * The counts after the hits of one call, which were taken when this returns; rejects with the error of those that failed.
 * A test that fails before it waits for them leaves no unhandled rejection.
 */
export function takeCounts(
  cache: CounterCache,
  hits: readonly AnyHit[],
  caller?: Caller,
): Promise<readonly Counted[]> {
  return handled(counted(cache, hits, caller));
}

async function counted(...call: Parameters<typeof takeHits>): Promise<readonly Counted[]> {
  return countsOf(await takeHits(...call));
}

/** The count after hits of one counter. */
export function take(counter: Counter, hits: number, caller?: Caller): Promise<Counted> {
  const { promise, resolve, reject } = Promise.withResolvers<Counted>();
  counter.take(hits, caller, { counted: resolve, failed: reject });
  return handled(promise);
}

/** The current counts. */
export function readCounts(
  cache: CounterCache,
  hits: readonly Hit[],
  caller?: Caller,
): Promise<readonly Counted[]> {
  return takeCounts(cache, hits.map((hit) => ({ ...hit, addend: 0 })), caller);
}

/** The outcomes of conditional hits. */
export async function taken(cache: CounterCache, hits: readonly AnyHit[], caller?: Caller): Promise<Taken[]> {
  return (await takeCounts(cache, hits, caller)).filter((count) => typeof count !== "number");
}

/** The count after each hit, or the message of its error. */
export async function outcomes(
  answers: Answers | Promise<Answers>,
): Promise<(Counted | string)[]> {
  return (await answers).map((answer) => {
    return typeof answer === "object" && "error" in answer ? errorMessage(answer.error) : answer;
  });
}

function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
