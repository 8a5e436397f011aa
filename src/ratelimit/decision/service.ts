import { shownText } from "../../base/byte_text.ts";
import { type Clock, steadyClock } from "../../base/clock.ts";
import { SlicedWork } from "../../base/sliced_work.ts";
import type { Counted } from "../algorithms/taken.ts";
import { type Call, callOf, callOfList, type LoadedRules, ruleCountersOf } from "./call.ts";
import { type AnyHit, type Caller, type CountReceiver, type LocalCache } from "./counter_cache.ts";
import { decide, decisionOf, type Outcome } from "./decide.ts";
import { ALLOWED_UNCOUNTED } from "./decide_count.ts";
import { refusalsOf } from "./decide_windows.ts";
import type { Code, Decision, DescriptorStatus } from "../decision.ts";
import { DecisionTally } from "./decision_tally.ts";
import { BACKEND_ERRORS, CacheError, InvalidRequestError, NoConfigurationError } from "../errors.ts";
import { HitCounter, type HitCounterOptions } from "./hit_counter.ts";
import type { LimitEventSink } from "./limit_events.ts";
import { LocalRefusals } from "./local_refusals.ts";
import { type Plan, planHits, type PlannedDescriptor } from "./plan.ts";
import { planRepeated, type RepeatedResponse } from "./plan_repeated.ts";
import {
  isWithin,
  KeptCounters,
  onlyStatus,
  recordWithin,
  type RepeatedList,
  type RepeatedRequest,
} from "./repeated_request.ts";
import { countOfWindows, WindowAnswers } from "./repeated_windows.ts";
import type { RateLimitRequest } from "../request.ts";
import { RuleCounts } from "./rule_counts.ts";
import { addStats, type RuleStats } from "../rules/rule_stats.ts";
import type { Rules } from "../rules/rules.ts";
import { addRefusals, type RuleCounters, type StatsSink } from "../stats_sink.ts";
import { type Answers, areCounted, callerSince, errorOf, Taking, Uncounted } from "./take_hits.ts";
import { validateRequest } from "./validate.ts";

/** Options of the service. */
interface RateLimitServiceOptions extends HitCounterOptions {
  readonly localCache?: LocalCache | undefined;
  readonly stats: StatsSink;
  /** Receives what rules with events report; absent to discard it. */
  readonly limitEvents?: LimitEventSink | undefined;
  readonly clock: Clock;
  readonly random: () => number;
}

const NO_KEYS: ReadonlySet<string> = new Set();

/** Decides rate limit requests: rules, plan, local cache, counts, decision, statistics. */
export class RateLimitService {
  readonly tally: DecisionTally = new DecisionTally();
  readonly #options: RateLimitServiceOptions;
  readonly #counter: HitCounter;
  readonly #local: LocalRefusals | undefined;
  readonly #kept: KeptCounters;
  readonly #cancelSetBack: () => void;
  readonly #listeners = new Set<(rules: Rules) => void>();
  #loaded: LoadedRules | undefined;
  /** Of the last rules, which may be many. */
  #bookkeeping: SlicedWork | undefined;

  constructor(options: RateLimitServiceOptions) {
    const clock = steadyClock(options.clock);
    this.#options = { ...options, clock };
    this.#cancelSetBack = clock.onSetBack((now) => options.localCache?.dropUsedAfter(now / 1_000));
    this.#counter = new HitCounter(options);
    const { localCache } = options;
    this.#local = localCache === undefined ? undefined : new LocalRefusals(localCache, clock);
    this.#kept = new KeptCounters(options.cache);
  }

  /** Listens to the clock no longer. */
  close(): void {
    this.#cancelSetBack();
  }

  /** Applies the rules to future calls; calls in progress keep theirs. */
  setRules(rules: Rules): void {
    const { stats, clock } = this.#options;
    this.#bookkeeping?.finish();
    const unsorted = stats.loadedRules(rules.metricKeys);
    const counts = new RuleCounts(rules, stats, this.#loaded?.counts);
    const counters = new Array<RuleCounters | undefined>(rules.limits.length).fill(undefined);
    this.#loaded = { rules, counters, counts };
    this.#bookkeeping = new SlicedWork(bookkeeping(unsorted, counts), clock);
    for (const listener of this.#listeners) listener(rules);
  }

  /** Calls the listener with all later rules; returns a function that ends it. */
  onRules(listener: (rules: Rules) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get rules(): Rules | undefined {
    return this.#loaded?.rules;
  }

  get ruleCounts(): RuleCounts | undefined {
    return this.#loaded?.counts;
  }

  /**
   * Decides a request, synchronously if the cache is synchronous. Throws `InvalidRequestError`, `NoConfigurationError`
   * or `CacheError`, each of which is counted.
   */
  shouldRateLimit(request: RateLimitRequest, caller?: Caller): Decision | Promise<Decision> {
    try {
      return this.#decide(request, caller);
    } catch (error) {
      return this.#fail(error);
    }
  }

  #decide(request: RateLimitRequest, caller: Caller | undefined): Decision | Promise<Decision> {
    validateRequest(request);
    const loaded = this.#loaded;
    if (loaded === undefined) throw new NoConfigurationError();
    const { random, policy } = this.#options;
    const nowSeconds = this.nowSeconds();
    const plan = planHits(loaded.rules, request, { nowSeconds, random, policy });
    return this.#count(this.#plannedCall(loaded, plan, nowSeconds), caller);
  }

  #count(call: Call, caller: Caller | undefined): Decision | Promise<Decision> {
    const { clock, policy } = this.#options;
    const timedCaller = policy.stopIncrementWhenOverLimit ? callerSince(clock.elapsed(), caller) : caller;
    const answers = this.#counter.count(call, timedCaller);
    if (!(answers instanceof Promise)) return this.#settle(call, answers, timedCaller);
    return answers.then((after) => this.#settle(call, after, timedCaller));
  }

  #settle(call: Call, answers: Answers, caller: Caller | undefined): Decision | Promise<Decision> {
    return areCounted(answers) ? this.#finish(call, answers) : this.#recover(call, answers, caller);
  }

  /** True if counts are known before `takeRepeated` returns. */
  get isImmediate(): boolean {
    return this.#options.cache.isImmediate;
  }

  /** Plans a request that was decided before and has the same effects each time, if its limit has a form. */
  repeated<Form>(
    request: RateLimitRequest,
    formOf: (response: RepeatedResponse) => Form | undefined,
  ): RepeatedRequest<Form> | RepeatedList | undefined {
    const loaded = this.#loaded;
    if (loaded === undefined) return undefined;
    const nowSeconds = this.nowSeconds();
    return planRepeated(loaded, request, { ...this.#options, counters: this.#kept, formOf, nowSeconds });
  }

  /** The current time, in seconds since the epoch. */
  nowSeconds(): number {
    return Math.floor(this.#options.clock.now() / 1000);
  }

  /** Decides a current request that is a list. */
  decideList(list: RepeatedList, caller: Caller): Decision | Promise<Decision> {
    const loaded = this.#loaded;
    if (loaded === undefined) throw new NoConfigurationError();
    const { all } = list;
    const counters: RuleCounters[] = [];
    for (const one of all) {
      const ofOne = ruleCountersOf(loaded, one, this.#options.stats, list.plan);
      ofOne.totalHits += one.hits;
      counters.push(ofOne);
    }
    if (this.#local !== undefined) {
      const call = callOfList(list, counters);
      const nowSeconds = this.nowSeconds();
      for (const one of all) this.#addHit(call, one.hit, this.#local.of(one.hit, one, nowSeconds));
      if (call.hits.length < all.length) return this.#count(call, caller);
    }
    const taking = new Taking(all.length, all.length, caller);
    for (let index = 0; index < all.length; index++) {
      const counter = list.counters[index];
      if (counter !== undefined) taking.take({ counter, size: 1 }, all[index]?.hits ?? 0, index);
    }
    const answers = taking.answers();
    if (!(answers instanceof Promise)) return this.#settleList(list, counters, answers, caller);
    return answers.then((after) => this.#settleList(list, counters, after, caller));
  }

  #settleList(
    list: RepeatedList,
    counters: RuleCounters[],
    answers: Answers,
    caller: Caller,
  ): Decision | Promise<Decision> {
    if (!areCounted(answers) || !list.isWithin(answers)) {
      const call = callOfList(list, counters);
      for (const { hit } of list.all) this.#addHit(call, hit, undefined);
      return this.#settle(call, answers, caller);
    }
    const { policy } = this.#options;
    const nowSeconds = this.nowSeconds();
    const { nearLimitRatio } = policy;
    const statuses = list.recordWithin(counters, answers, { nearLimitRatio, nowSeconds });
    this.tally.total++;
    return decisionOf(list.plan, statuses, "OK", { policy, nowSeconds, windows: undefined });
  }

  /** Takes the hits of a current request; call `decideRepeated` or `recoverRepeated` with what the receiver gets. */
  takeRepeated(repeated: RepeatedRequest, caller: Caller, receiver: CountReceiver): void {
    const { hit, hits, counters, counter } = repeated;
    counters.totalHits += hits;
    if (repeated.windows !== undefined) return this.#takeWindows(repeated, caller, receiver);
    const known = this.#local?.of(hit, repeated, this.nowSeconds());
    if (known !== undefined) receiver.counted(known);
    else counter.take(hits, caller, receiver);
  }

  /** Takes the hits of all windows, or passes on that one of them is known to refuse them. */
  #takeWindows({ plan, hits, windows }: RepeatedRequest, caller: Caller, receiver: CountReceiver): void {
    if (this.#local !== undefined) {
      const call = { counts: [], hits: [], owners: [] };
      this.#addWindows(call, plan.counted, this.nowSeconds());
      if (call.hits.length === 0) return receiver.counted(countOfWindows(call.counts));
    }
    windows?.take(hits, caller, receiver);
  }

  /** The code of a decision with this status only. */
  overallCode({ code }: DescriptorStatus): Code {
    return this.#options.policy.shadowMode ? "OK" : code;
  }

  /** Decides a repeated request by its count. */
  decideRepeated(repeated: RepeatedRequest, count: Counted, nowSeconds: number): DescriptorStatus {
    if (repeated.windows !== undefined) return this.#decideWindows(repeated, count, nowSeconds);
    if (!isWithin(repeated, count)) return onlyStatus(this.#finish(callOf(repeated), [count]));
    this.tally.total++;
    const { nearLimitRatio } = this.#options.policy;
    return recordWithin(repeated, repeated.counters, count, { nearLimitRatio, nowSeconds });
  }

  #decideWindows(repeated: RepeatedRequest, count: Counted, nowSeconds: number): DescriptorStatus {
    const { hits, counters, windows } = repeated;
    const counts = typeof count === "number" ? [] : count.windows ?? [];
    const status = windows?.withinAll(counts, hits, nowSeconds);
    if (status === undefined) return onlyStatus(this.#finish(callOf(repeated), counts));
    counters.withinLimit += hits;
    this.tally.total++;
    return status;
  }

  /** Decides a repeated request that the cache did not count, if the failure modes allow it. */
  async recoverRepeated(
    repeated: RepeatedRequest,
    error: unknown,
    caller: Caller,
  ): Promise<DescriptorStatus> {
    const answers = error instanceof WindowAnswers ? error.answers : [new Uncounted(error)];
    return onlyStatus(await this.#recover(callOf(repeated), answers, caller));
  }

  /** Counts the total hits even if the cache fails later, and leaves out keys that the local cache knows. */
  #plannedCall(loaded: LoadedRules, plan: Plan, nowSeconds: number): Call {
    const { stats } = this.#options;
    const { descriptors } = plan;
    const call: Call = { plan, counters: [], counts: [], hits: [], owners: [], isReading: false };
    if (!plan.domainKnown) stats.rule(shownText(plan.request.domain)).domainNotFound += descriptors.length;
    for (let index = 0; index < descriptors.length; index++) {
      const planned = descriptors[index];
      const hit = planned?.hit;
      call.counters.push(undefined);
      if (planned === undefined || hit === undefined) {
        call.counts.push(0);
        continue;
      }
      const counters = ruleCountersOf(loaded, planned, stats, plan);
      call.counters[index] = counters;
      if (!planned.negative) counters.totalHits += planned.hits;
      if (planned.windows !== undefined) this.#addWindows(call, planned.windows, nowSeconds);
      else this.#addHit(call, hit, this.#knownRefusal(planned, nowSeconds));
    }
    return call;
  }

  #addHit(call: Pick<Call, "counts" | "hits" | "owners">, hit: AnyHit, known: Counted | undefined): void {
    if (known === undefined) {
      call.hits.push(hit);
      call.owners.push(call.counts.length);
    }
    call.counts.push(known ?? 0);
  }

  /** A call that one window is known to refuse is counted in none. */
  #addWindows(
    call: Pick<Call, "counts" | "hits" | "owners">,
    windows: readonly PlannedDescriptor[],
    nowSeconds: number,
  ): void {
    const known = windows.map((planned) => this.#knownRefusal(planned, nowSeconds));
    const isRefused = known.some((refusal) => refusal !== undefined);
    for (const [index, { hit }] of windows.entries()) {
      if (hit !== undefined) {
        this.#addHit(call, hit, isRefused ? known[index] ?? ALLOWED_UNCOUNTED : undefined);
      }
    }
  }

  #knownRefusal(planned: PlannedDescriptor, nowSeconds: number): Counted | undefined {
    const { negative, hit } = planned;
    return negative || hit === undefined ? undefined : this.#local?.of(hit, planned, nowSeconds);
  }

  /** Decides a call after the cache failed, if the failure modes allow it. */
  async #recover(call: Call, answers: Answers, caller: Caller | undefined): Promise<Decision> {
    const error = errorOf(answers);
    // Unsent hits of a cancelled caller are no failure of the cache.
    if (caller?.cancelled === true) throw error;
    const { service } = this.#options.stats;
    try {
      const { counts, modes } = await this.#counter.recover(call, answers, caller);
      const isOverload = error instanceof CacheError && error.isOverload;
      if (!isOverload) this.#countError(error);
      const uncountedKeys = new Set<string>();
      /** The entries of descriptors with several windows, which count once. */
      const uncountedLists = new Set<unknown>();
      for (const [position, mode] of modes.entries()) {
        if (mode === undefined) continue;
        uncountedKeys.add(call.hits[position]?.key ?? "");
        const { limit, entries } = call.plan.counted[call.owners[position] ?? 0] ?? {};
        if (isOverload || uncountedLists.has(entries)) continue;
        service.cacheFailure[mode]++;
        if (limit?.windows !== undefined) uncountedLists.add(entries);
      }
      return this.#finish(call, counts, uncountedKeys);
    } catch (failure) {
      return this.#fail(failure);
    }
  }

  /** The local cache must not remember `uncountedKeys`, which the shared cache did not count. */
  #finish(call: Call, after: readonly Counted[], uncountedKeys = NO_KEYS): Decision {
    const { policy } = this.#options;
    const nowSeconds = this.nowSeconds();
    const { owners, counts } = call;
    for (let position = 0; position < owners.length; position++) {
      counts[owners[position] ?? 0] = after[position] ?? 0;
    }
    const outcome = decide(call.plan, counts, policy, nowSeconds);
    this.#record(call, outcome, nowSeconds);
    this.#local?.remember(call.plan, outcome.overLimitKeys, nowSeconds, uncountedKeys);
    if (outcome.facts.length > 0) this.#options.limitEvents?.note(outcome.facts, this.#options.clock.now());
    return outcome.decision;
  }

  #record(call: Call, outcome: Outcome, nowSeconds: number): void {
    this.tally.total++;
    if (outcome.decision.overallCode === "OVER_LIMIT") this.tally.overLimit++;
    if (outcome.globalShadow) this.#options.stats.service.globalShadowMode++;
    for (let index = 0; index < outcome.stats.length; index++) {
      const stats = outcome.stats[index];
      const counters = call.counters[index];
      if (stats === undefined || counters === undefined) continue;
      addStats(counters, stats);
      const windows = outcome.windows?.[index];
      if (windows !== undefined && stats.overLimit > 0) addRefusals(counters, refusalsOf(windows));
      const planned = call.plan.descriptors[index];
      if (planned === undefined) continue;
      // Not those of the rules it was planned by: a reload continues their sums in its own.
      this.#loaded?.counts.add(planned, stats);
      if (stats.overLimit > 0 && planned.hit !== undefined) {
        this.#noteOverLimit(planned.hit, planned.windows !== undefined, stats, nowSeconds);
      }
    }
  }

  /** Without the prefix and the start of the window; of several windows, what is in the tag. */
  #noteOverLimit(
    { key }: AnyHit,
    hasTag: boolean,
    { overLimit: hits }: RuleStats,
    nowSeconds: number,
  ): void {
    const start = this.#options.policy.cacheKeyPrefix.length + (hasTag ? 1 : 0);
    const end = key.lastIndexOf(hasTag ? "}" : "_");
    this.tally.overLimitKeys.add({ text: key, start, end, hits, nowSeconds });
  }

  #fail(error: unknown): never {
    if (error instanceof CacheError) this.#options.stats.service.cacheFailure.error++;
    this.#countError(error);
    throw error;
  }

  #countError(error: unknown): void {
    const { service } = this.#options.stats;
    const hasBackend = error instanceof CacheError || error instanceof InvalidRequestError;
    const backend = hasBackend ? error.backend : undefined;
    service[backend === undefined ? "serviceError" : BACKEND_ERRORS[backend]]++;
  }
}

function* bookkeeping(unsorted: Iterable<void>, counts: RuleCounts): Generator<void> {
  yield* unsorted;
  yield* counts.adopt();
}
