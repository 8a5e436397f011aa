import { BUCKET_BOUNDS_MS, type Timer } from "./timer.ts";

/** What a metric is. */
export type MetricKind = "counter" | "gauge" | "histogram";

/** Labels of a sample by name. */
export type Labels = Readonly<Record<string, string>>;

/** One number of a metric. */
export interface Sample {
  readonly labels: Labels;
  value: number;
  /** Name of the line where it differs from that of the metric, as in histograms. */
  readonly metricName?: string;
}

/** A metric with all its samples. */
export interface Family {
  readonly name: string;
  readonly kind: MetricKind;
  readonly help: string;
  /** In the order in which they came. */
  samples(): readonly Sample[];
}

/** What samples of one metric have in common. */
export interface FamilyName {
  readonly name: string;
  readonly kind: MetricKind;
  readonly help: string;
}

/** How a timer becomes a histogram. */
export interface HistogramOptions {
  /** What a millisecond is in the unit of the metric. */
  readonly factor: number;
  /** Bounds to show, in the unit of the metric; all of them when absent. */
  readonly bounds?: readonly number[] | undefined;
}

/** What one scrape shows: samples gathered by metric, for all lines of a metric stand together. */
export class Families implements Iterable<Family> {
  readonly #families = new Map<string, OpenFamily>();
  /** Names of lines that histograms write beside their own. */
  readonly #taken = new Set<string>();
  readonly #onConflict: (name: string) => void;
  // One rule gives several samples with the same labels in a row.
  #lastLabels: Labels = {};
  #lastKey = "";

  /** `onConflict` is told of metrics that lose samples, because another of the same name has another kind. */
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

  /** The same, but a sample that is there already stays as it is. */
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
    const line = (suffix: string, more: Labels, value: number) => {
      const metricName = `${family.name}${suffix}`;
      const whole = { ...labels, ...more };
      this.#taken.add(metricName);
      const key = `${metricName}\0${keyOf(whole)}`;
      const known = open.get(key);
      if (known === undefined) open.put(key, { metricName, labels: whole, value });
      else known.value += value;
    };
    let within = 0;
    for (const [index, bound] of all.entries()) {
      within += timer.buckets[index] ?? 0;
      const isShown = options.bounds === undefined || options.bounds.some((one) => rounded(one) === bound);
      if (isShown) line("_bucket", { le: String(bound) }, within);
    }
    line("_bucket", { le: "+Inf" }, timer.count);
    line("_sum", {}, timer.sumMs * factor);
    line("_count", {}, timer.count);
  }

  /** Every metric in the order of its first sample. */
  [Symbol.iterator](): Iterator<Family> {
    return this.#families.values();
  }

  #open(wanted: FamilyName): OpenFamily | undefined {
    let family = this.#families.get(wanted.name);
    if (family === undefined && !this.#taken.has(wanted.name)) {
      this.#families.set(wanted.name, family = new OpenFamily(wanted));
    }
    if (family?.kind === wanted.kind) return family;
    this.#onConflict(wanted.name);
    return undefined;
  }

  #keyOf(labels: Labels): string {
    if (labels === this.#lastLabels) return this.#lastKey;
    this.#lastLabels = labels;
    return this.#lastKey = keyOf(labels);
  }
}

/** A metric that still gets samples. Names without a mapping make many metrics of one sample each. */
class OpenFamily implements Family {
  readonly name: string;
  readonly kind: MetricKind;
  readonly help: string;
  #firstKey = "";
  #first: Sample | undefined;
  /** By labels; absent while there is one at most. */
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

/** Without the last digits, which are dust of the multiplication. */
function rounded(bound: number): number {
  return Number(bound.toPrecision(12));
}
