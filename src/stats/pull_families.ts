import { BUCKET_BOUNDS_MS, type Exemplar, type Timer } from "./timer.ts";

/** Kinds of metrics. */
export type MetricKind = "counter" | "gauge" | "histogram";

/** Labels of a sample by name. */
export type Labels = Readonly<Record<string, string>>;

/** One number of a metric. */
export interface Sample {
  readonly labels: Labels;
  value: number;
}

/** The distribution of one set of labels. */
export interface HistogramSample {
  readonly labels: Labels;
  /** Upper bounds of the buckets but the last, in the unit of the metric. */
  readonly bounds: readonly number[];
  /** Durations in each bucket; one more than bounds. */
  readonly counts: number[];
  /** The newest traced duration of each bucket. */
  readonly exemplars: (SampleExemplar | undefined)[];
  sum: number;
}

/** An exemplar with its value in the unit of the metric. */
export interface SampleExemplar {
  readonly span: Exemplar["span"];
  readonly endedAt: number;
  readonly value: number;
}

/** A metric without its samples. */
export interface FamilyName {
  readonly name: string;
  readonly kind: MetricKind;
  readonly help: string;
}

/** The unit and the buckets of a histogram. */
interface HistogramOptions {
  /** A millisecond in the unit of the metric. */
  readonly factor: number;
  /** Bounds in the unit of the metric; all of them when absent. */
  readonly bounds?: readonly number[] | undefined;
}

/** The samples of a scrape by metric, each in the order of its first sample. */
export class Families {
  readonly histograms = new Map<string, Family<HistogramSample>>();
  readonly numbers = new Map<string, Family<Sample>>();
  /** Names that histograms use in addition to their own. */
  readonly #taken = new Set<string>();
  readonly #onConflict: (name: string) => void;
  // A rule adds several samples with the same labels in a row.
  #lastLabels: Labels = {};
  #lastKey = "";

  /** `onConflict` is called with metrics that lose samples because the name has another kind. */
  constructor(onConflict: (name: string) => void) {
    this.#onConflict = onConflict;
  }

  /** Adds to the sample with these labels. */
  add(family: FamilyName, labels: Labels, value: number): void {
    const open = this.#open(family);
    if (open === undefined) return;
    const key = this.#keyOf(labels);
    const known = open.get(key);
    if (known === undefined) open.put(key, { labels, value });
    else known.value += value;
  }

  /** Adds a sample unless there is one with these labels. */
  addOnce(family: FamilyName, labels: Labels, value: number): void {
    const open = this.#open(family);
    const key = this.#keyOf(labels);
    if (open !== undefined && open.get(key) === undefined) open.put(key, { labels, value });
  }

  /** Adds the durations of a timer; those of one set of labels have the same bounds. */
  addTimer(family: FamilyName, labels: Labels, timer: Timer, options: HistogramOptions): void {
    const { name } = family;
    if (this.numbers.has(name)) return this.#onConflict(name);
    let open = this.histograms.get(name);
    if (open === undefined) {
      this.histograms.set(name, open = new Family(family));
      for (const suffix of ["_bucket", "_sum", "_count"]) this.#taken.add(name + suffix);
    }
    const added = histogramOf(labels, timer, options);
    const key = keyOf(labels);
    const known = open.get(key);
    if (known === undefined) return open.put(key, added);
    if (String(known.bounds) !== String(added.bounds)) return this.#onConflict(name);
    known.sum += added.sum;
    for (const [bucket, count] of added.counts.entries()) {
      known.counts[bucket] = (known.counts[bucket] ?? 0) + count;
      known.exemplars[bucket] = newest(known.exemplars[bucket], added.exemplars[bucket]);
    }
  }

  #open(requested: FamilyName): Family<Sample> | undefined {
    const { name, kind } = requested;
    let family = this.numbers.get(name);
    if (family === undefined && !this.histograms.has(name) && !this.#taken.has(name)) {
      this.numbers.set(name, family = new Family(requested));
    }
    if (family?.kind === kind) return family;
    this.#onConflict(name);
    return undefined;
  }

  #keyOf(labels: Labels): string {
    if (labels === this.#lastLabels) return this.#lastKey;
    this.#lastLabels = labels;
    return this.#lastKey = keyOf(labels);
  }
}

/** A metric with its samples by labels. Small for a single sample, because every unmapped name is a metric. */
class Family<T> implements FamilyName {
  readonly name: string;
  readonly kind: MetricKind;
  readonly help: string;
  #firstKey = "";
  #first: T | undefined;
  /** By labels; absent below two samples. */
  #all: Map<string, T> | undefined;

  constructor({ name, kind, help }: FamilyName) {
    this.name = name;
    this.kind = kind;
    this.help = help;
  }

  get(key: string): T | undefined {
    return this.#all === undefined && key === this.#firstKey ? this.#first : this.#all?.get(key);
  }

  put(key: string, sample: T): void {
    if (this.#all !== undefined) return void this.#all.set(key, sample);
    if (this.#first !== undefined) {
      this.#all = new Map([[this.#firstKey, this.#first], [key, sample]]);
      return;
    }
    this.#firstKey = key;
    this.#first = sample;
  }

  /** All samples in the order in which they were added. */
  samples(): readonly T[] {
    if (this.#all !== undefined) return [...this.#all.values()];
    return this.#first === undefined ? [] : [this.#first];
  }
}

function histogramOf(labels: Labels, timer: Timer, { factor, bounds }: HistogramOptions): HistogramSample {
  const shown = bounds?.map(rounded);
  const all = BUCKET_BOUNDS_MS.map((bound) => rounded(bound * factor));
  const kept = shown === undefined ? all : all.filter((bound) => shown.includes(bound));
  const counts = Array<number>(kept.length + 1).fill(0);
  const exemplars = Array<SampleExemplar | undefined>(kept.length + 1).fill(undefined);
  let place = 0;
  for (const [index, bound] of [...all, Infinity].entries()) {
    // A hidden bucket belongs to the next one that is shown.
    counts[place] = (counts[place] ?? 0) + (timer.buckets[index] ?? 0);
    exemplars[place] = newest(exemplars[place], scaled(timer.exemplar(index), factor));
    if (bound === kept[place]) place++;
  }
  return { labels, bounds: kept, counts, exemplars, sum: timer.sumMs * factor };
}

function keyOf(labels: Labels): string {
  let key = "";
  for (const name of Object.keys(labels)) key += `${name}\0${labels[name] ?? ""}\0`;
  return key;
}

function scaled(exemplar: Exemplar | undefined, factor: number): SampleExemplar | undefined {
  if (exemplar === undefined) return undefined;
  const { span, ms, endedAt } = exemplar;
  return { span, endedAt, value: rounded(ms * factor) };
}

function newest(one: SampleExemplar | undefined, other: SampleExemplar | undefined) {
  return other === undefined || (one !== undefined && one.endedAt > other.endedAt) ? one : other;
}

/** Without the rounding errors of the multiplication. */
function rounded(bound: number): number {
  return Number(bound.toPrecision(12));
}
