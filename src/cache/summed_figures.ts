import type { Figures } from "../base/figures.ts";

/** The figures of several nodes added up, under the names that a node uses. */
export class SummedFigures implements Figures {
  readonly counters: Figures["counters"];
  readonly gauges: Figures["gauges"];
  /** What closed nodes had counted: a sum of counters does not go down. */
  readonly #closed = new Map<string, number>();

  /** `nodes` returns the figures of the open nodes. */
  constructor(names: Record<keyof Figures, readonly string[]>, nodes: () => readonly Figures[]) {
    const sums = (kind: keyof Figures) =>
      Object.fromEntries(names[kind].map((name) => {
        const sum = () => nodes().reduce((total, figures) => total + (figures[kind][name]?.() ?? 0), 0);
        return [name, () => sum() + (kind === "counters" ? this.#closed.get(name) ?? 0 : 0)];
      }));
    this.counters = sums("counters");
    this.gauges = sums("gauges");
  }

  keep({ counters }: Figures): void {
    for (const [name, read] of Object.entries(counters)) {
      this.#closed.set(name, (this.#closed.get(name) ?? 0) + read());
    }
  }
}
