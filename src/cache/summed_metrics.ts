import type { Metrics } from "../base/metrics.ts";

/** The metrics of several nodes added up, under the names that a node uses. */
export class SummedMetrics implements Metrics {
  readonly counters: Metrics["counters"];
  readonly gauges: Metrics["gauges"];
  /** What closed nodes had counted: a sum of counters does not go down. */
  readonly #closed = new Map<string, number>();

  /** `nodes` returns the metrics of the open nodes. */
  constructor(names: Record<keyof Metrics, readonly string[]>, nodes: () => readonly Metrics[]) {
    const sums = (kind: keyof Metrics) =>
      Object.fromEntries(names[kind].map((name) => {
        const sum = () => nodes().reduce((total, metrics) => total + (metrics[kind][name]?.() ?? 0), 0);
        return [name, () => sum() + (kind === "counters" ? this.#closed.get(name) ?? 0 : 0)];
      }));
    this.counters = sums("counters");
    this.gauges = sums("gauges");
  }

  keep({ counters }: Metrics): void {
    for (const [name, read] of Object.entries(counters)) {
      this.#closed.set(name, (this.#closed.get(name) ?? 0) + read());
    }
  }
}
