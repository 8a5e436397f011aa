import { addCounters, type RuleDelta, type StatsStore } from "./store.ts";
import type { TimerDelta } from "./timer.ts";

/** The additions of one thread to the statistics of the process. */
export interface StatsDelta {
  /** By full name: the additions to counters, and the current values of gauges. */
  readonly counters: ReadonlyMap<string, number>;
  readonly gauges: ReadonlyMap<string, number>;
  readonly timers: ReadonlyMap<string, TimerDelta>;
  readonly rules: readonly RuleDelta[];
}

/** Takes the statistics of a thread, so that another one can add them to those of the process. */
export class StatsDeltas {
  readonly #store: StatsStore;
  /** Counters at the previous call. */
  readonly #before = new Map<string, number>();

  constructor(store: StatsStore) {
    this.#store = store;
  }

  /** The additions since the previous call. */
  take(): StatsDelta {
    const counters = new Map<string, number>();
    const timers = new Map<string, TimerDelta>();
    for (const { fullName, declaration: { kind, combined } } of this.#store.declarations()) {
      if (kind === "timer") {
        const delta = this.#store.timer(fullName).take();
        if (delta !== undefined) timers.set(fullName, delta);
      }
      // The others are equal in all threads, such as the reloads of a file.
      if (kind !== "counter" || combined !== undefined) continue;
      const value = this.#store.reader(kind, fullName)?.() ?? 0;
      counters.set(fullName, value - (this.#before.get(fullName) ?? 0));
      this.#before.set(fullName, value);
    }
    return { counters, gauges: this.#store.gauges(), timers, rules: [...this.#store.takeRules()] };
  }
}

/** Adds the statistics of other threads, which have the same metrics, to those of this one. */
export class StatsMerger {
  readonly #store: StatsStore;
  /** The additions of the threads to each counter. */
  readonly #counters = new Map<string, number>();
  /** The gauges of each thread. */
  readonly #gauges = new Map<string, ReadonlyMap<string, number>>();
  /** The gauges that are read from all threads. */
  readonly #merged = new Set<string>();

  constructor(store: StatsStore) {
    this.#store = store;
  }

  /** Adds what a thread has sent. */
  add(thread: string, { counters, gauges, timers, rules }: StatsDelta): void {
    for (const [name, added] of counters) {
      const before = this.#counters.get(name);
      if (before === undefined) {
        const own = this.#store.reader("counter", name);
        this.#store.addCounter(name, () => (own?.() ?? 0) + (this.#counters.get(name) ?? 0));
      }
      this.#counters.set(name, (before ?? 0) + added);
    }
    this.#gauges.set(thread, gauges);
    for (const name of gauges.keys()) this.#mergeGauge(name);
    for (const [name, delta] of timers) this.#store.timer(name).merge(delta);
    for (const { metricKey, domain, isOther, counts } of rules) {
      // The thread has counted the overflow of `other`.
      const sums = this.#store.rule(metricKey, domain, isOther ? 0 : 1);
      addCounters(sums, counts);
    }
  }

  /** The thread has ended: its gauges are gone. */
  end(thread: string): void {
    this.#gauges.delete(thread);
  }

  #mergeGauge(name: string): void {
    if (this.#merged.has(name)) return;
    this.#merged.add(name);
    const own = this.#store.reader("gauge", name);
    const isHighest = this.#store.declared(name)?.declaration.combined === "max";
    this.#store.addGauge(name, () => {
      const values = [...this.#gauges.values()].map((gauges) => gauges.get(name) ?? 0);
      values.push(own?.() ?? 0);
      return isHighest ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0);
    });
  }
}
