import type { DomainSource } from "../ratelimit/rule_source.ts";
import type { Problem } from "../base/problem.ts";
import type { Rules } from "../ratelimit/rules/rules.ts";

/** Rules as texts for `TextCompiler`, each small enough for one turn of the event loop. */
export type RuleTexts = readonly string[];

/** Takes a load and returns its problems, once valid rules are in force in every thread. */
export type LoadReceiver = (load: RulesLoad) => Promise<readonly Problem[]>;

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
  /** The rules for other threads, where the provider was asked to keep them. */
  readonly texts?: RuleTexts;
  /** Identifies the content of the files; absent for a configuration server. */
  readonly digest?: string;
  /** The first files that differ from those of the previous load; absent for a configuration server. */
  readonly changed?: readonly string[];
}

/**
 * A source of rules. `start` is called once, first. `onLoad` is then called for every attempt, never concurrently; it
 * returns all problems of the load, of which an error means that the load was rejected and the previous rules stay.
 */
export interface RulesProvider {
  start(onLoad: LoadReceiver): void;
  /** Loads again, whether something changed or not. */
  reload(): void;
  /** Stops watching; `onLoad` is not called after it settles. */
  close(): Promise<void>;
}
