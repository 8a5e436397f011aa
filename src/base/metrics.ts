/** Kinds of metrics. A timer counts durations in milliseconds. */
export type MetricKind = "counter" | "gauge" | "timer";

interface MetricOptions<Value extends string> {
  /** Its pull metric; absent where that has the same name, with `_` for dots. */
  readonly pull?: string | undefined;
  /** The metric is one for each of these, `<name>.<value>`. */
  readonly values?: readonly Value[] | undefined;
  /** The label of the value in pull metrics. */
  readonly label?: string | undefined;
  /** The combination of the values of several threads; the sum when absent. */
  readonly combined?: "max" | undefined;
}

/** A metric: its row in docs/observability.md and its name and help in pull metrics. */
interface MetricDeclaration<Kind extends MetricKind = MetricKind, Value extends string = string>
  extends MetricOptions<Value> {
  readonly kind: Kind;
  /** The thing that its number counts or measures. */
  readonly unit: string;
  /** One sentence. */
  readonly meaning: string;
}

/** Metrics of one part by the last part of their names. */
export type MetricTable = Readonly<Record<string, MetricDeclaration>>;

/** Metrics with the start of their full names. */
export interface MetricGroup<T extends MetricTable = MetricTable> {
  /** Ends with a separator. */
  readonly prefix: string;
  readonly metrics: T;
  /** Labels of the pull metrics, for parts of the prefix. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** The names of the metrics of a kind, values included. */
export type MetricName<T, Kind extends MetricKind = MetricKind> = {
  [Name in keyof T & string]: T[Name] extends MetricDeclaration<infer K, infer Value>
    ? [K] extends [Kind] ? [Value] extends [never] ? Name : `${Name}.${Value}` : never
    : never;
}[keyof T & string];

/** The counters and gauges of a table; each function reads the current value. */
export interface Metrics<T extends MetricTable> {
  /** Values that only grow. */
  readonly counters: Readonly<Record<MetricName<T, "counter">, () => number>>;
  readonly gauges: Readonly<Record<MetricName<T, "gauge">, () => number>>;
}

/** Declares a number that only grows. */
export function counter<const Value extends string = never>(
  unit: string,
  meaning: string,
  options: MetricOptions<Value> = {},
): MetricDeclaration<"counter", NoInfer<Value>> {
  return { kind: "counter", unit, meaning, ...options };
}

/** Declares a number that goes up and down. */
export function gauge<const Value extends string = never>(
  unit: string,
  meaning: string,
  options: MetricOptions<Value> = {},
): MetricDeclaration<"gauge", NoInfer<Value>> {
  return { kind: "gauge", unit, meaning, ...options };
}

/** Declares durations; the pull metric is in seconds. */
export function timer(meaning: string, pull: string): MetricDeclaration<"timer", never> {
  return { kind: "timer", unit: "milliseconds", meaning, pull };
}

/** One metric of a group. */
export interface NamedMetric<Name extends string = string> {
  /** The last part of its name, value included. */
  readonly name: Name;
  readonly fullName: string;
  /** Its pull metric, before characters are replaced, with its labels. */
  readonly pullName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly declaration: MetricDeclaration;
}

/** All metrics of a kind in a group, one for each value. */
export function namedMetrics<T extends MetricTable, Kind extends MetricKind>(
  { prefix, metrics, labels = {} }: MetricGroup<T>,
  kind: Kind,
): readonly NamedMetric<MetricName<T, Kind>>[] {
  return Object.entries(metrics).filter(([, metric]) => metric.kind === kind).flatMap(
    ([own, declaration]) => {
      const { values, label, pull } = declaration;
      const named = (name: string, value?: string) => ({
        name: name as MetricName<T, Kind>,
        fullName: prefix + name,
        pullName: pull ?? prefix + (label === undefined ? name : own),
        labels: label === undefined || value === undefined ? labels : { ...labels, [label]: value },
        declaration,
      });
      return values?.map((value) => named(`${own}.${value}`, value)) ?? [named(own)];
    },
  );
}

/** The names of all metrics of a kind, values included. */
export function metricNames<T extends MetricTable, Kind extends MetricKind>(
  metrics: T,
  kind: Kind,
): readonly MetricName<T, Kind>[] {
  return namedMetrics({ prefix: "", metrics }, kind).map(({ name }) => name);
}

/** A function for each metric of a kind that reads its value by its name. */
export function metricReaders<T extends MetricTable, Kind extends MetricKind>(
  metrics: T,
  kind: Kind,
  read: (name: MetricName<T, Kind>) => number,
): Readonly<Record<MetricName<T, Kind>, () => number>> {
  const readers = metricNames(metrics, kind).map((name) => [name, () => read(name)] as const);
  return Object.fromEntries(readers) as Record<MetricName<T, Kind>, () => number>;
}
