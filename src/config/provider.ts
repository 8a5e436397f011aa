import type { DomainSource } from "../ratelimit/rule_source.ts";
import type { Problem } from "../base/problem.ts";
import type { Rules } from "../ratelimit/rules.ts";

/** The result of one attempt to load rules. */
export interface RulesLoad {
  /** Absent when the sources could not be read. */
  readonly sources: readonly DomainSource[] | undefined;
  /** Rules already compiled in another thread, instead of sources. */
  readonly rules?: Rules;
  readonly problems: readonly Problem[];
  /** The version of the configuration server; empty for files. */
  readonly version: string;
  /** Nothing changed since the previous load; sources and problems are empty. */
  readonly isUnchanged?: boolean;
  /** Identifies the content of the files; absent for a configuration server. */
  readonly digest?: string;
}

/**
 * A source of rules. `start` is called once, first. `onLoad` is then called for every attempt, never concurrently; it
 * returns all problems of the load, of which an error means that the load was rejected and the previous rules stay.
 */
export interface RulesProvider {
  start(onLoad: (load: RulesLoad) => readonly Problem[]): void;
  /** Loads again, whether something changed or not. */
  reload(): void;
  /** Stops watching; `onLoad` is not called after it settles. */
  close(): Promise<void>;
}
