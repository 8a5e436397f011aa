/** Metrics of one part, by the last part of their names such as `cx_active`; each function reads the current value. */
export interface Metrics {
  /** Values that only grow. */
  readonly counters: Readonly<Record<string, () => number>>;
  readonly gauges: Readonly<Record<string, () => number>>;
}
