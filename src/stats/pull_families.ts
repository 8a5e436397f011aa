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
  /** By labels. */
  readonly samples: ReadonlyMap<string, Sample>;
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
  readonly #families = new Map<string, Family & { readonly samples: Map<string, Sample> }>();
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
    const samples = this.#samplesOf(family);
    if (samples !== undefined) put(samples, this.#keyOf(labels), { labels, value });
  }

  /** The same, but a sample that is there already stays as it is. */
  addOnce(family: FamilyName, labels: Labels, value: number): void {
    const samples = this.#samplesOf(family);
    const key = this.#keyOf(labels);
    if (samples?.has(key) === false) samples.set(key, { labels, value });
  }

  /** Adds the durations of a timer. */
  addTimer(family: FamilyName, labels: Labels, timer: Timer, options: HistogramOptions): void {
    const samples = this.#samplesOf(family);
    if (samples === undefined) return;
    const { factor } = options;
    const all = BUCKET_BOUNDS_MS.map((bound) => rounded(bound * factor));
    const line = (suffix: string, more: Labels, value: number) => {
      const metricName = `${family.name}${suffix}`;
      const whole = { ...labels, ...more };
      this.#taken.add(metricName);
      put(samples, `${metricName}\0${keyOf(whole)}`, { metricName, labels: whole, value });
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

  #samplesOf({ name, kind, help }: FamilyName): Map<string, Sample> | undefined {
    let family = this.#families.get(name);
    if (family === undefined && !this.#taken.has(name)) {
      this.#families.set(name, family = { name, kind, help, samples: new Map() });
    }
    if (family?.kind === kind) return family.samples;
    this.#onConflict(name);
    return undefined;
  }

  #keyOf(labels: Labels): string {
    if (labels === this.#lastLabels) return this.#lastKey;
    this.#lastLabels = labels;
    return this.#lastKey = keyOf(labels);
  }
}

function put(samples: Map<string, Sample>, key: string, sample: Sample): void {
  const known = samples.get(key);
  if (known === undefined) samples.set(key, sample);
  else known.value += sample.value;
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
