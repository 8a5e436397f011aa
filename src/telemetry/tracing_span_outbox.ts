import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { ThrottledLog } from "../base/throttled_log.ts";
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
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Sends spans in batches, one after the other; spans beyond the limit are dropped. */
export class SpanOutbox {
  readonly #options: SpanOutboxOptions;
  readonly #log: ThrottledLog;
  readonly #packer = new SpanPacker();
  /** Whole batches that are not sent yet. */
  readonly #packs: SpanPack[] = [];
  #waiting = 0;
  #isSending = false;
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

  /** Sends the remaining spans, and takes no others. */
  close(): void {
    this.#isClosed = true;
    this.#isDue = true;
    for (let spans = this.#next(); spans !== undefined; spans = this.#next()) {
      void this.#options.send({ signal: "TRACES", spans });
    }
  }

  /** Sends all spans that wait. */
  #sendRest(): void {
    this.#isDue = true;
    this.#send();
  }

  #send(): void {
    if (!this.#isSending) void this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    for (let spans = this.#next(); spans !== undefined; spans = this.#next()) {
      await this.#options.send({ signal: "TRACES", spans });
      this.#waiting -= spans.count;
    }
    // In the same turn as the last look for spans, so that no span comes between the two.
    this.#isSending = false;
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
