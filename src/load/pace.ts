import { setImmediate } from "node:timers";

/** Starts at a constant rate. */
interface Pace {
  readonly perSecond: number;
  /** The end, in milliseconds of `performance.now`. */
  readonly stopAt: number;
  /** Ends it earlier. */
  readonly stop?: AbortSignal;
  /** Starts one; `due` is its time, in milliseconds of `performance.now`. */
  readonly start: (due: number) => void;
}

/**
 * Starts calls at even intervals. It reads the clock in every turn of the event loop, because timers are too coarse,
 * so it keeps one core busy. Durations since `due` include the delay of late starts.
 */
export function pace({ perSecond, stopAt, stop, start }: Pace): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const begin = performance.now();
  const total = Math.round(perSecond * (stopAt - begin) / 1_000);
  let started = 0;
  const turn = () => {
    if (stop?.aborted === true) return resolve();
    const now = performance.now();
    while (started < total) {
      const due = begin + started * 1_000 / perSecond;
      if (due > now) break;
      started++;
      start(due);
    }
    if (started < total) setImmediate(turn);
    else resolve();
  };
  turn();
  return promise;
}
