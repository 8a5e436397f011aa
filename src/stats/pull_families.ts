import { BUCKET_BOUNDS_MS, type Exemplar, type Timer } from "./timer.ts";

/** Kinds of metrics. */
export type MetricKind = "counter" | "gauge" | "histogram";

/** Labels of a sample by name. */
export type Labels = Readonly<Record<string, string>>;

/** One number of a metric. */
export interface Sample {
  readonly labels: Labels;
  value: number;
  /** The name in its line where it differs from that of the metric, as in histograms. */
  readonly metricName?: string;
  /** A traced duration of a bucket. */
  exemplar?: SampleExemplar | undefined;
}

/** An exemplar with its value in the unit of the metric. */
interface SampleExemplar {
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

/** A metric with all its samples, in the order in which they were added. */
export interface Family extends FamilyName {
  samples(): readonly Sample[];
}

/** The unit and the buckets of a histogram. */
interface HistogramOptions {
  /** A millisecond in the unit of the metric. */
  readonly factor: number;
  /** Bounds in the unit of the metric; all of them when absent. */
  readonly bounds?: readonly number[] | undefined;
}

/** The samples of a scrape by metric. */
export class Families implements Iterable<Family> {
  readonly #families = new Map<string, OpenFamily>();
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

  /** Adds the durations of a timer. */
  addTimer(family: FamilyName, labels: Labels, timer: Timer, options: HistogramOptions): void {
    const open = this.#open(family);
    if (open === undefined) return;
    const { factor } = options;
    const all = BUCKET_BOUNDS_MS.map((bound) => rounded(bound * factor));
    const line = (suffix: string, more: Labels, value: number, exemplar?: SampleExemplar) => {
      const metricName = `${family.name}${suffix}`;
      const whole = { ...labels, ...more };
      this.#taken.add(metricName);
      const key = `${metricName}\0${keyOf(whole)}`;
      const known = open.get(key);
      if (known === undefined) return open.put(key, { metricName, labels: whole, value, exemplar });
      known.value += value;
      known.exemplar = newest(known.exemplar, exemplar);
    };
    let within = 0;
    let exemplar: SampleExemplar | undefined;
    for (const [index, bound] of [...all, Infinity].entries()) {
      within += timer.buckets[index] ?? 0;
      // That of a hidden bucket belongs to the next one that is shown.
      exemplar = newest(exemplar, scaled(timer.exemplar(index), factor));
      const isShown = options.bounds === undefined || bound === Infinity ||
        options.bounds.some((one) => rounded(one) === bound);
      if (!isShown) continue;
      line("_bucket", { le: bound === Infinity ? "+Inf" : String(bound) }, within, exemplar);
      exemplar = undefined;
    }
    line("_sum", {}, timer.sumMs * factor);
    line("_count", {}, timer.count);
  }

  /** Every metric in the order of its first sample. */
  [Symbol.iterator](): Iterator<Family> {
    return this.#families.values();
  }

  #open(requested: FamilyName): OpenFamily | undefined {
    let family = this.#families.get(requested.name);
    if (family === undefined && !this.#taken.has(requested.name)) {
      this.#families.set(requested.name, family = new OpenFamily(requested));
    }
    if (family?.kind === requested.kind) return family;
    this.#onConflict(requested.name);
    return undefined;
  }

  #keyOf(labels: Labels): string {
    if (labels === this.#lastLabels) return this.#lastKey;
    this.#lastLabels = labels;
    return this.#lastKey = keyOf(labels);
  }
}

/** Small for a single sample, because every unmapped name is a metric. */
class OpenFamily implements Family {
  readonly name: string;
  readonly kind: MetricKind;
  readonly help: string;
  #firstKey = "";
  #first: Sample | undefined;
  /** By labels; absent below two samples. */
  #all: Map<string, Sample> | undefined;

  constructor({ name, kind, help }: FamilyName) {
    this.name = name;
    this.kind = kind;
    this.help = help;
  }

  get(key: string): Sample | undefined {
    return this.#all === undefined && key === this.#firstKey ? this.#first : this.#all?.get(key);
  }

  put(key: string, sample: Sample): void {
    if (this.#all !== undefined) return void this.#all.set(key, sample);
    if (this.#first !== undefined) {
      this.#all = new Map([[this.#firstKey, this.#first], [key, sample]]);
      return;
    }
    this.#firstKey = key;
    this.#first = sample;
  }

  samples(): readonly Sample[] {
    if (this.#all !== undefined) return [...this.#all.values()];
    return this.#first === undefined ? [] : [this.#first];
  }
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
