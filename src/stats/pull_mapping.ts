import { fillGroups } from "../base/pattern.ts";
import type { Labels, MetricKind } from "./pull_families.ts";

/** The metric of a statistic. */
export interface Mapped {
  readonly name: string;
  readonly labels: Labels;
  readonly help: string;
  /** Factor to the unit of the metric, from seconds for a timer. */
  readonly scale: number;
  /** Bounds of a histogram in the unit of the metric; those of the timers when absent. */
  readonly bounds?: readonly number[] | undefined;
}

/** Maps the name of a statistic; undefined for an unknown one. */
export type NameMapper = (name: string, kind: MetricKind) => Mapped | "drop" | undefined;

/** One valid mapping of a file. */
export interface MetricMapping {
  /** Matches anywhere in the name unless anchored. */
  readonly pattern: RegExp;
  /** The only kind it applies to. */
  readonly kind: MetricKind | undefined;
  /** Matching statistics are omitted. */
  readonly drop: boolean;
  /** With `$1` or `$name` for groups of the pattern, like the values of labels. */
  readonly name: string;
  readonly labels: Labels;
  readonly help: string | undefined;
  readonly scale: number;
  readonly bounds: readonly number[] | undefined;
}

const HELP = "Named by the mapping file.";

/** A mapper by the first mapping of a file that matches. */
export function mapperOf(mappings: readonly MetricMapping[]): NameMapper {
  return (name, kind) => {
    for (const mapping of mappings) {
      if (mapping.kind !== undefined && mapping.kind !== kind) continue;
      const groups = mapping.pattern.exec(name);
      if (groups === null) continue;
      if (mapping.drop) return "drop";
      const labels: Record<string, string> = {};
      for (const [label, text] of Object.entries(mapping.labels)) labels[label] = fillGroups(text, groups);
      const { help = HELP, scale, bounds } = mapping;
      return { name: metricName(fillGroups(mapping.name, groups)), labels, help, scale, bounds };
    }
    return undefined;
  };
}

/** The name with `_` for everything that a metric name cannot contain. */
export function metricName(name: string): string {
  const escaped = name.replaceAll(/[^a-zA-Z0-9_]/g, "_");
  return /^[0-9]/.test(escaped) ? `_${escaped}` : escaped;
}
