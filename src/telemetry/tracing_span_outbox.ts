import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { ThrottledLog } from "../base/throttled_log.ts";
import { settledWithin } from "../base/wait.ts";
import type { SendBatch } from "./otlp_exporter.ts";
import { type SpanPack, SpanPacker } from "./tracing_span_pack.ts";
import type { SpanRecord } from "./tracing_span_record.ts";

/** Options of a `SpanOutbox`. */
interface SpanOutboxOptions {
  /** Most spans that wait, those being sent included. */
  readonly maxWaiting: number;
  /** Most spans that are sent together. */
  readonly maxBatch: number;
  /** Spans wait this long for others. */
  readonly delayMs: number;
  readonly send: SendBatch;
  /** Settles when spans can be sent. */
  readonly ready: () => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Longest time at the end to export the last spans. */
const FLUSH_MS = 5_000;
/** The end waits no longer for a collector that accepted nothing for this long. */
const STALL_MS = 1_000;

/** Sends spans in batches, one after the other; spans beyond the limit are dropped. */
export class SpanOutbox {
  readonly #options: SpanOutboxOptions;
  readonly #log: ThrottledLog;
  readonly #packer = new SpanPacker();
  /** Whole batches that are not sent yet. */
  readonly #packs: SpanPack[] = [];
  #waiting = 0;
  #accepted = 0;
  #sending: Promise<void> | undefined;
  /** Spans that are no whole batch have waited long enough. */
  #isDue = false;
  #cancelDelay: (() => void) | undefined;
  #isClosed = false;

  constructor(options: SpanOutboxOptions) {
    this.#options = options;
    this.#log = new ThrottledLog(options.logger, options);
  }

  /** Takes an ended span; it is dropped where too many wait. */
  add(span: SpanRecord): void {
    const { maxBatch, maxWaiting, delayMs, clock } = this.#options;
    if (this.#isClosed) return;
    if (this.#waiting >= maxWaiting) {
      return this.#log.warning("full", "Spans dropped: too many wait to be exported", { maxWaiting });
    }
    this.#waiting++;
    this.#packer.add(span);
    if (this.#packer.count < maxBatch) {
      this.#cancelDelay ??= clock.after(delayMs, () => this.#sendRest());
      return;
    }
    this.#packs.push(this.#gathered());
    this.#send();
  }

  /** Sends the remaining spans while the collector accepts some each second, and for a few seconds at most. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#waiting === 0) return;
    const { ready, clock, logger } = this.#options;
    this.#sendRest();
    const sent = this.#sending ?? Promise.resolve();
    let isEnding = await settledWithin(ready(), FLUSH_MS, clock);
    const isReady = isEnding;
    for (let waitedMs = 0; isEnding && waitedMs < FLUSH_MS; waitedMs += STALL_MS) {
      const accepted = this.#accepted;
      if (await settledWithin(sent, STALL_MS, clock)) return;
      isEnding = this.#accepted > accepted;
    }
    const problem = isReady ? "the collector did not accept them in time" : "the worker is not ready";
    logger.warning(`Cannot export the last spans: ${problem}`);
  }

  /** Sends all spans that wait. */
  #sendRest(): void {
    this.#isDue = true;
    this.#send();
  }

  #send(): void {
    this.#sending ??= this.#sendAll().finally(() => this.#sending = undefined);
  }

  async #sendAll(): Promise<void> {
    for (let spans = this.#next(); spans !== undefined; spans = this.#next()) {
      if (await this.#options.send({ signal: "TRACES", spans })) this.#accepted++;
      this.#waiting -= spans.count;
    }
  }

  /** The next whole batch, or the rest once it has waited long enough. */
  #next(): SpanPack | undefined {
    return this.#packs.shift() ?? (this.#isDue && this.#packer.count > 0 ? this.#gathered() : undefined);
  }

  #gathered(): SpanPack {
    this.#cancelDelay?.();
    this.#cancelDelay = undefined;
    this.#isDue = false;
    return this.#packer.take();
  }
}
