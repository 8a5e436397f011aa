import type { DomainSource } from "../ratelimit/rule_source.ts";
import type { Problem } from "../base/problem.ts";
import type { Rules } from "../ratelimit/rules.ts";

/** What a provider found at one attempt to load: sources, or the problems that kept it from them. */
export interface RulesLoad {
  /** Absent when the sources could not be read at all. */
  readonly sources: readonly DomainSource[] | undefined;
  /** What was made of the sources already, in another thread; the sources are absent then. */
  readonly rules?: Rules;
  readonly problems: readonly Problem[];
  /** What the configuration server calls this version; empty for files. */
  readonly version: string;
  /** Everything is as it was at the load before, and is not told again: sources and problems are empty. */
  readonly isUnchanged?: boolean;
  /** A text that differs where the files that were read differ; absent for a configuration server. */
  readonly digest?: string;
}

/**
 * Where rules come from. `start` is called once, before anything else. `onLoad` is then called for
 * the first attempt and for each later one, never twice at once; it answers every problem of the
 * load, and one that is an error means that the load was refused and the rules before it stay.
 */
export interface RulesProvider {
  start(onLoad: (load: RulesLoad) => readonly Problem[]): void;
  /** Loads again, whether something changed or not. */
  reload(): void;
  /** Stops watching; `onLoad` is not called any more once it settles. */
  close(): Promise<void>;
}
