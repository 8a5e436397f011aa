import type { Labels, MetricKind } from "./pull_families.ts";

/** What the name of a statistic becomes. */
export interface Mapped {
  readonly name: string;
  readonly labels: Labels;
  readonly help: string;
  /** What one is in the unit of the metric: of a timer a second, of anything else one. */
  readonly scale: number;
  /** Bounds of a histogram in the unit of the metric; those of the timers when absent. */
  readonly bounds?: readonly number[] | undefined;
}

/** Maps the name of a statistic; absent where nothing is known of it. */
export type NameMapper = (name: string, kind: MetricKind) => Mapped | "drop" | undefined;

/** One mapping of a file, already checked. */
export interface MetricMapping {
  /** Found anywhere in the name, unless it says otherwise itself. */
  readonly pattern: RegExp;
  /** The only kind it is for. */
  readonly kind: MetricKind | undefined;
  /** What it matches is not shown at all. */
  readonly drop: boolean;
  /** With `$1` or `${1}` for the groups of the pattern, as the values of the labels. */
  readonly name: string;
  readonly labels: Labels;
  readonly help: string | undefined;
  readonly scale: number;
  readonly bounds: readonly number[] | undefined;
}

const HELP = "Named by the mapping file.";

/** A mapper for the mappings of a file: the first that matches decides. */
export function mapperOf(mappings: readonly MetricMapping[]): NameMapper {
  return (name, kind) => {
    for (const mapping of mappings) {
      if (mapping.kind !== undefined && mapping.kind !== kind) continue;
      const groups = mapping.pattern.exec(name);
      if (groups === null) continue;
      if (mapping.drop) return "drop";
      const labels: Record<string, string> = {};
      for (const [label, text] of Object.entries(mapping.labels)) labels[label] = filled(text, groups);
      const { help = HELP, scale, bounds } = mapping;
      return { name: metricName(filled(mapping.name, groups)), labels, help, scale, bounds };
    }
    return undefined;
  };
}

/** The name as a metric may be called: everything but letters, digits and `_` becomes `_`. */
export function metricName(name: string): string {
  const escaped = name.replaceAll(/[^a-zA-Z0-9_]/g, "_");
  return /^[0-9]/.test(escaped) ? `_${escaped}` : escaped;
}

function filled(template: string, groups: readonly (string | undefined)[]): string {
  return template.replaceAll(/\$(?:\{(\d+)\}|(\d+))/g, (_, braced?: string, bare?: string) => {
    return groups[Number(braced ?? bare)] ?? "";
  });
}
