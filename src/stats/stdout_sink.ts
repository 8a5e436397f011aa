import { type ByteSink, LineWriter } from "../base/line_writer.ts";
import type { Clock } from "../base/clock.ts";
import type { Carrier, LineFormat, TimerSample } from "./flush_ports.ts";
import type { StatTags } from "./mogrifier.ts";

/** One JSON object a line: time, type, name, values, and the tags of every line. */
export function jsonLines(tags: StatTags, clock: Pick<Clock, "now">): LineFormat {
  const allTags = Object.fromEntries(tags);
  const line = (type: string, name: string, values: Readonly<Record<string, number>>) => {
    const timestamp = new Date(clock.now()).toISOString();
    return JSON.stringify({ timestamp, type, name, ...values, tags: allTags });
  };
  return {
    counter: (name, delta) => line("counter", name, { value: delta }),
    gauge: (name, value) => line("gauge", name, { value }),
    timer: (name, sample) => [line("timer", name, timerValues(sample))],
  };
}

/** The quantiles are those of the kept durations. */
function timerValues({ values, seen, sumMs }: TimerSample): Record<string, number> {
  const sorted = values.toSorted((first, second) => first - second);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
  return { count: seen, sum_ms: rounded(sumMs), p50_ms: rounded(at(0.5)), p99_ms: rounded(at(0.99)) };
}

/** To the microsecond. */
function rounded(ms: number): number {
  return Number(ms.toFixed(3));
}

/** Writes whole slices to standard output; while it blocks, the flush waits and counts stay in the store. */
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
