import type { Clock } from "../base/clock.ts";
import { busiest } from "./busiest.ts";

/** A component, and what is to be said of it. */
export interface ShownComponent {
  readonly name: string;
  readonly reason: string;
}

/** A rule and what was counted for it. */
export interface ShownRule {
  readonly name: string;
  readonly limit: string;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  readonly hits: number;
  readonly overLimit: number;
  readonly nearLimit: number;
  readonly withinLimit: number;
}

/** The rules in force. */
export interface ShownRules {
  readonly count: number;
  hits(index: number): number;
  at(index: number): ShownRule | undefined;
}

/** A key that is often over its limit. */
export interface ShownKey {
  readonly key: string;
  readonly count: number;
  readonly errorAtMost: number;
}

/** How loading of the configuration went. */
export interface ShownConfiguration {
  /** When the rules in force came, in milliseconds since the epoch; null before the first. */
  readonly loadedAt: number | null;
  readonly version: string;
  /** How often it was loaded, and how often that failed. */
  readonly loaded: number;
  readonly failed: number;
  /** Why the last load failed; null where it did not. */
  readonly error: string | null;
}

/** Where a snapshot comes from. */
export interface SnapshotSources {
  readonly clock: Pick<Clock, "now" | "elapsed">;
  /** What stays the same as long as the service runs. */
  readonly constants: {
    readonly version: string;
    readonly startedAt: number;
    readonly administration: boolean;
    readonly webhooks: boolean;
    readonly debugToken: boolean;
  };
  readonly health: { failing(): readonly ShownComponent[]; noted(): readonly ShownComponent[] };
  readonly decisions: () => { readonly total: number; readonly overLimit: number };
  readonly rules: () => ShownRules;
  readonly topOverLimited: (limit: number) => readonly ShownKey[];
  readonly configuration: () => ShownConfiguration;
}

const MAX_RULES = 200;
const MAX_KEYS = 20;
/** Longer names and texts are cut. */
const MAX_TEXT = 1_000;
/** Rates over a longer time say nothing of now. */
const MAX_INTERVAL_MS = 5_000;

interface Counted {
  readonly at: number;
  readonly total: number;
  readonly overLimit: number;
}

/** Makes what the web page shows, and compares it with the time before. */
export class Snapshots {
  readonly #sources: SnapshotSources;
  #before: Counted | undefined;

  constructor(sources: SnapshotSources) {
    this.#sources = sources;
  }

  /** How the service is now. Rates are over the time since the last snapshot; null where that is long ago. */
  make(): Record<string, unknown> {
    const { clock, constants, health, rules, topOverLimited, configuration } = this.#sources;
    const { version, startedAt, ...flags } = constants;
    const failing = health.failing();
    const shown = rules();
    const now = configuration();
    return {
      at: Math.round(clock.now()),
      version,
      startedAt,
      health: {
        healthy: failing.length === 0,
        failing: failing.map(({ name, reason }) => ({ component: name, reason: cut(reason) })),
        noted: health.noted().map(({ name, reason }) => ({ component: name, note: cut(reason) })),
      },
      decisions: this.#decisions(),
      rules: rulesOf(shown),
      rulesTotal: shown.count,
      topOverLimited: topOverLimited(MAX_KEYS).map(({ key, count, errorAtMost }) => ({
        key,
        count: Math.round(count),
        errorAtMost: Math.ceil(errorAtMost),
      })),
      configuration: { ...now, version: cut(now.version), error: now.error === null ? null : cut(now.error) },
      ...flags,
    };
  }

  #decisions(): Record<string, number | null> {
    const { clock, decisions } = this.#sources;
    const { total, overLimit } = decisions();
    const before = this.#before;
    const at = clock.elapsed();
    this.#before = { at, total, overLimit };
    const passed = before === undefined ? 0 : at - before.at;
    if (before === undefined || passed <= 0 || passed > MAX_INTERVAL_MS) {
      return { total, overLimit, perSecond: null, overLimitShare: null };
    }
    const more = total - before.total;
    return {
      total,
      overLimit,
      perSecond: rounded(more * 1_000 / passed),
      overLimitShare: more === 0 ? null : rounded((overLimit - before.overLimit) / more),
    };
  }
}

function rulesOf(rules: ShownRules): ShownRule[] {
  return busiest(rules.count, (index) => rules.hits(index), MAX_RULES).flatMap((index) => {
    const rule = rules.at(index);
    return rule === undefined ? [] : [{ ...rule, name: cut(rule.name) }];
  });
}

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT - 1)}…`;
}

function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
