/** What is to be started at a constant rate. */
export interface Pace {
  readonly perSecond: number;
  readonly seconds: number;
  /** Starts one; `due` is when it should have started, in milliseconds of `performance.now`. */
  readonly start: (due: number) => void;
}

/**
 * Starts something evenly, each at its own time. It looks at the clock at every turn of the event loop,
 * because timers are too coarse for this, so it takes a core. Who measures from `due` sees lateness as well.
 */
export function pace({ perSecond, seconds, start }: Pace): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const begin = performance.now();
  const total = Math.round(perSecond * seconds);
  let started = 0;
  const turn = () => {
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
