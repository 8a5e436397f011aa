import type { Clock } from "./clock.ts";

interface StopRequestsOptions {
  readonly clock: Pick<Clock, "elapsed">;
  /** Called once, at the first request. */
  readonly onFirst: () => void;
  /** Called at every later request: the operator is impatient. */
  readonly onAgain: () => void;
}

/** One key press may arrive twice: from the terminal, and forwarded by the process that started this one. */
const ECHO_MS = 500;

/** Returns the handler of stop signals; a signal right after the first one counts as the same. */
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
