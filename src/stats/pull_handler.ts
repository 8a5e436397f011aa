import { setImmediate } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Labels } from "./pull_families.ts";
import { mapperOf, type MetricMapping, metricName } from "./pull_mapping.ts";
import { type PullRules, type PullSource, scrape } from "./pull_scrape.ts";
import { CONTENT_TYPES, metricsText, type PullFormat } from "./pull_text.ts";

/** What is served, and how. */
export interface PullHandlerOptions {
  /** The statistics. */
  readonly store: PullSource;
  /** Path of the metrics. */
  readonly path: string;
  /** The mappings of a file; the built-in mapping when absent. */
  readonly mapping?: readonly MetricMapping[] | undefined;
  /** Labels come from the rules themselves, with the limit of each rule. */
  readonly native: boolean;
  /** The built-in mapping keeps the response time in milliseconds. */
  readonly timeAsMilliseconds: boolean;
  /** Labels of every metric. */
  readonly extraTags: ReadonlyMap<string, string>;
  /** The current rules. */
  readonly rules?: () => PullRules | undefined;
  /** Brings the statistics up to date before a scrape. */
  readonly refresh?: (() => Promise<void>) | undefined;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** How many scrapes may run concurrently; each holds its text until it is read. */
const MAX_SCRAPES = 4;
/** Timeout of reading a scrape. */
const SCRAPE_MS = 60_000;
/** Timeout of reading one piece of it, so that a client that reads nothing makes room early. */
const PIECE_MS = 10_000;
/** How many name conflicts are logged. */
const MAX_CONFLICTS = 10;
const METHODS = "GET, HEAD";

/** A handler that serves only the metrics. Throws when a tag cannot be a label. */
export function createPullHandler(options: PullHandlerOptions): (request: Request) => Promise<Response> {
  const scraper = new Scraper(options);
  return async (request) => {
    if (pathOf(request) !== options.path) return plain(404, "404 page not found");
    if (request.method !== "GET" && request.method !== "HEAD") {
      return plain(405, `Cannot answer "${request.method}": the method must be one of ${METHODS}`, {
        allow: METHODS,
      });
    }
    const form: PullForm = {
      format: formatFor(request.headers.get("accept") ?? ""),
      isCompressed: acceptsGzip(request.headers.get("accept-encoding") ?? ""),
    };
    if (request.method === "HEAD") return new Response(null, { headers: headersOf(form) });
    return await scraper.answer(form);
  };
}

interface PullForm {
  readonly format: PullFormat;
  readonly isCompressed: boolean;
}

class Scraper {
  readonly #options: PullHandlerOptions;
  readonly #constantLabels: Labels;
  readonly #mapper: ReturnType<typeof mapperOf> | undefined;
  readonly #startedAtSeconds: number;
  readonly #conflicts = new Set<string>();
  #running = 0;

  constructor(options: PullHandlerOptions) {
    this.#options = options;
    this.#mapper = options.mapping === undefined ? undefined : mapperOf(options.mapping);
    this.#constantLabels = labelsOfTags(options.extraTags);
    this.#startedAtSeconds = Math.floor((options.clock.now() - performance.now()) / 1_000);
  }

  async answer(form: PullForm): Promise<Response> {
    if (this.#running >= MAX_SCRAPES) {
      return plain(503, `Cannot serve metrics: ${this.#running} scrapes are running already`, {
        "retry-after": "1",
      });
    }
    this.#running++;
    let isOver = false;
    const end = () => {
      if (!isOver) this.#running--;
      isOver = true;
    };
    try {
      const { store, rules = () => undefined, native, timeAsMilliseconds, clock } = this.#options;
      await this.#options.refresh?.();
      const families = await scrape({
        source: store,
        rules,
        mapper: this.#mapper,
        native,
        timeAsMilliseconds,
        startedAtSeconds: this.#startedAtSeconds,
        onConflict: (name) => this.#logConflict(name),
      });
      const text = metricsText(families, { format: form.format, constantLabels: this.#constantLabels });
      const headers = headersOf(form);
      const body = streamOf(text, { clock, end });
      return new Response(form.isCompressed ? body.pipeThrough(new CompressionStream("gzip")) : body, {
        headers,
      });
    } catch (error) {
      end();
      throw error;
    }
  }

  #logConflict(name: string): void {
    if (this.#conflicts.has(name) || this.#conflicts.size >= MAX_CONFLICTS) return;
    this.#conflicts.add(name);
    this.#options.logger.warning("Metric omitted: another kind of metric has its name", { metric: name });
  }
}

/** The pieces as a body; `end` is called once it is read, cancelled or timed out. */
function streamOf(
  pieces: Generator<string, void, void>,
  { clock, end }: { readonly clock: Clock; readonly end: () => void },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const encoder = new TextEncoder();
  let stopScrape = () => {};
  let stopPiece = () => {};
  const finish = () => {
    stopScrape();
    stopPiece();
    end();
  };
  const cutAfter = (ms: number, controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) =>
    clock.after(ms, () => {
      controller.error(new Error("Cannot finish the scrape: it was not read in time"));
      finish();
    });
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      stopScrape = cutAfter(SCRAPE_MS, controller);
    },
    async pull(controller) {
      stopPiece();
      stopPiece = cutAfter(PIECE_MS, controller);
      await setImmediate();
      const { done, value } = pieces.next();
      if (done !== true) return controller.enqueue(encoder.encode(value));
      finish();
      controller.close();
    },
    cancel() {
      finish();
      pieces.return();
    },
  }, { highWaterMark: 1 });
}

/** OpenMetrics where its quality is at least that of plain text. */
function formatFor(accept: string): PullFormat {
  let openMetrics = 0;
  let text = 0;
  for (const part of accept.toLowerCase().split(",")) {
    const [type = "", ...parameters] = part.split(";").map((word) => word.trim());
    const quality = Number(parameters.find((word) => word.startsWith("q="))?.slice("q=".length) ?? 1);
    const version = parameters.find((word) => word.startsWith("version="))?.slice("version=".length);
    if (type === "application/openmetrics-text" && (version ?? "1.0.0") === "1.0.0") openMetrics = quality;
    if (type === "text/plain") text = Math.max(text, quality);
  }
  return openMetrics > 0 && openMetrics >= text ? "openmetrics" : "text";
}

/** Whether the client accepts gzip, by name or by `*`. */
function acceptsGzip(accept: string): boolean {
  const qualities = new Map(
    accept.toLowerCase().split(",").map((part) => {
      const [coding = "", ...parameters] = part.split(";").map((word) => word.trim());
      const quality = parameters.find((word) => word.startsWith("q="))?.slice("q=".length);
      return [coding, Number(quality ?? 1)] as const;
    }),
  );
  return (qualities.get("gzip") ?? qualities.get("*") ?? 0) > 0;
}

function pathOf(request: Request): string | undefined {
  try {
    return new URL(request.url).pathname;
  } catch {
    // The host may be invalid, such as one with a space.
    return undefined;
  }
}

function headersOf({ format, isCompressed }: PullForm): Record<string, string> {
  const encoding: Record<string, string> = isCompressed ? { "content-encoding": "gzip" } : {};
  return { "content-type": CONTENT_TYPES[format], vary: "accept, accept-encoding", ...encoding };
}

function plain(status: number, text: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(`${text}\n`, {
    status,
    headers: { "content-type": "text/plain; charset=utf-8", ...headers },
  });
}

/** Labels that histograms and summaries use. */
const RESERVED: ReadonlySet<string> = new Set(["le", "quantile"]);

/** The labels of EXTRA_TAGS, such as `zone_a` for `zone-a`. Throws with a line for each tag that cannot be one. */
export function labelsOfTags(tags: ReadonlyMap<string, string>): Labels {
  const problems: string[] = [];
  const labels: Record<string, string> = {};
  const tagOf = new Map<string, string>();
  for (const [tag, value] of tags) {
    const label = metricName(tag);
    const expected = expectedLabel(label, tagOf.get(label));
    if (expected === undefined) labels[label] = value;
    else {problems.push(
        `Invalid EXTRA_TAGS ${JSON.stringify(tag)} with USE_PULL_METRICS: expected ${expected}`,
      );}
    tagOf.set(label, tag);
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
  return labels;
}

/** What was expected instead of a label; `other` is the tag that has it already. */
function expectedLabel(label: string, other: string | undefined): string | undefined {
  if (label === "") return "a name of letters, digits and _";
  if (RESERVED.has(label)) return `another name: label "${label}" belongs to histograms and summaries`;
  if (label.startsWith("__")) return `a name without __ at the start: label "${label}" is reserved`;
  if (other === undefined) return undefined;
  return `another name: tag ${JSON.stringify(other)} has label "${label}" already`;
}
