import type { Clock } from "../base/clock.ts";

/** What a feed works with. */
export interface LiveFeedOptions {
  readonly clock: Clock;
  /** Makes what is told; asked once for all who listen, and only while somebody does. */
  readonly snapshot: () => unknown;
  /** How many may listen at once. */
  readonly maxStreams: number;
}

/** What ends a stream beside its reader. */
export interface StreamEnds {
  /** Any of them aborted ends the stream. */
  readonly signals: readonly AbortSignal[];
}

const PERIOD_MS = 1_000;
/** Who takes nothing for so many periods loses the stream, for it holds a place that others may want. */
const MAX_SKIPPED = 30;
/** Buffers on the way may hide for hours that nobody reads: a stream this old ends, and a page opens another. */
const MAX_PERIODS = 3_600;

/** One who listens. */
interface Listener {
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  /** Periods in a row in which nothing was taken. */
  skipped: number;
  /** Periods since the stream was opened. */
  periods: number;
  readonly detach: () => void;
}

/**
 * Tells everybody who listens the same snapshot once a second, as server-sent events. A slow reader misses
 * snapshots: no more than one waits for it.
 */
export class LiveFeed {
  readonly #options: LiveFeedOptions;
  readonly #listeners = new Set<Listener>();
  #cancelTimer: (() => void) | undefined;
  #last: { readonly event: Uint8Array; readonly at: number } | undefined;

  constructor(options: LiveFeedOptions) {
    this.#options = options;
  }

  /** How many listen. */
  get streams(): number {
    return this.#listeners.size;
  }

  /** A stream whose first event is there at once; none where too many listen already. */
  open({ signals }: StreamEnds): ReadableStream<Uint8Array> | undefined {
    if (this.#listeners.size >= this.#options.maxStreams) return undefined;
    const event = this.#current();
    let listener: Listener | undefined;
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        const end = () => this.#end(listener);
        const detach = () => signals.forEach((signal) => signal.removeEventListener("abort", end));
        listener = { controller, skipped: 0, periods: 0, detach };
        this.#listeners.add(listener);
        controller.enqueue(event);
        for (const signal of signals) signal.addEventListener("abort", end, { once: true });
        if (signals.some(({ aborted }) => aborted)) return end();
        this.#cancelTimer ??= this.#schedule();
      },
      cancel: () => void this.#forget(listener),
    }, { highWaterMark: 1 });
  }

  #schedule(): () => void {
    return this.#options.clock.after(PERIOD_MS, () => {
      this.#cancelTimer = this.#schedule();
      this.#tell();
    });
  }

  #tell(): void {
    const event = this.#made();
    for (const listener of [...this.#listeners]) {
      const { controller } = listener;
      if ((controller.desiredSize ?? 0) > 0) {
        listener.skipped = 0;
        controller.enqueue(event);
      } else listener.skipped++;
      if (listener.skipped >= MAX_SKIPPED || ++listener.periods >= MAX_PERIODS) this.#end(listener);
    }
  }

  /** Who opens streams again and again makes no more work than who listens. */
  #current(): Uint8Array {
    const { clock } = this.#options;
    const last = this.#last;
    return last !== undefined && clock.elapsed() - last.at < PERIOD_MS ? last.event : this.#made();
  }

  #made(): Uint8Array {
    const { clock, snapshot } = this.#options;
    const event = new TextEncoder().encode(`event: snapshot\ndata: ${JSON.stringify(snapshot())}\n\n`);
    this.#last = { event, at: clock.elapsed() };
    return event;
  }

  #end(listener: Listener | undefined): void {
    if (listener !== undefined && this.#forget(listener)) listener.controller.close();
  }

  #forget(listener: Listener | undefined): boolean {
    if (listener === undefined || !this.#listeners.delete(listener)) return false;
    listener.detach();
    if (this.#listeners.size > 0) return true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    return true;
  }
}
