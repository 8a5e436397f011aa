import { MemoryCache } from "../../src/cache/memory_cache.ts";
import { OverLimitCache } from "../../src/cache/over_limit_cache.ts";
import { readRuleFile } from "../../src/config/rule_file.ts";
import type { CounterCache } from "../../src/ratelimit/decision/counter_cache.ts";
import type { LimitEventSink } from "../../src/ratelimit/decision/limit_events.ts";
import { PLAIN_POLICY, type Policy } from "../../src/ratelimit/decision/policy.ts";
import { type CompileOptions, compileRules } from "../../src/ratelimit/rules/compile_rules.ts";
import type { Rules } from "../../src/ratelimit/rules/rules.ts";
import { type Problem, problemText } from "../../src/base/problem.ts";
import { RateLimitService } from "../../src/ratelimit/decision/service.ts";
import { StatsStore } from "../../src/stats/store.ts";
import { oneSourcePerDomain } from "../../src/settings/rule_support.ts";
import { FakeClock } from "./fake_clock.ts";

export { PLAIN_POLICY };

/** Rules of the files, or the problems that keep them from being rules. */
export function loadRules(
  files: Readonly<Record<string, string>>,
  mergeDomains = false,
  options: CompileOptions = {},
): { rules: Rules | undefined; problems: Problem[] } {
  const read = Object.entries(files).sort().map(([name, text]) => readRuleFile(name, text));
  const sources = read.flatMap(({ source }) => source === undefined ? [] : [source]);
  const problems = read.flatMap((file) => file.problems);
  const compiled = compileRules(sources, {
    ...options,
    oneSourcePerDomain: oneSourcePerDomain(mergeDomains),
  });
  const all = [...problems, ...compiled.problems];
  return {
    rules: all.some(({ severity }) => severity === "error") ? undefined : compiled.rules,
    problems: all,
  };
}

/** The same; throws when there are no rules. */
export function rulesOf(files: Readonly<Record<string, string>>, options: CompileOptions = {}): Rules {
  const { rules, problems } = loadRules(files, false, options);
  if (rules === undefined) throw new Error(problems.map(problemText).join("\n"));
  return rules;
}

/** Options of a service fixture. */
export interface ServiceFixtureOptions {
  readonly files: Readonly<Record<string, string>>;
  readonly policy?: Partial<Policy>;
  readonly localCacheBytes?: number;
  /** The embedded cache when absent; closed with the fixture. */
  readonly cache?: CounterCache;
  /** Creates the cache, where it needs the clock. */
  readonly createCache?: (clock: FakeClock) => CounterCache;
  /** Seconds since the epoch. */
  readonly at?: number;
  readonly limitEvents?: LimitEventSink;
}

/** A decision service on its own, with a clock that stands still. */
export class ServiceFixture implements AsyncDisposable {
  readonly clock: FakeClock;
  readonly cache: CounterCache;
  /** Counts where `local` is to when the cache fails. */
  readonly fallback: MemoryCache;
  readonly stats = new StatsStore(1_000);
  readonly service: RateLimitService;

  constructor(options: ServiceFixtureOptions) {
    this.clock = new FakeClock((options.at ?? 1_700_000_000) * 1000);
    this.cache = options.cache ?? options.createCache?.(this.clock) ??
      new MemoryCache({ maxKeys: 1_000, clock: this.clock });
    this.fallback = new MemoryCache({ maxKeys: 1_000, clock: this.clock });
    const bytes = options.localCacheBytes ?? 0;
    this.service = new RateLimitService({
      cache: this.cache,
      fallback: this.fallback,
      localCache: bytes > 0 ? new OverLimitCache(bytes) : undefined,
      stats: this.stats,
      limitEvents: options.limitEvents,
      policy: { ...PLAIN_POLICY, ...options.policy },
      clock: this.clock,
      random: () => 0.5,
    });
    this.service.setRules(rulesOf(options.files, { calendarMonths: options.policy?.calendarMonths }));
  }

  /** Every counter that is not zero. */
  nonZeroStats(): Record<string, number> {
    return Object.fromEntries([...this.stats.counters()].filter(([, value]) => value !== 0));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cache.close();
    await this.fallback.close();
  }
}
