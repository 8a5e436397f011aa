/** Something of a list, by its position. */
interface Candidate {
  readonly index: number;
  readonly hits: number;
}

/** How many more than are wanted are gathered before they are sorted. */
const GATHERED = 1_000;

/**
 * The positions of those with most hits among `count`, those first, and of equal ones the first. One walk over
 * them that holds a bounded number, for there may be very many.
 */
export function busiest(count: number, hitsOf: (index: number) => number, limit: number): number[] {
  let gathered: Candidate[] = [];
  // Nothing with fewer hits, or as many, can be among the first any more.
  let bar = -1;
  for (let index = 0; index < count; index++) {
    const hits = hitsOf(index);
    if (hits <= bar) continue;
    gathered.push({ index, hits });
    if (gathered.length < limit + GATHERED) continue;
    gathered = first(gathered, limit);
    bar = gathered.at(-1)?.hits ?? bar;
  }
  return first(gathered, limit).map(({ index }) => index);
}

function first(candidates: Candidate[], limit: number): Candidate[] {
  return candidates.sort((a, b) => b.hits - a.hits || a.index - b.index).slice(0, limit);
}
