import { type ByteSink, LineWriter } from "../base/line_writer.ts";
import type { Clock } from "../base/clock.ts";
import type { Carrier, LineFormat, TimerSample } from "./flush_ports.ts";

/** How statistics are printed. */
export interface JsonLinesOptions {
  /** Tags of every line. */
  readonly tags: ReadonlyMap<string, string>;
  /** The time, in milliseconds since the epoch. */
  readonly now: () => number;
}

/** One JSON object a line: the time, the type, the name, what there is to say of it, and the tags. */
export function jsonLines({ tags, now }: JsonLinesOptions): LineFormat {
  const allTags = Object.fromEntries(tags);
  const line = (type: string, name: string, facts: Readonly<Record<string, number>>) => {
    return JSON.stringify({ timestamp: new Date(now()).toISOString(), type, name, ...facts, tags: allTags });
  };
  return {
    counter: (name, delta) => line("counter", name, { value: delta }),
    gauge: (name, value) => line("gauge", name, { value }),
    timer: (name, sample) => [line("timer", name, timerFacts(sample))],
  };
}

/** The quantiles are those of the durations that were kept. */
function timerFacts({ values, seen, sumMs }: TimerSample): Record<string, number> {
  const sorted = values.toSorted((first, second) => first - second);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
  return { count: seen, sum_ms: rounded(sumMs), p50_ms: rounded(at(0.5)), p99_ms: rounded(at(0.99)) };
}

/** To the microsecond. */
function rounded(ms: number): number {
  return Number(ms.toFixed(3));
}

/** Hands whole slices to standard output; while it takes none, the flush waits and the counts stay in the store. */
export function stdoutCarrier(sink: ByteSink, clock: Clock): Carrier {
  const lines = new LineWriter({ sink, clock });
  let isOpen = true;
  let endWait = () => {};
  return {
    get usable() {
      return isOpen;
    },
    prepare: () => Promise.resolve(),
    send(units) {
      lines.write(units.join("\n"));
      const { promise, resolve } = Promise.withResolvers<void>();
      endWait = resolve;
      void lines.drained().then(resolve);
      return promise;
    },
    close() {
      isOpen = false;
      endWait();
      return Promise.resolve();
    },
  };
}
