import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { NewEvent } from "../model/records.ts";
import {
  backlogPosition,
  countBacklog,
  endpointsAmong,
  failOverBacklog,
} from "../store/operations/backlog.ts";
import { PORTION } from "../store/operations/removals.ts";
import type { WebhookStore } from "../store/store.ts";

/** Options of `Backlogs`. */
interface BacklogsOptions {
  readonly store: Pick<WebhookStore, "read" | "write">;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly logger: Logger;
  /** A backlog with as many open deliveries is full. */
  readonly maxBacklog: number;
}

/** A measured backlog. */
interface Backlog {
  readonly open: number;
  /** The newest delivery of the store at that time. */
  readonly at: number;
  /** By the clock's `elapsed`. */
  readonly measuredAt: number;
}

/** A round counts for so long, and the next one begins after this many times what it took. */
const ROUND_MS = 50;
const PAUSE_SHARE = 19;
/** Intervals of counts: of a backlog from half of the bound on, and of all. */
const NEAR_MS = 5_000;
const FAR_MS = 300_000;
/** Most portions of deliveries that fail in one round, so that others can write in between. */
const MAX_PORTIONS = 10;

/**
 * Finds endpoints with a full backlog. To count the open deliveries of an endpoint takes longer the more there are, so
 * one is counted only when enough deliveries were created since the last count to matter, by any instance.
 */
export class Backlogs {
  readonly #options: BacklogsOptions;
  readonly #known = new Map<string, Backlog>();
  /** The full ones, with the newest delivery of the store when they were found to be full. */
  readonly #full = new Map<string, number>();
  /** By the clock's `elapsed`. */
  #nextAt = -Infinity;

  constructor(options: BacklogsOptions) {
    this.#options = options;
  }

  /** Endpoints with a full backlog, as last measured. */
  get full(): ReadonlySet<string> {
    return new Set(this.#full.keys());
  }

  /** True if there are endpoints with a full backlog. */
  get isAnyFull(): boolean {
    return this.#full.size > 0;
  }

  /** The largest known backlog. */
  get largest(): number {
    return this.#known.values().reduce((most, { open }) => Math.max(most, open), 0);
  }

  /** Those endpoints with a full backlog that an event would go to. */
  async fullFor(event: NewEvent): Promise<readonly string[]> {
    return !this.isAnyFull ? [] : await this.#options.store.read(endpointsAmong, event, this.full);
  }

  /** Counts the backlogs that may have become full, or no longer are. */
  async measure(): Promise<void> {
    const { store, clock, maxBacklog } = this.#options;
    const begun = clock.elapsed();
    if (begun < this.#nextAt) return;
    const { latest, endpointIds } = await store.read(backlogPosition);
    this.#forgetAllBut(endpointIds);
    for (const id of this.#due(endpointIds, latest)) {
      if (clock.elapsed() - begun >= ROUND_MS) break;
      this.#note(id, await store.read(countBacklog, id, maxBacklog), latest);
    }
    const end = clock.elapsed();
    this.#nextAt = end + PAUSE_SHARE * (end - begun);
  }

  /**
   * Fails deliveries to endpoints with a full backlog whose events are not refused: those of the service itself, which
   * must not fail what causes them.
   */
  async failExcess(): Promise<void> {
    const { store, clock, newId } = this.#options;
    for (const [endpointId, after] of this.#full) {
      for (let portions = 0; portions < MAX_PORTIONS; portions++) {
        const failed = await store.write(failOverBacklog, { endpointId, after, now: clock.now(), newId });
        if (failed < PORTION) break;
      }
    }
  }

  #forgetAllBut(endpointIds: readonly string[]): void {
    const existing = new Set(endpointIds);
    for (const id of this.#known.keys()) {
      if (existing.has(id)) continue;
      this.#known.delete(id);
      this.#full.delete(id);
    }
  }

  /** The endpoints to count, those first that may have become full, and then those that were not counted for longest. */
  #due(endpointIds: readonly string[], latest: number): readonly string[] {
    const { clock, maxBacklog } = this.#options;
    const now = clock.elapsed();
    const due = endpointIds.flatMap((id) => {
      const { open, at, measuredAt } = this.#known.get(id) ?? NOT_MEASURED;
      const isNear = open >= maxBacklog / 2;
      const mayHaveGrown = open + latest - at >= (isNear ? maxBacklog : maxBacklog / 2);
      const isUrgent = !this.#full.has(id) && mayHaveGrown;
      const isOld = now - measuredAt >= (isNear ? NEAR_MS : FAR_MS);
      return isUrgent || isOld ? [{ id, isUrgent, measuredAt }] : [];
    });
    return due
      .sort((a, b) => Number(b.isUrgent) - Number(a.isUrgent) || a.measuredAt - b.measuredAt)
      .map(({ id }) => id);
  }

  #note(id: string, open: number, latest: number): void {
    const { clock, logger, maxBacklog } = this.#options;
    this.#known.set(id, { open, at: latest, measuredAt: clock.elapsed() });
    if (open < maxBacklog) {
      if (this.#full.delete(id)) logger.info("Backlog of an endpoint has room again", { endpoint: id, open });
    } else if (!this.#full.has(id)) {
      this.#full.set(id, latest);
      logger.warning("Backlog of an endpoint is full; refusing its events", { endpoint: id, maxBacklog });
    }
  }
}

/** As if it had been empty before the first delivery. */
const NOT_MEASURED: Backlog = { open: 0, at: 0, measuredAt: -Infinity };
