import type { Counted } from "../ratelimit/algorithms/taken.ts";
import { CacheError } from "../ratelimit/errors.ts";

/** Answers that are there, or come later. */
export type Answers<Answer> = Answer[] | Promise<Answer[]>;

/** What one target threw instead of counts. */
class Failure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** How hits are divided among targets. */
export interface HitParts<Target, Asked, Answer> {
  readonly targets: readonly Target[];
  /** Which target counts a hit. */
  readonly targetOf: (hit: Asked) => Target;
  readonly ask: (target: Target, hits: readonly Asked[]) => Answers<Answer>;
}

/** Asks each target for its part of the hits, all at the same time; throws one error for all that failed. */
export function askParts<Target, Asked, Answer extends Counted>(
  hits: readonly Asked[],
  { targets, targetOf, ask }: HitParts<Target, Asked, Answer>,
): Answers<Answer> {
  const [first] = hits;
  if (first === undefined) return [];
  const only = targetOf(first);
  if (hits.every((hit) => targetOf(hit) === only)) return ask(only, hits);
  const positions = new Map<Target, number[]>(targets.map((target) => [target, []]));
  for (const [position, hit] of hits.entries()) positions.get(targetOf(hit))?.push(position);
  const parts = [...positions].filter(([, part]) => part.length > 0);
  const answers = parts.map(([target, part]) => {
    return attempt(() => ask(target, part.flatMap((position) => hits[position] ?? [])));
  });
  const join = (settled: readonly (Answer[] | Failure)[]) => {
    const counts = new Array<Counted | undefined>(hits.length).fill(undefined);
    for (const [index, [, part]] of parts.entries()) {
      const came = countsOf(settled[index]);
      for (const [at, position] of part.entries()) counts[position] = came[at];
    }
    const errors = settled.flatMap((answer): unknown[] => answer instanceof Failure ? [answer.error] : []);
    if (errors.length > 0) throw oneError(errors, counts);
    return counts as Answer[];
  };
  return answers.every(isSettled) ? join(answers) : Promise.all(answers).then(join);
}

/** Waits for all tasks; throws one error for all that failed. */
export async function settleAll(tasks: readonly Promise<void>[]): Promise<void> {
  const ends = await Promise.allSettled(tasks);
  const errors = ends.flatMap((end): unknown[] => end.status === "rejected" ? [end.reason] : []);
  if (errors.length > 0) throw oneError(errors, []);
}

function attempt<Answer>(ask: () => Answers<Answer>): Answer[] | Failure | Promise<Answer[] | Failure> {
  try {
    const answers = ask();
    return answers instanceof Promise ? answers.catch((error: unknown) => new Failure(error)) : answers;
  } catch (error) {
    return new Failure(error);
  }
}

function isSettled<Answer>(answers: Answer | Promise<Answer>): answers is Answer {
  return !(answers instanceof Promise);
}

/** The counts that came, also those of an answer that failed in part. */
function countsOf(answer: readonly Counted[] | Failure | undefined): readonly (Counted | undefined)[] {
  if (!(answer instanceof Failure)) return answer ?? [];
  return answer.error instanceof CacheError ? answer.error.counts : [];
}

/** One error for several; an error that is no `CacheError` takes precedence. */
function oneError(errors: readonly unknown[], counts: readonly (Counted | undefined)[]): unknown {
  const failures = errors.filter((error) => error instanceof CacheError);
  const [first] = failures;
  if (first === undefined || failures.length < errors.length) {
    return errors.find((error) => !(error instanceof CacheError));
  }
  return new CacheError(first.backend, failures.map(({ message }) => message).join("; "), {
    counts: counts.some((count) => count !== undefined) ? counts : [],
    cause: failures.length === 1 ? first : failures,
  });
}
