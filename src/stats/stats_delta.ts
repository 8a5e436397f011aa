import type { NamedMetric } from "../base/metrics.ts";
import { RULE_COUNTERS, type StatsStore } from "./store.ts";
import type { TimerDelta, TimerTake } from "./timer.ts";

/** The additions of one thread to the statistics of the process. */
export interface StatsDelta {
  /** All metrics but those of rules, in the order of `values`; absent if they are those of the previous delta. */
  readonly metrics: readonly NamedMetric[] | undefined;
  /** Current values since the start of the thread; 0 for timers. */
  readonly values: Float64Array;
  /** By full name. */
  readonly timers: readonly (readonly [fullName: string, delta: TimerDelta])[];
  /** Metric keys whose counters changed. */
  readonly keys: readonly string[];
  /** The additions to them, in the order of `RULE_COUNTERS`. */
  readonly counts: Float64Array;
}

/** Durations of one timer that are sent in a delta; of more, a sample is. */
const MOST_DURATIONS = 500;

/** The key of counters whose keys a thread has counted as overflowed itself. */
const OTHER = /(?:^|\.)other$/;

/** Takes the statistics of a thread, so that another one can add them to those of the process. */
export class StatsDeltas {
  readonly #store: StatsStore;
  readonly #readers = new Map<string, { take(): TimerTake }>();
  #metrics: readonly NamedMetric[] = [];

  constructor(store: StatsStore) {
    this.#store = store;
    for (const [name, timer] of store.timers()) this.#readers.set(name, timer.reader(MOST_DURATIONS));
  }

  /** The additions since the previous call. */
  take(): StatsDelta {
    const metrics = [...this.#store.declarations()];
    const isNew = metrics.length !== this.#metrics.length;
    this.#metrics = metrics;
    const values = Float64Array.from(metrics, (metric) => readerOf(this.#store, metric)());
    const keys: string[] = [];
    const counts: number[] = [];
    for (const [metricKey, added] of this.#store.takeRules()) {
      keys.push(metricKey);
      counts.push(...added);
    }
    return {
      metrics: isNew ? metrics : undefined,
      values,
      timers: metrics.flatMap((metric) => this.#timer(metric) ?? []),
      keys,
      counts: Float64Array.from(counts),
    };
  }

  #timer({ fullName, declaration }: NamedMetric): [StatsDelta["timers"][number]] | undefined {
    if (declaration.kind !== "timer") return undefined;
    const timer = this.#store.timer(fullName);
    const { count } = timer;
    let reader = this.#readers.get(fullName);
    if (reader === undefined) this.#readers.set(fullName, reader = timer.reader(MOST_DURATIONS));
    if (count === 0) return undefined;
    const taken = timer.take();
    const { values, seen } = reader.take();
    // Durations before the timer was known here were not sampled.
    const sample = seen === count ? values : [taken.sumMs / count];
    return [[fullName, { ...taken, values: sample, seen: count }]];
  }
}

interface ThreadValues {
  metrics: readonly NamedMetric[];
  readonly current: Map<string, number>;
}

/** Adds the statistics of other threads to those of the process. Counters continue when a thread is replaced. */
export class StatsMerger {
  readonly #store: StatsStore;
  readonly #domainOf: (metricKey: string) => string | undefined;
  readonly #threads = new Map<number, ThreadValues>();
  /** Counters of threads that were replaced. */
  readonly #former = new Map<string, number>();
  readonly #known = new Set<string>();

  /** `domainOf` returns the domain of a metric key, if there are rules for it. */
  constructor(store: StatsStore, domainOf: (metricKey: string) => string | undefined) {
    this.#store = store;
    this.#domainOf = domainOf;
  }

  /** Adds what the thread with this number has sent. */
  add(thread: number, { metrics, values, timers, keys, counts }: StatsDelta): void {
    let known = this.#threads.get(thread);
    if (known === undefined) this.#threads.set(thread, known = { metrics: [], current: new Map() });
    if (metrics !== undefined) {
      known.metrics = metrics;
      for (const metric of metrics) this.#addMetric(metric);
    }
    for (const [index, { fullName }] of known.metrics.entries()) {
      known.current.set(fullName, values[index] ?? 0);
    }
    for (const [fullName, delta] of timers) this.#store.timer(fullName).merge(delta);
    for (const [index, metricKey] of keys.entries()) {
      const counters = this.#store.known(metricKey) ??
        this.#store.rule(metricKey, this.#domainOf(metricKey), OTHER.test(metricKey) ? 0 : 1);
      for (const [position, name] of RULE_COUNTERS.entries()) {
        counters[name] += counts[index * RULE_COUNTERS.length + position] ?? 0;
      }
    }
  }

  /** The thread has ended: its gauges are gone, its counters stay. */
  end(thread: number): void {
    const { metrics, current } = this.#threads.get(thread) ?? { metrics: [], current: new Map() };
    this.#threads.delete(thread);
    for (const metric of metrics) {
      if (metric.declaration.kind !== "counter") continue;
      const values = [this.#former.get(metric.fullName) ?? 0, current.get(metric.fullName) ?? 0];
      this.#former.set(metric.fullName, combined(metric, values));
    }
  }

  #addMetric(metric: NamedMetric): void {
    const { fullName, declaration: { kind } } = metric;
    if (this.#known.has(fullName)) return;
    this.#known.add(fullName);
    this.#store.declare(metric);
    if (kind === "timer") return void this.#store.timer(fullName);
    const own = this.#store.reader(kind, fullName);
    const read = () => {
      const values = [...this.#threads.values()].map(({ current }) => current.get(fullName) ?? 0);
      return combined(metric, [own?.() ?? 0, this.#former.get(fullName) ?? 0, ...values]);
    };
    if (kind === "counter") this.#store.addCounter(fullName, read);
    else this.#store.addGauge(fullName, read);
  }
}

function combined({ declaration }: NamedMetric, values: readonly number[]): number {
  if (declaration.combined === "max") return Math.max(...values);
  return values.reduce((sum, value) => sum + value, 0);
}

function readerOf(store: StatsStore, { fullName, declaration: { kind } }: NamedMetric): () => number {
  return (kind === "timer" ? undefined : store.reader(kind, fullName)) ?? (() => 0);
}
