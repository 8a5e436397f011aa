import { setImmediate } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Labels } from "./pull_families.ts";
import { mapperOf, type MetricMapping } from "./pull_mapping.ts";
import { type PullRules, type PullSource, scrape } from "./pull_scrape.ts";
import { labelsOfTags } from "./pull_tags.ts";
import { CONTENT_TYPES, metricsText, type PullFormat } from "./pull_text.ts";

/** What is served, and how. */
export interface PullHandlerOptions {
  /** The statistics. */
  readonly store: PullSource;
  /** Path under which the metrics are. */
  readonly path: string;
  /** Mappings of a file; the built-in mapping when absent. */
  readonly mapping?: readonly MetricMapping[] | undefined;
  /** Labels from the rules themselves, and the limit of each rule. */
  readonly native: boolean;
  /** The response time of the built-in mapping stays in milliseconds. */
  readonly timeAsMilliseconds: boolean;
  /** Labels that every metric gets. */
  readonly extraTags: ReadonlyMap<string, string>;
  /** The rules in force. */
  readonly rules?: () => PullRules | undefined;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** How many scrapes may run at once: each holds its text until it is taken. */
const MAX_SCRAPES = 4;
/** How long a scrape has to be taken. */
const SCRAPE_MS = 60_000;
/** How long one piece of it has: who reads nothing gives its place to others much earlier. */
const PIECE_MS = 10_000;
/** Names that are told when they cannot be shown. */
const MAX_CONFLICTS = 10;
const METHODS = "GET, HEAD";

/** A handler that serves the metrics and nothing else. Throws when a tag can be no label. */
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

/** How one scrape is written. */
interface PullForm {
  readonly format: PullFormat;
  readonly isCompressed: boolean;
}

/** Makes the answers, a few at a time. */
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
      const families = await scrape({
        source: store,
        rules,
        mapper: this.#mapper,
        native,
        timeAsMilliseconds,
        startedAtSeconds: this.#startedAtSeconds,
        onConflict: (name) => this.#tellConflict(name),
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

  #tellConflict(name: string): void {
    if (this.#conflicts.has(name) || this.#conflicts.size >= MAX_CONFLICTS) return;
    this.#conflicts.add(name);
    this.#options.logger.warning(
      `Cannot show metric "${name}": another kind of metric has that name already`,
    );
  }
}

/** The pieces as a body; `end` is called once it is taken, given up or over its time, or that of a piece. */
function streamOf(
  pieces: Generator<string, void, void>,
  { clock, end }: { readonly clock: Clock; readonly end: () => void },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const encoder = new TextEncoder();
  let stopScrape = () => {};
  let stopPiece = () => {};
  const over = () => {
    stopScrape();
    stopPiece();
    end();
  };
  const cutIn = (ms: number, controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) =>
    clock.after(ms, () => {
      controller.error(new Error("Cannot go on with a scrape: it was not taken in time"));
      over();
    });
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      stopScrape = cutIn(SCRAPE_MS, controller);
    },
    async pull(controller) {
      stopPiece();
      stopPiece = cutIn(PIECE_MS, controller);
      await setImmediate();
      const { done, value } = pieces.next();
      if (done !== true) return controller.enqueue(encoder.encode(value));
      over();
      controller.close();
    },
    cancel() {
      over();
      pieces.return();
    },
  }, { highWaterMark: 1 });
}

/** OpenMetrics where it is asked for at least as much as the plain text. */
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

/** Whether the scraper takes gzip, by its own name or among any encodings. */
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
    // A host with a space in it makes no URL.
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
