import { errorOf, Uncounted } from "../ratelimit/decision/take_hits.ts";

/** Waits for all tasks; throws one error for all that failed. */
export async function settleAll(tasks: readonly Promise<void>[]): Promise<void> {
  const ends = await Promise.allSettled(tasks);
  const failures = ends.flatMap((end) => end.status === "rejected" ? [new Uncounted(end.reason)] : []);
  if (failures.length > 0) throw errorOf(failures);
}
