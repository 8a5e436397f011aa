import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { type SpanPack, SpanPacker } from "./tracing_span_pack.ts";
import type { SpanRecord } from "./tracing_span_record.ts";

/** What a `SpanOutbox` works with. */
export interface SpanOutboxOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** How many spans may wait. */
  readonly maxWaiting: number;
  /** Sends spans, which are taken later and in this order. */
  readonly post: (pack: SpanPack) => void;
}

/** Spans are sent when so many wait, or so long after the first of them. */
const POSTED_SPANS = 512;
const POST_AFTER_MS = 250;
/** How often it is told that spans are dropped. */
const TELL_MS = 1_000;

/**
 * Gathers spans and sends them on many at a time, because sending costs about the same for one and for
 * many. Spans that wait here and those that were sent and not taken are bounded together.
 */
export class SpanOutbox {
  readonly #options: SpanOutboxOptions;
  readonly #gathered = new SpanPacker();
  /** Number of spans of each pack that was sent and not taken. */
  #sent: number[] = [];
  #untaken = 0;
  #maxWaiting: number;
  #isOpen = false;
  #dropped = 0;
  #toldAt: number | undefined;
  #cancelPost = () => {};

  constructor(options: SpanOutboxOptions) {
    this.#options = options;
    this.#maxWaiting = options.maxWaiting;
  }

  /** How many spans were taken in and not sent. */
  get waiting(): number {
    return this.#gathered.count;
  }

  /** There is somebody who takes spans. */
  open(): void {
    this.#isOpen = true;
    this.#post();
  }

  /** Takes a span that is over; it is dropped where too many wait. */
  add(span: SpanRecord): void {
    if (this.#gathered.count + this.#untaken >= this.#maxWaiting) {
      this.#dropped++;
      return;
    }
    this.#gathered.add(span);
    const { count } = this.#gathered;
    if (count === 1) {
      this.#cancelPost = this.#options.clock.after(POST_AFTER_MS, () => this.#post());
    } else if (count >= POSTED_SPANS && this.#isOpen) this.#post();
  }

  /** The first pack of those that were sent was taken. How many spans still are not. */
  noteTaken(): number {
    this.#untaken -= this.#sent.shift() ?? 0;
    this.#tellDropped(this.#options.clock.now());
    return this.#untaken;
  }

  /** Nobody takes spans until `open`; answers how many were sent and not taken. */
  suspend(): number {
    const lost = this.#untaken;
    this.#isOpen = false;
    this.#sent = [];
    this.#untaken = 0;
    return lost;
  }

  /** Sends what is left. Nothing is taken any more. */
  close(): void {
    this.#post();
    this.#cancelPost();
    this.#tellDropped(Infinity);
    this.#maxWaiting = 0;
  }

  #post(): void {
    const { count } = this.#gathered;
    if (!this.#isOpen || count === 0) return;
    this.#cancelPost();
    this.#sent.push(count);
    this.#untaken += count;
    this.#options.post(this.#gathered.take());
  }

  #tellDropped(now: number): void {
    if (this.#dropped === 0 || now - (this.#toldAt ?? -Infinity) < TELL_MS) return;
    this.#options.logger.warning(`Dropped ${this.#dropped} spans: ${this.#maxWaiting} wait to be exported`);
    this.#dropped = 0;
    this.#toldAt = now;
  }
}
