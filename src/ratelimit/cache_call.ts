import type { Counted } from "./algorithms/taken.ts";
import type { Caller, ConditionalHit, CounterCache, Hit } from "./counter_cache.ts";
import { CacheError } from "./errors.ts";
import { type AnyHit, isConditional } from "./plan.ts";

/** Whether hits are added, or counts only read. */
export type Step = "add" | "read";

type Answers = Counted[] | Promise<Counted[]>;

/** Asks a cache about hits of both kinds, each kind in one call, and returns the answers in the order of the hits. */
export function ask(cache: CounterCache, step: Step, hits: readonly AnyHit[], caller?: Caller): Answers {
  if (areFixed(hits)) return cache[step](hits, caller);
  const fixed: Hit[] = [];
  const conditional: ConditionalHit[] = [];
  for (const hit of hits) {
    if (!isConditional(hit)) fixed.push(hit);
    else conditional.push(step === "read" && hit.addend !== 0 ? { ...hit, addend: 0 } : hit);
  }
  if (fixed.length === 0) return take(cache, conditional, caller);
  const parts = [
    attempt(() => cache[step](fixed, caller)),
    attempt(() => take(cache, conditional, caller)),
  ] as const;
  const [counts, taken] = parts;
  if (counts instanceof Promise || taken instanceof Promise) {
    return Promise.all(parts).then(([counted, took]) => join(hits, counted, took));
  }
  return join(hits, counts, taken);
}

function areFixed(hits: readonly AnyHit[]): hits is readonly Hit[] {
  for (const hit of hits) if (isConditional(hit)) return false;
  return true;
}

function take(cache: CounterCache, hits: readonly ConditionalHit[], caller: Caller | undefined): Answers {
  if (cache.take === undefined) throw new CacheError("memory", "the cache counts fixed windows only");
  return cache.take(hits, caller);
}

type Attempt = readonly Counted[] | { readonly error: unknown };

function attempt(call: () => Answers): Attempt | Promise<Attempt> {
  try {
    const answers = call();
    return answers instanceof Promise ? answers.catch((error: unknown) => ({ error })) : answers;
  } catch (error) {
    return { error };
  }
}

/** The answers in order, or one error with those that came; an error that is no `CacheError` takes precedence. */
function join(hits: readonly AnyHit[], counts: Attempt, taken: Attempt): Counted[] {
  const errors = [counts, taken].flatMap((part) => "error" in part ? [part.error] : []);
  const foreign = errors.find((error) => !(error instanceof CacheError));
  if (foreign !== undefined) throw foreign;
  const answers = { fixed: answersOf(counts).values(), conditional: answersOf(taken).values() };
  const joined = hits.map((hit) => answers[isConditional(hit) ? "conditional" : "fixed"].next().value);
  const failures = errors.filter((error) => error instanceof CacheError);
  const [first] = failures;
  if (first === undefined) return joined.map((count) => count ?? 0);
  const message = [...new Set(failures.map((failure) => failure.message))].join("; ");
  throw new CacheError(first.backend, message, {
    counts: joined.some((count) => count !== undefined) ? joined : [],
    cause: first,
    isOverload: failures.every((failure) => failure.isOverload),
  });
}

function answersOf(part: Attempt): readonly (Counted | undefined)[] {
  if (!("error" in part)) return part;
  return part.error instanceof CacheError ? part.error.counts : [];
}
