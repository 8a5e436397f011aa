import { amountOf, type LimitAmount } from "./limit_amount.ts";
import type { LimitEventSink, LimitFact } from "./limit_events.ts";
import type { Entry } from "../request.ts";
import { LIMIT_EVENTS, type LimitEvent, type Redaction } from "../rule_events.ts";

/** The facts of an episode in its events, apart from hits and times; serializable as JSON. */
interface EpisodeFacts {
  readonly domain: string;
  readonly entries: readonly Entry[];
  readonly rule: {
    /** The place of the rule: `file:line:column`. */
    readonly at: string;
    readonly metricKey: string;
  };
  readonly limit: LimitAmount & { readonly name?: string };
  readonly isShadow: boolean;
  readonly redact?: Redaction | undefined;
  /** When a hit passes again, or all is free again after hits near the limit. Milliseconds, as all times here. */
  readonly freeAt: number;
}

/** News of an episode, which is the time in which a key is over its limit, or near it. */
export interface LimitReport {
  readonly event: LimitEvent;
  /** The counter; with the start of the window if that is fixed. */
  readonly key: string;
  /** Since the last report. */
  readonly hits: number;
  readonly startedAt: number;
  /** When it ends if there are no further hits. */
  readonly endsAt: number;
  /** Of the first report. */
  readonly facts?: EpisodeFacts | undefined;
}

/** Episodes that were not reported, and when. */
interface Suppressed {
  readonly count: number;
  readonly from: number;
  readonly to: number;
}

/** Options of the episodes. */
interface LimitEpisodesOptions {
  /** Episodes that begin per second; further ones are suppressed. */
  readonly maxPerSecond: number;
  /** An ended episode waits this long for hits of other threads. */
  readonly graceMs: number;
  /** Interval of reports of an episode's hits: those since the last report are lost if the process is killed. */
  readonly reportMs?: number;
  /** Most episodes that are open, and most suppressed ones that are remembered; 10,000 when absent. */
  readonly maxOpen?: number;
}

interface Episode {
  readonly event: LimitEvent;
  readonly key: string;
  readonly startedAt: number;
  endsAt: number;
  facts: EpisodeFacts | undefined;
  /** Not reported yet. */
  hits: number;
  lastHitAt: number;
  reportedAt: number;
  /** Its further hits are of no interest: it counts none, and its end is fixed. */
  readonly isSettled: boolean;
}

type Addition = Pick<Episode, "event" | "key" | "startedAt" | "endsAt" | "hits"> & {
  readonly isSettled: boolean;
  /** Undefined if an episode cannot begin with this. */
  readonly facts: (() => EpisodeFacts) | undefined;
};

const MAX_OPEN = 10_000;
/** Most characters of all keys that are remembered, because clients choose the length of a key. */
const MAX_CHARACTERS = 4 * 1024 * 1024;
/** Of an episode whose algorithm has no windows, after its last hit: a small bucket is full again in no time. */
const SHORTEST_MS = 10_000;
/** The time between the reports of an episode when the options have none. */
export const REPORT_MS = 10_000;
/** When memory is short, an episode without hits for so long is forgotten; the next hit reports it again. */
const IDLE_MS = 60_000;
/** An episode ends if the clock was set back further than this since its last hit: its end may never come. */
const SET_BACK_MS = 1_000;
/** A summary of suppressed episodes comes this often at most. */
const SUMMARY_MS = 10_000;

/**
 * The episodes of a thread: for each key and event, one from the first hit until its window ends, or, without windows,
 * until all is free again and 10 seconds have passed without a further hit. Memory is bounded.
 */
export class LimitEpisodes implements LimitEventSink {
  readonly #options: Required<LimitEpisodesOptions>;
  readonly #open = byEvent<Episode>();
  /** The ends of episodes that were suppressed. */
  readonly #suppressed = byEvent<number>();
  /** The last reports of episodes whose keys have begun others. */
  #ended: LimitReport[] = [];
  #characters = 0;
  /** Episodes that were begun in the current second. */
  readonly #recent = { second: 0, begun: 0 };
  /** Episodes that were suppressed since the last summary, and since when. */
  readonly #unreported = { count: 0, since: 0 };
  /** Episodes that were begun since the start. */
  begun = 0;
  /** Episodes that were suppressed since the start. */
  suppressed = 0;

  constructor(options: LimitEpisodesOptions) {
    this.#options = { maxOpen: MAX_OPEN, reportMs: REPORT_MS, ...options };
  }

  note(facts: readonly LimitFact[], now: number): void {
    for (const fact of facts) this.#add(additionOf(fact, now), now);
  }

  /** Adds what another thread reports. */
  merge(reports: readonly LimitReport[], now: number): void {
    for (const { facts, ...report } of reports) {
      this.#add({ ...report, isSettled: false, facts: facts === undefined ? undefined : () => facts }, now);
    }
  }

  /** Adds episodes that another thread suppressed. */
  addSuppressed(count: number, now: number): void {
    if (count === 0) return;
    if (this.#unreported.count === 0) this.#unreported.since = now;
    this.#unreported.count += count;
    this.suppressed += count;
  }

  /** True if there is nothing to report, now or later. */
  get isEmpty(): boolean {
    return this.#ended.length === 0 && this.#unreported.count === 0 &&
      LIMIT_EVENTS.every((event) => this.#open[event].size === 0);
  }

  /** Takes at most so many reports that are due, or of all that is new when `isLast`. */
  take(now: number, most: number, isLast = false): LimitReport[] {
    const reports = this.#ended.splice(0, most);
    const { reportMs } = this.#options;
    for (const event of LIMIT_EVENTS) {
      const isFull = this.#open[event].size > this.#options.maxOpen / 2;
      for (const episode of this.#open[event].values()) {
        if (reports.length === most) return reports;
        const isOver = now >= episode.endsAt + this.#options.graceMs ||
          episode.lastHitAt - now > SET_BACK_MS;
        if (hasNews(episode, isOver || isLast ? -Infinity : reportMs, now)) {
          reports.push(reportOf(episode, now));
        }
        if (isOver || (isFull && now - episode.lastHitAt >= IDLE_MS)) this.#forget(episode);
      }
    }
    return reports;
  }

  /** Takes the summary of suppressed episodes, if it is due, or if there is anything to say when `isLast`. */
  takeSuppressed(now: number, isLast = false): Suppressed | undefined {
    const count = this.#unreported.count;
    if (count === 0 || (!isLast && now - this.#unreported.since < SUMMARY_MS)) return undefined;
    this.#unreported.count = 0;
    return { count, from: this.#unreported.since, to: now };
  }

  #add(addition: Addition, now: number): void {
    const { event, key, hits, startedAt, endsAt } = addition;
    const open = this.#open[event].get(key);
    // Late reports of other threads belong to the episode that is open.
    if (open !== undefined && (startedAt < open.endsAt || addition.facts === undefined)) {
      open.lastHitAt = now;
      if (open.isSettled) return;
      open.hits += hits;
      open.endsAt = Math.max(open.endsAt, endsAt);
      return;
    }
    if (addition.facts === undefined) return;
    if (open !== undefined) {
      if (hasNews(open, -Infinity, now) && this.#ended.length < this.#options.maxOpen) {
        this.#ended.push(reportOf(open, now));
      }
      this.#forget(open);
    }
    this.#begin({ ...addition, facts: addition.facts }, now);
  }

  #begin(addition: Addition & { readonly facts: () => EpisodeFacts }, now: number): void {
    const { event, key, endsAt } = addition;
    const suppressed = this.#suppressed[event];
    const suppressedUntil = suppressed.get(key);
    if (suppressedUntil !== undefined && addition.startedAt < suppressedUntil) {
      suppressed.set(key, Math.max(suppressedUntil, endsAt));
      return;
    }
    if (suppressedUntil !== undefined) this.#forgetSuppressed(event, key);
    if (this.#mayBegin(key, now)) {
      this.begun++;
      this.#characters += key.length;
      const { startedAt, hits, isSettled } = addition;
      const times = { startedAt, endsAt, lastHitAt: now, reportedAt: now };
      this.#open[event].set(key, { event, key, ...times, hits, isSettled, facts: addition.facts() });
      return;
    }
    this.addSuppressed(1, now);
    if (key.length > MAX_CHARACTERS / 2) return;
    this.#characters += key.length;
    suppressed.set(key, endsAt);
    this.#limitSuppressed();
  }

  #mayBegin(key: string, now: number): boolean {
    const { maxOpen, maxPerSecond } = this.#options;
    const second = Math.floor(now / 1_000);
    if (second !== this.#recent.second) {
      this.#recent.second = second;
      this.#recent.begun = 0;
    }
    const open = LIMIT_EVENTS.reduce((sum, event) => sum + this.#open[event].size, 0);
    if (open >= maxOpen || this.#characters + key.length > 2 * MAX_CHARACTERS) return false;
    return this.#recent.begun++ < maxPerSecond;
  }

  /** Forgets the oldest suppressed keys; their next hits count as further episodes. */
  #limitSuppressed(): void {
    for (const event of LIMIT_EVENTS) {
      for (const key of this.#suppressed[event].keys()) {
        const isFull = this.#suppressed[event].size > this.#options.maxOpen;
        if (!isFull && this.#characters <= MAX_CHARACTERS) break;
        this.#forgetSuppressed(event, key);
      }
    }
  }

  #forgetSuppressed(event: LimitEvent, key: string): void {
    if (this.#suppressed[event].delete(key)) this.#characters -= key.length;
  }

  #forget({ event, key }: Episode): void {
    if (this.#open[event].delete(key)) this.#characters -= key.length;
  }
}

function byEvent<T>(): Readonly<Record<LimitEvent, Map<string, T>>> {
  return { over_limit: new Map(), near_limit: new Map() };
}

function additionOf(fact: LimitFact, now: number): Addition {
  const { event, key, windowEnd, hits, taken } = fact;
  const facts = (freeAt: number) => () => factsOf(fact, freeAt);
  if (windowEnd !== undefined) {
    const endsAt = windowEnd * 1_000;
    // The count may come after the end of the window: another start would be another episode.
    const startedAt = Math.min(now, endsAt - 1);
    const isSettled = event === "near_limit";
    return { event, key, hits, startedAt, endsAt, isSettled, facts: facts(endsAt) };
  }
  const { retryMs = 0, freeMs = 0 } = taken ?? {};
  const freeAt = now + (event === "over_limit" ? retryMs : freeMs);
  const endsAt = now + Math.max(freeMs, SHORTEST_MS);
  return { event, key, hits, startedAt: now, endsAt, isSettled: false, facts: facts(freeAt) };
}

function factsOf(
  { domain, entries, limit, metricKey, isShadow, windowEnd = 1 }: LimitFact,
  freeAt: number,
): EpisodeFacts {
  const { name, rule, events } = limit;
  const redact = events?.redact;
  // The metric key of the request may have values.
  const key = redact === undefined ? metricKey : rule?.metricKey ?? rule?.fullKey ?? "";
  return {
    domain,
    entries: entries.map(({ key, value }) => ({ key, value })),
    rule: { at: events?.at ?? "", metricKey: key },
    limit: { ...amountOf(limit, windowEnd - 1), ...(name === "" ? {} : { name }) },
    isShadow,
    redact,
    freeAt,
  };
}

function hasNews(
  { facts, hits, reportedAt, isSettled }: Episode,
  reportMs: number,
  now: number,
): boolean {
  if (facts !== undefined) return true;
  return !isSettled && hits > 0 && now - reportedAt >= reportMs;
}

/** The report of an episode, which counts as reported then. */
function reportOf(episode: Episode, now: number): LimitReport {
  const { event, key, hits, startedAt, endsAt, facts } = episode;
  episode.facts = undefined;
  episode.hits = 0;
  episode.reportedAt = now;
  return { event, key, hits, startedAt, endsAt, ...(facts === undefined ? {} : { facts }) };
}
