import type { Clock } from "./clock.ts";

/** What follows when a process is told to stop. */
export interface StopRequestsOptions {
  readonly clock: Pick<Clock, "elapsed">;
  /** It is to stop; called once. */
  readonly onFirst: () => void;
  /** Whoever waits for that has lost patience. */
  readonly onAgain: () => void;
}

/**
 * A key that is pressed once may arrive twice: the terminal signals every process in front of it, and one that
 * runs another hands the signal on.
 */
const ECHO_MS = 500;

/** What is to be called with every signal to stop; one that comes with the first is taken as the same. */
export function stopRequests({ clock, onFirst, onAgain }: StopRequestsOptions): () => void {
  let firstAt: number | undefined;
  return () => {
    const at = clock.elapsed();
    if (firstAt === undefined) {
      firstAt = at;
      onFirst();
    } else if (at - firstAt >= ECHO_MS) {
      onAgain();
    }
  };
}
