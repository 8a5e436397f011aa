import { setImmediate } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import { PullReader, type PullReaderOptions } from "./pull_reader.ts";
import { CONTENT_TYPES, metricsText, type PullFormat } from "./pull_text.ts";

/** The served metrics and their path. */
export interface PullHandlerOptions extends PullReaderOptions {
  /** Path of the metrics. */
  readonly path: string;
}

/** Most scrapes that run concurrently; each holds its text until it is read. */
const MAX_SCRAPES = 4;
/** Timeout of reading a scrape. */
const SCRAPE_MS = 60_000;
/** Timeout of reading one piece of it, so that a client that reads nothing makes room early. */
const PIECE_MS = 10_000;
const METHODS = "GET, HEAD";

/** A handler that serves only the metrics. Throws when a tag cannot be a label. */
export function createPullHandler(options: PullHandlerOptions): (request: Request) => Promise<Response> {
  const scraper = new Scraper(options);
  return async (request) => {
    if (new URL(request.url).pathname !== options.path) return plain(404, "404 page not found");
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
  readonly #clock: Clock;
  readonly #reader: PullReader;
  #running = 0;

  constructor(options: PullHandlerOptions) {
    this.#clock = options.clock;
    this.#reader = new PullReader(options);
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
      const { constantLabels } = this.#reader;
      const text = metricsText(await this.#reader.read(), { format: form.format, constantLabels });
      const headers = headersOf(form);
      const body = streamOf(text, { clock: this.#clock, end });
      return new Response(form.isCompressed ? body.pipeThrough(new CompressionStream("gzip")) : body, {
        headers,
      });
    } catch (error) {
      end();
      throw error;
    }
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

/** True when the client accepts gzip, by name or by `*`. */
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

function headersOf({ format, isCompressed }: PullForm): Record<string, string> {
  const encoding: Record<string, string> = isCompressed ? { "content-encoding": "gzip" } : {};
  const type = CONTENT_TYPES[format];
  const framing = { "transfer-encoding": "chunked" };
  return { "content-type": type, vary: "accept, accept-encoding", ...framing, ...encoding };
}

function plain(status: number, text: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(`${text}\n`, {
    status,
    headers: { "content-type": "text/plain; charset=utf-8", ...headers },
  });
}
