import { metricNames, metricReaders, type Metrics, type MetricTable } from "../base/metrics.ts";

/** The metrics of several nodes added up, under the names that a node uses. */
export class SummedMetrics<T extends MetricTable> implements Metrics<T> {
  readonly counters: Metrics<T>["counters"];
  readonly gauges: Metrics<T>["gauges"];
  readonly #table: T;
  /** Counts of closed nodes: a sum of counters does not go down. */
  readonly #closed = new Map<string, number>();

  /** `nodes` returns the metrics of the open nodes. */
  constructor(table: T, nodes: () => readonly Metrics<T>[]) {
    this.#table = table;
    this.counters = metricReaders(table, "counter", (name) => {
      return nodes().reduce((sum, { counters }) => sum + counters[name](), this.#closed.get(name) ?? 0);
    });
    this.gauges = metricReaders(table, "gauge", (name) => {
      return nodes().reduce((sum, { gauges }) => sum + gauges[name](), 0);
    });
  }

  keep({ counters }: Metrics<T>): void {
    for (const name of metricNames(this.#table, "counter")) {
      this.#closed.set(name, (this.#closed.get(name) ?? 0) + counters[name]());
    }
  }
}
