import type { Counted } from "../algorithms/taken.ts";
import type { CurrentLimit, DescriptorStatus } from "../decision.ts";
import { nearLimitThreshold } from "../rules/rule_stats.ts";
import type { RateLimit } from "../rules/rules.ts";
import type { AnyHit, Caller, CounterCache, CountReceiver } from "./counter_cache.ts";
import { statusOf } from "./decide_count.ts";
import type { PlannedDescriptor } from "./plan.ts";
import { type Answers, areCounted, countersOf, type HitsCounter, Taking } from "./take_hits.ts";

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
  readonly #counters: readonly HitsCounter[];

  private constructor(
    all: readonly RepeatedWindow[],
    counters: readonly HitsCounter[],
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
    return new RepeatedWindows(all, countersOf(cache, all.map(({ hit }) => hit)), forms);
  }

  /** Takes hits in all windows; the receiver gets the counts of all as `windows`, or `WindowAnswers`. */
  take(hits: number, caller: Caller, receiver: CountReceiver): void {
    const taking = new Taking(this.all.length, this.#counters.length, caller);
    let at = 0;
    for (const counter of this.#counters) {
      taking.take(counter, hits, at);
      at += counter.size;
    }
    taking.whenAnswered((answers) => {
      if (areCounted(answers)) receiver.counted(countOfWindows(answers));
      else receiver.failed(new WindowAnswers(answers));
    });
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
