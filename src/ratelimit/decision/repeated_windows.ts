import type { Counted } from "../algorithms/taken.ts";
import type { CurrentLimit, DescriptorStatus } from "../decision.ts";
import { nearLimitThreshold } from "../rules/rule_stats.ts";
import type { RateLimit } from "../rules/rules.ts";
import type { AnyHit, Caller, Counter, CounterCache, CountReceiver } from "./counter_cache.ts";
import { statusOf } from "./decide_count.ts";
import type { PlannedDescriptor } from "./plan.ts";
import { type Answers, areCounted, Uncounted } from "./take_hits.ts";

/** One of several windows whose request was seen before. */
interface RepeatedWindow {
  readonly hit: AnyHit;
  readonly limit: RateLimit;
  /** Hits above this count are near the limit. */
  readonly near: number;
}

/** In place of an error: the answers of several windows, of which some failed. */
export class WindowAnswers {
  readonly answers: Answers;

  constructor(answers: Answers) {
    this.answers = answers;
  }
}

/** The windows of a request that was seen before, with their counters. */
export class RepeatedWindows<Form> {
  readonly forms: ReadonlyMap<CurrentLimit, Form>;
  readonly all: readonly RepeatedWindow[];
  /** One for each window, or one for all that are taken together. */
  readonly #counters: readonly Counter[];

  private constructor(
    all: readonly RepeatedWindow[],
    counters: readonly Counter[],
    forms: ReadonlyMap<CurrentLimit, Form>,
  ) {
    this.all = all;
    this.#counters = counters;
    this.forms = forms;
  }

  /** Undefined if a limit has no form of responses. */
  static of<Form>(
    planned: readonly PlannedDescriptor[],
    cache: CounterCache,
    { formOf, nearLimitRatio }: {
      readonly formOf: (limit: CurrentLimit) => Form | undefined;
      readonly nearLimitRatio: number;
    },
  ): RepeatedWindows<Form> | undefined {
    const all: RepeatedWindow[] = [];
    const forms = new Map<CurrentLimit, Form>();
    for (const { hit, limit } of planned) {
      const form = limit?.current === undefined ? undefined : formOf(limit.current);
      if (hit === undefined || limit?.current === undefined || form === undefined) return undefined;
      const most = limit.conditional?.capacity ?? limit.requestsPerUnit;
      all.push({ hit, limit, near: nearLimitThreshold(most, nearLimitRatio) });
      forms.set(limit.current, form);
    }
    return new RepeatedWindows(all, countersOf(all.map(({ hit }) => hit), cache), forms);
  }

  /** Takes hits in all windows; the receiver gets the counts of all as `windows`, or `WindowAnswers`. */
  take(hits: number, caller: Caller, receiver: CountReceiver): void {
    const taking = new WindowsTaking(this.#counters.length, this.all.length, caller, receiver);
    for (let index = 0; index < this.#counters.length; index++) {
      this.#counters[index]?.take(hits, taking, taking.receiverOf(index));
    }
  }

  /** The status of the tightest window, if hits are within all limits and near none. */
  withinAll(counts: readonly Counted[], hits: number, nowSeconds: number): DescriptorStatus | undefined {
    let tightest: RepeatedWindow | undefined;
    let itsCount: Counted = 0;
    let least = Infinity;
    for (let index = 0; index < this.all.length; index++) {
      const window = this.all[index];
      const count = counts[index];
      if (window === undefined || count === undefined) return undefined;
      const isNumber = typeof count === "number";
      const used = isNumber ? count : count.used;
      const left = isNumber ? window.limit.requestsPerUnit - count : count.available;
      if (isNumber ? count < hits : !count.granted) return undefined;
      if (left < 0 || used > window.near) return undefined;
      if (left >= least) continue;
      least = left;
      tightest = window;
      itsCount = count;
    }
    return tightest === undefined ? undefined : statusOf(tightest, tightest.limit, itsCount, nowSeconds);
  }
}

/** The counts of several windows as those of one counter. */
export function countOfWindows(windows: readonly Counted[]): Counted {
  return { granted: true, used: 0, available: 0, retryMs: 0, freeMs: 0, windows };
}

function countersOf(windows: readonly AnyHit[], cache: CounterCache): Counter[] {
  const [first] = windows;
  if (first?.joint === undefined) return windows.map((hit) => cache.counterOf(hit));
  const { key, joint, perSecond } = first;
  return [cache.counterOf({ key, joint, windows, perSecond })];
}

/** The windows of one call, which is the caller of its hits. */
class WindowsTaking implements Caller {
  readonly hitCount: number;
  readonly call: Caller;
  readonly #answers: (Counted | Uncounted)[] = [];
  readonly #size: number;
  readonly #receiver: CountReceiver;
  #waiting: number;

  constructor(takes: number, size: number, call: Caller, receiver: CountReceiver) {
    this.hitCount = takes;
    this.call = call;
    this.#size = size;
    this.#receiver = receiver;
    this.#waiting = takes;
  }

  get cancelled(): boolean {
    return this.call.cancelled;
  }

  get since(): number | undefined {
    return this.call.since;
  }

  receiverOf(index: number): CountReceiver {
    return {
      counted: (count) => this.#settle(index, count),
      failed: (error) => this.#settle(index, new Uncounted(error)),
    };
  }

  #settle(index: number, answer: Counted | Uncounted): void {
    this.#answers[index] = answer;
    if (--this.#waiting > 0) return;
    const answers = this.hitCount === this.#size ? this.#answers : this.#spread(answer);
    if (areCounted(answers)) this.#receiver.counted(countOfWindows(answers));
    else this.#receiver.failed(new WindowAnswers(answers));
  }

  /** The answer of one counter for each of its windows. */
  #spread(answer: Counted | Uncounted): Answers {
    const windows = answer instanceof Uncounted || typeof answer === "number" ? undefined : answer.windows;
    return windows ?? Array.from({ length: this.#size }, () => answer);
  }
}
