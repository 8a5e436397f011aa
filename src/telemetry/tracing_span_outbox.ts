import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { type SpanPack, SpanPacker } from "./tracing_span_pack.ts";
import type { SpanRecord } from "./tracing_span_record.ts";

/** Options of a `SpanOutbox`. */
export interface SpanOutboxOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** How many spans may wait. */
  readonly maxWaiting: number;
  /** Sends spans; receipts come later, in this order. */
  readonly post: (pack: SpanPack) => void;
}

/** Spans are sent when so many wait, or this long after the first of them. */
const POSTED_SPANS = 512;
const POST_AFTER_MS = 250;
/** Interval of logging dropped spans. */
const LOG_MS = 1_000;

/** Sends spans in batches. The limit counts those that wait here and those that were sent without a receipt. */
export class SpanOutbox {
  readonly #options: SpanOutboxOptions;
  readonly #gathered = new SpanPacker();
  /** Number of spans in each pack without a receipt. */
  #sent: number[] = [];
  #untaken = 0;
  #maxWaiting: number;
  #isOpen = false;
  #dropped = 0;
  #loggedAt: number | undefined;
  #cancelPost = () => {};

  constructor(options: SpanOutboxOptions) {
    this.#options = options;
    this.#maxWaiting = options.maxWaiting;
  }

  /** How many spans are not sent yet. */
  get waiting(): number {
    return this.#gathered.count;
  }

  /** Starts sending. */
  open(): void {
    this.#isOpen = true;
    this.#post();
  }

  /** Takes an ended span; it is dropped where too many wait. */
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

  /** Notes the receipt of the oldest pack; returns how many spans still lack one. */
  noteTaken(): number {
    this.#untaken -= this.#sent.shift() ?? 0;
    this.#logDropped(this.#options.clock.now());
    return this.#untaken;
  }

  /** Stops sending until `open`; returns how many spans lack a receipt. */
  suspend(): number {
    const lost = this.#untaken;
    this.#isOpen = false;
    this.#sent = [];
    this.#untaken = 0;
    return lost;
  }

  /** Sends what is left; further spans are dropped. */
  close(): void {
    this.#post();
    this.#cancelPost();
    this.#logDropped(Infinity);
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

  #logDropped(now: number): void {
    if (this.#dropped === 0 || now - (this.#loggedAt ?? -Infinity) < LOG_MS) return;
    const facts = { dropped: this.#dropped, maxWaiting: this.#maxWaiting };
    this.#options.logger.warning("Spans dropped: too many wait to be exported", facts);
    this.#dropped = 0;
    this.#loggedAt = now;
  }
}
