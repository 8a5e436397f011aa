import type { CounterPlace, Hit, TakingPlace } from "./counter_cache.ts";
import type { CurrentLimit } from "./decision.ts";
import type { Plan } from "./plan.ts";
import type { RuleCounters } from "./stats_sink.ts";

/** Writes responses to requests that have one limit, are within it, and differ only in these numbers. */
export interface ResponseForm {
  /** The maximum length of a response. */
  readonly maxBytes: number;
  /** Writes a response and returns where it ends. */
  write(into: Uint8Array, at: number, limitRemaining: number, secondsUntilReset: number): number;
}

/** The form of the responses with a limit, if there is one. */
export type FormOf = (limit: CurrentLimit) => ResponseForm | undefined;

/** The response to a request that was known and counted in this process; reused by the next one. */
export class KnownResponse {
  form: ResponseForm | undefined;
  limitRemaining = 0;
  secondsUntilReset = 0;

  get maxBytes(): number {
    return this.form?.maxBytes ?? 0;
  }

  /** Writes it and returns where it ends. */
  write(into: Uint8Array, at: number): number {
    return this.form?.write(into, at, this.limitRemaining, this.secondsUntilReset) ?? at;
  }
}

/** The plan of a request that is recognized by its bytes; valid for the same rules, within one window. */
export interface KnownPlan {
  /** For a shared cache, where an outcome may need it. */
  readonly plan: Plan | undefined;
  /** Seconds since the epoch; infinite with `taking`, as is the length. */
  readonly windowEnd: number;
  readonly windowSeconds: number;
  readonly hits: number;
  readonly requestsPerUnit: number;
  /** Hits above this count are near the limit. */
  readonly nearLimit: number;
  readonly counters: RuleCounters;
  readonly form: ResponseForm;
  /** Where this process counts; undefined for a shared cache. */
  readonly place: CounterPlace | undefined;
  /** Where this process takes conditional hits. */
  readonly taking: TakingPlace | undefined;
  /** For a shared cache; undefined with `taking`. */
  readonly hit: Hit | undefined;
}

/** Whether a request with this plan has the same effects each time, apart from the count. */
export function isRepeatable({ descriptors, request }: Plan): boolean {
  const [planned] = descriptors;
  const limit = planned?.limit;
  return descriptors.length === 1 && planned !== undefined && !planned.negative && planned.hits > 0 &&
    limit !== undefined && limit.rule?.metricKey !== undefined && !limit.unlimited && !limit.shadowMode &&
    !limit.quotaMode && limit.events?.nearLimit !== true && limit.replaces.length === 0 &&
    request.descriptors[0]?.limit === undefined;
}

/** Requests up to this length are recognized, in bytes. */
const MAX_BYTES = 256;
const PLACES = 32_768;
/** Places of one hash, in each table. */
const WAYS = 4;
const SEEN_HASHES = 65_536;
/** Lookups after which the share of known requests is judged. */
const TRIAL = 32_768;
/** Lookups that are left out when that share is too low. */
const REST = 262_144;
const LOWEST_SHARE = 0.25;
const NOWHERE = -1;

/**
 * A bounded table from the bytes of requests to their plans. A request is admitted when it is seen a second time; its
 * hash depends on a seed, and all bytes are compared. Lookups pause while few requests are known.
 */
export class KnownPlans {
  readonly #seed: number;
  readonly #bytes = new Uint8Array(PLACES * MAX_BYTES);
  /** By place; 0 if it is free. */
  readonly #lengths = new Int32Array(PLACES);
  readonly #hashes = new Int32Array(PLACES);
  readonly #plans = new Array<KnownPlan | undefined>(PLACES).fill(undefined);
  /** Hashes of requests that were seen lately. */
  readonly #seen = new Int32Array(SEEN_HASHES);
  /** Of the last lookup. */
  #hash = 0;
  #place = NOWHERE;
  #isPaused = false;
  #lookups = 0;
  #known = 0;
  #nextWay = 0;

  /** `random` returns a number from 0 to below 1. */
  constructor(random: () => number) {
    this.#seed = Math.floor(random() * 2 ** 32) | 0;
  }

  /** The plan of the request between two positions, whose window may be over. */
  find(bytes: Uint8Array, start: number, end: number): KnownPlan | undefined {
    this.#place = NOWHERE;
    if (++this.#lookups > (this.#isPaused ? REST : TRIAL)) this.#judge();
    const length = end - start;
    if (this.#isPaused || length > MAX_BYTES || length === 0) {
      this.#hash = 0;
      return undefined;
    }
    const hash = this.#hash = this.#hashOf(bytes, start, end);
    const first = hash & (PLACES - WAYS);
    for (let place = first; place < first + WAYS; place++) {
      if (this.#hashes[place] !== hash || this.#lengths[place] !== length) continue;
      if (!this.#holds(place, bytes, start, length)) continue;
      this.#place = place;
      this.#known++;
      return this.#plans[place];
    }
    return undefined;
  }

  /** Whether the request of the last lookup is to be put into the table. */
  get isAdmitted(): boolean {
    if (this.#place !== NOWHERE) return true;
    const hash = this.#hash;
    if (hash === 0) return false;
    const seen = this.#seen;
    const first = (hash >>> 2) & (SEEN_HASHES - WAYS);
    for (let index = first; index < first + WAYS; index++) {
      if (seen[index] === hash) return true;
    }
    seen.copyWithin(first + 1, first, first + WAYS - 1);
    seen[first] = hash;
    return false;
  }

  /** Sets the plan of the request of the last lookup. */
  put(request: Uint8Array, plan: KnownPlan): void {
    const place = this.#place === NOWHERE ? this.#takePlace() : this.#place;
    this.#bytes.set(request, place * MAX_BYTES);
    this.#lengths[place] = request.length;
    this.#hashes[place] = this.#hash;
    this.#plans[place] = plan;
  }

  /** Drops all plans, because the rules changed. The requests stay admitted. */
  dropPlans(): void {
    this.#plans.fill(undefined);
  }

  #judge(): void {
    this.#isPaused = !this.#isPaused && this.#known < this.#lookups * LOWEST_SHARE;
    this.#lookups = 0;
    this.#known = 0;
  }

  #takePlace(): number {
    const first = this.#hash & (PLACES - WAYS);
    for (let place = first; place < first + WAYS; place++) {
      if (this.#lengths[place] === 0) return place;
    }
    this.#nextWay = (this.#nextWay + 1) % WAYS;
    return first + this.#nextWay;
  }

  #holds(place: number, bytes: Uint8Array, start: number, length: number): boolean {
    const offset = place * MAX_BYTES;
    let index = 0;
    while (index < length && this.#bytes[offset + index] === bytes[start + index]) index++;
    return index === length;
  }

  /** Never 0. */
  #hashOf(bytes: Uint8Array, start: number, end: number): number {
    let hash = this.#seed;
    let at = start;
    for (; at + 4 <= end; at += 4) {
      const word = (bytes[at] ?? 0) | (bytes[at + 1] ?? 0) << 8 | (bytes[at + 2] ?? 0) << 16 |
        (bytes[at + 3] ?? 0) << 24;
      hash = Math.imul(hash ^ word, 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    for (; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
    // Places are taken from low bits, which have to depend on every byte.
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    return (hash ^ (hash >>> 13)) || 1;
  }
}
