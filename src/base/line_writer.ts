import type { Clock } from "./clock.ts";

/** A destination such as `Deno.stderr`. A write may fail, be partial, or never settle. */
export interface ByteSink {
  write(bytes: Uint8Array): Promise<number>;
}

interface LineWriterOptions {
  readonly sink: ByteSink;
  readonly clock: Clock;
  /** Called when there is room again, with the number of lines dropped since the last call. */
  readonly onRoom?: (dropped: number) => void;
}

/** Characters that may wait for the sink. */
const MAX_WAITING = 1_048_576;
/** Characters of one write; a pipe buffers as many bytes. */
const MAX_WRITE = 65_536;
/** Pause after a failed write. */
const RETRY_MS = 250;
const ENCODER = new TextEncoder();

/**
 * Writes lines to a sink that may stall or fail, such as a pipe without a reader or a full disk. The caller never waits
 * and nothing throws: lines are buffered up to a limit, beyond which they are dropped and counted.
 */
export class LineWriter {
  readonly #options: LineWriterOptions;
  #lines: string[] = [];
  #waiting = 0;
  #dropped = 0;
  #reported = 0;
  #writing: Promise<void> | undefined;

  constructor(options: LineWriterOptions) {
    this.#options = options;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** Writes one or more lines, without the last line break. */
  write(text: string): void {
    if (this.#waiting > 0 && this.#waiting + text.length > MAX_WAITING) {
      this.#dropped++;
      return;
    }
    this.#lines.push(text);
    this.#waiting += text.length;
    this.#writing ??= this.#writeAll();
  }

  /** Settles when no line waits; never, where the sink does not recover. */
  async drained(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#lines.length > 0) {
      const lines = this.#takeLines();
      await this.#writeBytes(ENCODER.encode(`${lines.join("\n")}\n`));
      this.#waiting -= lines.reduce((sum, { length }) => sum + length, 0);
      this.#report();
    }
    // In the same turn as the last check for a line, so that none is left behind.
    this.#writing = undefined;
  }

  #takeLines(): string[] {
    let count = 0;
    for (let size = 0; count < this.#lines.length; count++) {
      size += this.#lines[count]?.length ?? 0;
      if (count > 0 && size > MAX_WRITE) break;
    }
    return this.#lines.splice(0, count);
  }

  async #writeBytes(bytes: Uint8Array): Promise<void> {
    const { sink, clock } = this.#options;
    for (let at = 0; at < bytes.length;) {
      try {
        at += await sink.write(bytes.subarray(at));
      } catch {
        // Any error may be temporary: space is freed, a reader returns.
        await new Promise<void>((resolve) => void clock.after(RETRY_MS, resolve));
      }
    }
  }

  #report(): void {
    const dropped = this.#dropped - this.#reported;
    // Half of the room, so that a steady overload does not report with every write.
    if (dropped === 0 || this.#waiting > MAX_WAITING / 2) return;
    this.#reported = this.#dropped;
    this.#options.onRoom?.(dropped);
  }
}
