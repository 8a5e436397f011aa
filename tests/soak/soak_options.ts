/** The amount of repetitions: `short` fits into CI, `full` is what `deno task soak` runs. */
type SoakSize = "short" | "full";

/** The size of this run, from `SOAK_SIZE`; `short` when unset, so that one file can be run by hand. */
export const SOAK_SIZE: SoakSize = Deno.env.get("SOAK_SIZE") === "full" ? "full" : "short";

/** The seed of this run, from `SOAK_SEED`; 1 when unset. The same seed repeats the same faults. */
export const SOAK_SEED = seedOf(Deno.env.get("SOAK_SEED") ?? "1");

/** Chooses between the values of a short and of a full run. */
export function bySize<T>(sizes: Readonly<Record<SoakSize, T>>): T {
  return sizes[SOAK_SIZE];
}

/** Name and switch of a test, which only a full run has the time for. */
export function onlyFull(
  { name, ignore = false }: { readonly name: string; readonly ignore?: boolean },
): { name: string; ignore: boolean } {
  return { name, ignore: ignore || SOAK_SIZE === "short" };
}

function seedOf(text: string): number {
  const seed = Number(text);
  if (Number.isSafeInteger(seed) && seed > 0) return seed;
  throw new RangeError(`Invalid SOAK_SEED "${text}": expected a positive integer`);
}
