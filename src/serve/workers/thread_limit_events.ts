import type { Clock } from "../../base/clock.ts";
import { WakeLoop } from "../../base/wake_loop.ts";
import { LimitEpisodes, type LimitReport } from "../../ratelimit/limit_episodes.ts";
import type { LimitEventSink, LimitFact } from "../../ratelimit/limit_events.ts";

/** Takes what a thread has collected: reports, and how many episodes it suppressed because there were too many. */
export type TakeReports = (reports: readonly LimitReport[], suppressed: number) => void;

const FLUSH_MS = 250;
const POLL_MS = 1_000;
/** A turn of the event loop has at most so many. */
const MAX_REPORTS = 1_000;

/** Collects the events about limits of a thread that decides, for the main thread. */
export class ThreadLimitEvents implements LimitEventSink {
  readonly #clock: Clock;
  readonly #take: TakeReports;
  /** The main thread limits how many begin per second. */
  readonly #episodes = new LimitEpisodes({ maxPerSecond: Infinity, graceMs: 0, reportMs: POLL_MS });
  readonly #loop: WakeLoop;

  constructor(clock: Clock, take: TakeReports) {
    this.#clock = clock;
    this.#take = take;
    this.#loop = new WakeLoop({ clock, pollMs: POLL_MS, round: () => Promise.resolve(this.#send(false)) });
    this.#loop.start();
  }

  note(facts: readonly LimitFact[], now: number): void {
    this.#episodes.note(facts, now);
    this.#loop.wakeIn(FLUSH_MS);
  }

  /** Sends what is left. */
  async close(): Promise<void> {
    await this.#loop.stop();
    while (this.#send(true));
  }

  /** Answers whether there is more. */
  #send(isLast: boolean): boolean {
    const now = this.#clock.now();
    const reports = this.#episodes.take(now, MAX_REPORTS, isLast);
    const suppressed = this.#episodes.takeSuppressed(now, isLast)?.count ?? 0;
    if (reports.length > 0 || suppressed > 0) this.#take(reports, suppressed);
    return reports.length === MAX_REPORTS;
  }
}
