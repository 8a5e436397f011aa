import type { Figures } from "../../../base/figures.ts";

/** What the cluster counts of itself; the numbers only grow. */
export interface KvClusterTally {
  moved: number;
  asked: number;
  refreshes: number;
}

/** The figures of all nodes added up, under the names that a node uses, and those of the cluster itself. */
export class KvClusterFigures implements Figures {
  readonly counters: Readonly<Record<string, () => number>>;
  readonly gauges: Readonly<Record<string, () => number>>;
  /** What nodes had counted when they were closed: a sum of counters does not go down. */
  readonly #closed = new Map<string, number>();

  /** The names are those of `model`; `nodes` answers the nodes that are open. */
  constructor(model: Figures, nodes: () => readonly Figures[], tally: KvClusterTally) {
    const counters: Record<string, () => number> = {};
    for (const name of Object.keys(model.counters)) {
      counters[name] = () => sum(nodes(), ({ counters }) => counters[name]) + (this.#closed.get(name) ?? 0);
    }
    const gauges: Record<string, () => number> = {};
    for (const name of Object.keys(model.gauges)) {
      gauges[name] = () => sum(nodes(), ({ gauges }) => gauges[name]);
    }
    this.counters = {
      ...counters,
      cluster_moved: () => tally.moved,
      cluster_ask: () => tally.asked,
      cluster_refreshes: () => tally.refreshes,
    };
    this.gauges = { ...gauges, cluster_nodes: () => nodes().length };
  }

  /** Keeps what a node has counted that is closed now. */
  keep({ counters }: Figures): void {
    for (const [name, read] of Object.entries(counters)) {
      this.#closed.set(name, (this.#closed.get(name) ?? 0) + read());
    }
  }
}

function sum(
  nodes: readonly Figures[],
  read: (figures: Figures) => (() => number) | undefined,
): number {
  return nodes.reduce((total, figures) => total + (read(figures)?.() ?? 0), 0);
}
