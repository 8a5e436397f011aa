import { type Clock, systemClock } from "../../src/base/clock.ts";

interface Timer {
  readonly due: number;
  readonly run: () => void;
  /** Ends the wait of the clock behind, if there is one. */
  cancel?: () => void;
}

type Flow = "by hand" | "by turns" | "by waits" | "by a clock";

/** Options of a machine clock. */
interface MachineClockOptions {
  /** The clock that it goes by, in place of that of the machine. */
  readonly of?: Clock;
  /** Every delay is so many times longer, and `elapsed` so many times slower; 1 if absent. */
  readonly factor?: number;
  /** Shorter delays keep their length: they are turns of the work, not limits. With it, `elapsed` is not scaled. */
  readonly fromMs?: number;
  /** The time of day, in milliseconds since the epoch, in place of that of the other clock. */
  readonly now?: number | (() => number);
  /** Time that the wall clock is ahead. */
  readonly aheadMs?: number;
}

/** The clock of tests: its time passes only as a test tells, or is that of the machine, scaled and with time skipped. */
export class FakeClock implements Clock {
  /** Time that the wall clock is ahead of the elapsed time; a test may set it. */
  aheadMs = 0;
  /** Additional time of `elapsed`; a test may set it. */
  elapsedAheadMs = 0;
  /** Every delay that was asked for, in milliseconds. */
  readonly waits: number[] = [];
  readonly #flow: Flow;
  readonly #timers = new Set<Timer>();
  #of: Clock;
  #skippedMs = 0;
  #length = (delayMs: number) => delayMs;
  #ticking: ReturnType<typeof setTimeout> | undefined;

  /** A clock that stands still until a test advances it; it starts at `now`, in milliseconds since the epoch. */
  constructor(now = 1_700_000_000_000, flow: Flow = "by hand") {
    this.#flow = flow;
    this.#of = { now: () => now, elapsed: () => now, after: () => () => {} };
  }

  /**
   * A clock on which a millisecond is a turn of the event loop, of at least that length, while anything waits. Time stands
   * still while the machine does, so that a limit strikes only after work that was there had its many turns.
   */
  static byTurns(now?: number): FakeClock {
    return new FakeClock(now, "by turns");
  }

  /** A clock on which every wait ends immediately and moves time to its end. For calls without limits. */
  static byWaits(now?: number): FakeClock {
    return new FakeClock(now, "by waits");
  }

  /**
   * A clock that goes by that of the machine, with delays that are longer, or a time of day that differs: limits of the
   * product do not strike on a slow machine, and no window ends during a test.
   */
  static ofMachine(
    { of = systemClock, factor = 1, fromMs, now = () => of.now(), aheadMs = 0 }: MachineClockOptions = {},
  ): FakeClock {
    const clock = new FakeClock(0, "by a clock");
    const slower = fromMs === undefined ? factor : 1;
    clock.aheadMs = aheadMs;
    clock.#of = {
      now: typeof now === "number" ? () => now : now,
      elapsed: () => of.elapsed() / slower,
      after: (delayMs, run) => of.after(delayMs * slower, run),
    };
    clock.#length = (delayMs) => fromMs === undefined || delayMs < fromMs ? delayMs : delayMs * factor;
    return clock;
  }

  now(): number {
    return this.#of.now() + this.#skippedMs + this.aheadMs;
  }

  elapsed(): number {
    return this.#of.elapsed() + this.#skippedMs + this.elapsedAheadMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const length = this.#length(delayMs);
    const timer: Timer = { due: this.elapsed() + Math.max(0, length), run };
    this.#timers.add(timer);
    this.waits.push(delayMs);
    timer.cancel = this.#of.after(length, () => this.#end(timer));
    if (this.#flow === "by turns") this.#tick();
    if (this.#flow === "by waits") queueMicrotask(() => this.#skipTo(timer));
    return () => this.#drop(timer);
  }

  /** Number of waiting timers; 0 after everything that used the clock has let go of it. */
  get waiting(): number {
    return this.#timers.size;
  }

  /** Returns whether its time is that of the machine. */
  get isOfMachine(): boolean {
    return this.#flow === "by a clock";
  }

  /** Moves time on and runs what became due, in order of time and then of request, new timers included. */
  advance(ms: number): void {
    const end = this.elapsed() + ms;
    for (let timer = this.#next(end); timer !== undefined; timer = this.#next(end)) {
      this.#moveTo(timer.due);
      this.#end(timer);
    }
    this.#moveTo(end);
  }

  #next(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.due <= end && (first === undefined || timer.due < first.due)) first = timer;
    }
    return first;
  }

  #moveTo(elapsed: number): void {
    const ms = elapsed - this.elapsed();
    // The clock behind goes on meanwhile, and its time of day has no fractions.
    this.#skippedMs += this.#flow === "by a clock" ? Math.max(0, Math.ceil(ms)) : ms;
  }

  #end(timer: Timer): void {
    this.#drop(timer);
    timer.run();
  }

  #drop(timer: Timer): void {
    timer.cancel?.();
    this.#timers.delete(timer);
    if (this.waiting > 0) return;
    clearTimeout(this.#ticking);
    this.#ticking = undefined;
  }

  #skipTo(timer: Timer): void {
    if (this.#timers.has(timer)) this.advance(timer.due - this.elapsed());
  }

  #tick(): void {
    if (this.waiting === 0) return;
    this.#ticking ??= setTimeout(() => {
      this.#ticking = undefined;
      this.advance(1);
      this.#tick();
    }, 1);
  }
}

/** The time of the machine, but limits strike thirty times as late. For tests in which no limit is to strike. */
export const patientClock = FakeClock.ofMachine({ factor: 30, fromMs: 500 });

/** The time of the machine, but every wait ends twenty times sooner: for pauses that no setting changes. */
export const quickClock = FakeClock.ofMachine({ factor: 1 / 20, fromMs: 0 });

/**
 * Sets the wall clock of this thread ahead, as if somebody had set that of its machine; what measures how long something
 * takes is left alone, as it is there.
 */
export function shiftWallClock(aheadMs = 0): void {
  if (aheadMs === 0) return;
  const real = Date.now;
  Date.now = () => real() + aheadMs;
}
