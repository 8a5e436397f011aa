import type { Clock } from "../base/clock.ts";

/** Options of a live feed. */
interface LiveFeedOptions {
  readonly clock: Clock;
  /** Called once per second for all streams, while there are any. */
  readonly snapshot: () => unknown;
  readonly maxStreams: number;
}

const PERIOD_MS = 1_000;
/** A reader that reads nothing for this many periods loses its stream. */
const MAX_SKIPPED = 30;
/** A proxy may keep reading for a page that is gone: a stream this old ends, and a page reopens it. */
const MAX_PERIODS = 3_600;

interface Listener {
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  skipped: number;
  periods: number;
  readonly detach: () => void;
}

/** Sends the same snapshot to all streams once per second, as server-sent events; a slow reader misses snapshots. */
export class LiveFeed {
  readonly #options: LiveFeedOptions;
  readonly #listeners = new Set<Listener>();
  #cancelTimer: (() => void) | undefined;
  #last: { readonly event: Uint8Array; readonly at: number } | undefined;

  constructor(options: LiveFeedOptions) {
    this.#options = options;
  }

  get streams(): number {
    return this.#listeners.size;
  }

  /** A stream that starts with a snapshot and ends when a signal aborts; undefined at the maximum of streams. */
  open({ signals }: { readonly signals: readonly AbortSignal[] }): ReadableStream<Uint8Array> | undefined {
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
      cancel: () => void this.#remove(listener),
    }, { highWaterMark: 1 });
  }

  #schedule(): () => void {
    return this.#options.clock.after(PERIOD_MS, () => {
      this.#cancelTimer = this.#schedule();
      this.#broadcast();
    });
  }

  #broadcast(): void {
    const event = this.#encode();
    for (const listener of [...this.#listeners]) {
      const { controller } = listener;
      if ((controller.desiredSize ?? 0) > 0) {
        listener.skipped = 0;
        controller.enqueue(event);
      } else listener.skipped++;
      if (listener.skipped >= MAX_SKIPPED || ++listener.periods >= MAX_PERIODS) this.#end(listener);
    }
  }

  /** At most one snapshot per period, however many streams are opened. */
  #current(): Uint8Array {
    const { clock } = this.#options;
    const last = this.#last;
    return last !== undefined && clock.elapsed() - last.at < PERIOD_MS ? last.event : this.#encode();
  }

  #encode(): Uint8Array {
    const { clock, snapshot } = this.#options;
    const event = new TextEncoder().encode(`event: snapshot\ndata: ${JSON.stringify(snapshot())}\n\n`);
    this.#last = { event, at: clock.elapsed() };
    return event;
  }

  #end(listener: Listener | undefined): void {
    if (listener !== undefined && this.#remove(listener)) listener.controller.close();
  }

  #remove(listener: Listener | undefined): boolean {
    if (listener === undefined || !this.#listeners.delete(listener)) return false;
    listener.detach();
    if (this.#listeners.size > 0) return true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    return true;
  }
}
