import { basename, isAbsolute } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { Health } from "../base/health.ts";
import { errorTexts, type Problem, problemsInOrder, problemText } from "../base/problem.ts";
import { SlicedWork } from "../base/sliced_work.ts";
import { addSources, RulesBuilder } from "../ratelimit/rules/compile_rules.ts";
import { checkSources } from "../ratelimit/rules/rule_check.ts";
import type { Rules } from "../ratelimit/rules/rules.ts";
import type { Logger } from "../base/log.ts";
import { ruleTexts } from "./load_parts.ts";
import type { RulesLoad, RulesProvider, RuleTexts } from "./provider.ts";

interface StartRulesOptions {
  readonly provider: RulesProvider;
  /** As in the checks of sources. */
  readonly oneSourcePerDomain?: string | undefined;
  /** As in the compilation of sources. */
  readonly calendarMonths?: boolean | undefined;
  /** Applies valid rules; settles once they are in force. */
  readonly onRules: (accepted: AcceptedRules) => void | Promise<void>;
  /** True if accepted rules contain their texts. */
  readonly keepsTexts?: boolean;
  /** Called with every load that differs from the previous one. */
  readonly onConcluded?: ((end: ConcludedLoad) => void) | undefined;
  readonly counters: { loadSucceeded(): void; loadFailed(): void };
  /** Receives the component `config`, which is degraded while the last load is rejected. */
  readonly health: Pick<Health, "set" | "degrade">;
  /** True if the component is unhealthy without rules. */
  readonly requiresRules: boolean;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Rules that are to be applied. */
export interface AcceptedRules {
  readonly rules: Rules;
  /** For other threads, where they are kept. */
  readonly texts: RuleTexts;
  /** Empty for files. */
  readonly version: string;
}

/** A load that was accepted or rejected. */
export interface ConcludedLoad {
  /** Undefined when it was rejected. */
  readonly rules: Rules | undefined;
  readonly version: string;
  readonly problems: readonly Problem[];
  /** True if there are rules in force. */
  readonly hasRules: boolean;
}

/** The result of an attempt to load. */
export interface LoadResult {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly ok: boolean;
  readonly problems: readonly Problem[];
  /** The first files that changed. */
  readonly changed: readonly string[];
  /** Empty for files. */
  readonly version: string;
  /** The number of limits of the rules; 0 for a rejected load. */
  readonly limits: number;
}

/** Rules that are kept up to date. */
interface RulesLoader {
  /** Settles with the first valid rules; stays pending if there are none. */
  readonly firstRules: Promise<void>;
  /** The last attempts, the newest first. */
  loads(): readonly LoadResult[];
  /** Stops loading and the provider. */
  close(): Promise<void>;
}

const REPEAT_MS = 30_000;
/** Attempts that are remembered, and the problems of each but the last. */
const MAX_LOADS = 10;
const MAX_KEPT_PROBLEMS = 10;
/** Errors of one load that the health shows. */
const MAX_SHOWN_ERRORS = 5;
/** Problems of one load that are logged, one line each. */
const MAX_LOGGED = 100;

/** Starts the provider, compiles every load, and applies valid rules. */
export function startRules(options: StartRulesOptions): RulesLoader {
  const { provider, health } = options;
  const first = Promise.withResolvers<void>();
  let loads: readonly LoadResult[] = [];
  let outcome = NOTHING;
  let hasRules = false;
  let cancelRepeat = () => {};
  let compiling: SlicedWork | undefined;

  health.set("config", !options.requiresRules, "no rate limit configuration loaded");
  const conclude = async (load: RulesLoad) => {
    const { rules, texts, problems } = outcome;
    const { version, changed = [] } = load;
    const ok = rules !== undefined;
    const limits = rules?.limits.length ?? 0;
    const [previous] = loads;
    loads = [
      { at: options.clock.now(), ok, problems, changed, version, limits },
      ...loads.slice(0, MAX_LOADS - 1).map(shortened),
    ];
    logProblems(problems, options.logger);
    if (rules === undefined) {
      options.counters.loadFailed();
      const meanwhile = hasRules ? "the previous rules stay" : "there are no rules yet";
      health.degrade("config", healthErrors(problems).map((text) => `rules rejected, ${meanwhile}: ${text}`));
      logRejected(problems, hasRules, options.logger);
      if (!hasRules) cancelRepeat = repeatLog(problems, options);
    } else {
      const loaded = { isAfterRejected: previous?.ok === false, hadRules: hasRules };
      hasRules = true;
      const accepted = { rules, texts, version };
      await options.onRules(accepted);
      noteAccepted(accepted, loaded, options);
      first.resolve();
    }
    if (load.isUnchanged !== true) options.onConcluded?.({ rules, version, problems, hasRules });
    return problems;
  };
  provider.start(async (load) => {
    cancelRepeat();
    if (load.isUnchanged !== true) {
      // If compiling throws, a later unchanged load must not restore the outcome before.
      outcome = NOTHING;
      outcome = await compiledLoad(load, options, (work) => compiling = work);
    }
    return await conclude(load);
  });

  return {
    firstRules: first.promise,
    loads: () => loads,
    async close() {
      compiling?.cancel();
      await provider.close();
      cancelRepeat();
    },
  };
}

function shortened(load: LoadResult): LoadResult {
  return { ...load, problems: load.problems.slice(0, MAX_KEPT_PROBLEMS) };
}

interface Outcome {
  readonly rules: Rules | undefined;
  readonly texts: RuleTexts;
  readonly problems: readonly Problem[];
}

const NOTHING: Outcome = { rules: undefined, texts: [], problems: [] };

async function compiledLoad(
  load: RulesLoad,
  { oneSourcePerDomain, calendarMonths, keepsTexts = false, clock }: StartRulesOptions,
  onWork: (work: SlicedWork) => void,
): Promise<Outcome> {
  const { rules, sources, texts = [], problems: known } = load;
  if (rules !== undefined) return { rules, texts, problems: known };
  if (sources === undefined) return { ...NOTHING, problems: problemsInOrder(known) };
  // Checked even with known problems, so that all problems are reported together.
  const problems = problemsInOrder([...known, ...checkSources(sources, { oneSourcePerDomain })]);
  if (problems.some(({ severity }) => severity === "error")) return { ...NOTHING, problems };
  const builder = new RulesBuilder();
  const work = new SlicedWork(addSources(builder, sources, { calendarMonths }), clock);
  onWork(work);
  if (!work.isDone) await work.ended;
  return {
    rules: builder.finish(),
    texts: keepsTexts ? ruleTexts(sources, { calendarMonths }) : [],
    problems,
  };
}

function noteAccepted(
  { rules, version }: AcceptedRules,
  { isAfterRejected, hadRules }: { readonly isAfterRejected: boolean; readonly hadRules: boolean },
  { counters, health, requiresRules, logger }: StartRulesOptions,
): void {
  const { domainCount } = rules;
  const isHealthy = domainCount > 0 || !requiresRules;
  counters.loadSucceeded();
  health.set("config", isHealthy, "the rate limit configuration has no domain");
  health.degrade("config", []);
  const fields = { domains: domainCount, limits: rules.limits.length, version };
  const message = isAfterRejected && hadRules ? "Rules loaded again" : "Rules loaded";
  logger.info(message, fields);
}

/**
 * The first errors of a rejected load, for the health: with the names of their files, but not the folders above, because
 * everyone may ask for it.
 */
export function healthErrors(problems: readonly Problem[]): string[] {
  const named = problems.map((one) => ({ ...one, at: isAbsolute(one.at) ? basename(one.at) : one.at }));
  return errorTexts(named, MAX_SHOWN_ERRORS);
}

function logRejected(problems: readonly Problem[], hasRules: boolean, logger: Logger): void {
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const rest = hasRules ? "keeping the previous rules" : "waiting for valid rules";
  logger.error(`Rules rejected; ${rest}`, { errors });
}

/** Logs the first problems in their order; errors take precedence over warnings. */
function logProblems(problems: readonly Problem[], logger: Logger): void {
  const ofSeverity = (severity: Problem["severity"]) => problems.filter((one) => one.severity === severity);
  const logged = new Set([...ofSeverity("error"), ...ofSeverity("warning")].slice(0, MAX_LOGGED));
  for (const problem of problems) {
    if (!logged.has(problem)) continue;
    if (problem.severity === "error") logger.error(problemText(problem));
    else logger.warning(problemText(problem));
  }
  const more = problems.length - logged.size;
  if (more > 0) logger.warning(`${more} more problems not logged; 'weir check' shows those of files`);
}

/** Logs the problems periodically as long as the service waits for its first rules. */
function repeatLog(problems: readonly Problem[], options: StartRulesOptions): () => void {
  let cancel = () => {};
  const schedule = () => {
    cancel = options.clock.after(REPEAT_MS, () => {
      logProblems(problems, options.logger);
      logRejected(problems, false, options.logger);
      schedule();
    });
  };
  schedule();
  return () => cancel();
}
