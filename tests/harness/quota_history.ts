import type { Clock } from "../../src/base/clock.ts";
import { QuotaHub, type QuotaHubOptions } from "../../src/quota/quota_hub.ts";
import { wholeShares } from "../../src/quota/quota_shares.ts";
import { FakeClock } from "./fake_clock.ts";
import { QuotaEnvoy } from "./quota_envoy.ts";
import { ShareCache } from "./quota_share_script.ts";
import { rulesOf } from "./service_fixture.ts";

const STEP_MS = 100;
/** Each phase begins restless, and then nothing changes. */
const PHASE_MS = 75_000;
const RESTLESS_MS = 35_000;
/** An instance restarts when shares have settled. */
const RESTART_MS = 65_000;
const DOMAIN = "d";

/** A random history of clients of one quota. */
export interface QuotaHistoryOptions {
  readonly random: () => number;
  readonly limit: number;
  readonly instances: number;
  readonly seconds: number;
  /** Part of the limit that is asked for at most, in sum. */
  readonly load: number;
  /** True if the cache fails now and then. */
  readonly hasFailures?: boolean;
  /** True if the instance restarts in each phase, and requests are refused without an assignment. */
  readonly hasRestarts?: boolean;
  readonly maxDelayMs?: number;
  /** The most buckets of a client; 2 if absent. */
  readonly maxBuckets?: number;
  /** Time that passes with each look of an instance at the clock, so that its work is done in slices. */
  readonly lookMs?: number;
  readonly rule?: string;
}

/** The outcome of a history. */
interface QuotaHistoryRecord {
  /** The largest sum of tokens per second in force, as a part of the limit. */
  most: number;
  mostAt: number;
  /** The longest time for which a client was refused without a pause, in milliseconds. */
  longestRefusal: number;
  refusalAt: number;
  readonly log: string[];
}

interface Place {
  readonly envoy: QuotaEnvoy;
  readonly buckets: string[];
  readonly label: string;
  hub: Instance | undefined;
  refusedSince: number | undefined;
}

interface Instance {
  readonly name: string;
  readonly hub: QuotaHub;
}

/** The options of a hub for tests. */
export function hubOptions(clock: FakeClock, rule: string): QuotaHubOptions {
  return {
    clock,
    rules: rulesOf({ "r.yaml": `domain: ${DOMAIN}\ndescriptors:\n${rule}` }),
    shares: wholeShares,
    maxStreams: 100,
    maxBucketsPerStream: 100,
    maxBuckets: 1_000,
    overflow: "deny",
    shadowMode: false,
    onCacheFailure: "error",
    usage: { used: () => {}, refused: () => {} },
  };
}

/** Plays a history. */
export async function playHistory(options: QuotaHistoryOptions): Promise<QuotaHistoryRecord> {
  const history = new History(options);
  await history.play();
  return history.record;
}

class History {
  readonly record: QuotaHistoryRecord = { most: 0, mostAt: 0, longestRefusal: 0, refusalAt: 0, log: [] };
  readonly #options: QuotaHistoryOptions;
  readonly #clock = new FakeClock(0);
  readonly #cache: ShareCache;
  readonly #startedAt = this.#clock.elapsed();
  #places: Place[] = [];
  #instances: Instance[] = [];
  #count = 0;
  /** The last change, the end of a silence included. */
  #calmSince = 0;

  constructor(options: QuotaHistoryOptions) {
    this.#options = options;
    this.#cache = new ShareCache({
      clock: this.#clock,
      delay: () => Math.floor(options.random() * 50),
      fails: () => options.hasFailures === true && options.random() < 0.1,
    });
    for (let index = 0; index < options.instances; index++) this.#start();
  }

  async play(): Promise<void> {
    const { seconds, instances } = this.#options;
    // Only the answers of a cache take turns.
    const turns = instances > 1 ? 12 : 0;
    for (let index = 0; index < 1 + this.#pick(4); index++) this.#join();
    while (this.#now() < seconds * 1_000) {
      if (this.#now() % PHASE_MS < RESTLESS_MS && this.#pick(25) === 0) this.#change();
      if (this.#options.hasRestarts === true && this.#now() % PHASE_MS === RESTART_MS) this.#restart();
      this.#clock.advance(STEP_MS);
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      this.#look();
    }
    for (const { hub } of this.#instances) hub.close();
  }

  #now(): number {
    return this.#clock.elapsed() - this.#startedAt;
  }

  #pick(below: number): number {
    return Math.floor(this.#options.random() * below);
  }

  #one<T>(list: readonly T[]): T | undefined {
    return list[this.#pick(list.length)];
  }

  #note(text: string): void {
    this.#calmSince = this.#now();
    this.record.log.push(`${(this.#now() / 1_000).toFixed(1)} ${text}`);
  }

  #start(): void {
    const name = `i${this.#count++}`;
    const { limit, instances, rule } = this.#options;
    const text = rule ?? `- {key: k, value: "v*", share_threshold: true, ` +
        `rate_limit: {unit: second, requests_per_unit: ${limit}}}`;
    const shares = instances > 1 ? this.#cache.of(name) : wholeShares;
    const hub = new QuotaHub({ ...hubOptions(this.#clock, text), clock: this.#slowClock(), shares });
    this.#instances.push({ name, hub });
  }

  #slowClock(): Clock {
    const clock = this.#clock;
    const { lookMs = 0 } = this.#options;
    return {
      now: () => clock.now(),
      elapsed: () => {
        clock.elapsedAheadMs += lookMs;
        return clock.elapsed();
      },
      after: (delayMs, run) => clock.after(delayMs, run),
    };
  }

  #join(): void {
    if (this.#places.length >= 6) return;
    const label = `e${this.#count++}`;
    const name = this.#pick(2) === 0 ? label : undefined;
    const { maxDelayMs = 1_000 } = this.#options;
    const envoy: QuotaEnvoy = new QuotaEnvoy({
      clock: this.#clock,
      name,
      domain: DOMAIN,
      isClosed: this.#options.hasRestarts === true,
      delay: () => this.#pick(maxDelayMs + 1),
      isDirect: this.#pick(2) === 0,
      applied: () => this.#measure(),
    });
    const place: Place = { envoy, buckets: [], label, hub: undefined, refusedSince: undefined };
    this.#places.push(place);
    this.#connect(place);
    const count = 1 + this.#pick(this.#options.maxBuckets ?? 2);
    for (let index = 0; index < count; index++) place.buckets.push(`v${index}`);
    this.#note(`join ${label} ${name === undefined ? "" : "named"} with ${count}`);
    this.#setDemands();
  }

  #connect(place: Place): void {
    const instance = this.#one(this.#instances);
    if (instance === undefined) return;
    place.hub = instance;
    this.#note(`connect ${place.label} to ${instance.name}`);
    place.envoy.connect(instance.hub);
  }

  /** The requests per second of all, in sum below the load. */
  #setDemands(): void {
    const { limit, load } = this.#options;
    const buckets = this.#places.flatMap(({ envoy, buckets }) => buckets.map((id) => ({ envoy, id })));
    const weights = buckets.map(() => this.#pick(3) === 0 ? 0 : this.#options.random() ** 3);
    const sum = weights.reduce((total, weight) => total + weight, 0);
    for (const [index, { envoy, id }] of buckets.entries()) {
      const perSecond = sum === 0 ? 0 : limit * load * (weights[index] ?? 0) / sum;
      envoy.demand(id, [{ key: "k", value: id }], perSecond);
    }
    this.#note(
      `demands ${weights.map((weight) => (limit * load * weight / (sum || 1)).toFixed(1)).join(" ")}`,
    );
  }

  #change(): void {
    const kind = this.#pick(12);
    const place = this.#one(this.#places);
    if (kind < 3) this.#join();
    else if (kind < 5) this.#setDemands();
    else if (place === undefined) return;
    else if (kind < 6) {
      this.#note(`kill ${place.label}`);
      place.envoy.kill(this.#pick(3_000));
      this.#places = this.#places.filter((other) => other !== place);
    } else if (kind < 8) {
      this.#disconnect(place, this.#pick(3_000), this.#options.hasRestarts === true ? 0 : this.#pick(20_000));
    } else if (kind < 9 && this.#options.hasRestarts !== true) {
      this.#note(`silence ${place.label}`);
      const silentMs = this.#pick(20_000);
      place.envoy.silence(silentMs);
      this.#clock.after(silentMs, () => this.#note(`end of silence ${place.label}`));
    } else if (kind < 11 && this.#instances.length > 1 && this.#pick(3) === 0) this.#restart();
  }

  /** As Envoy does, it connects at the time of a report. */
  #disconnect(place: Place, noticedAfterMs: number, pauseMs: number): void {
    this.#note(`disconnect ${place.label}`);
    place.hub = undefined;
    place.envoy.disconnect(noticedAfterMs);
    this.#clock.after(pauseMs, () => place.envoy.connectLater(() => this.#connect(place)));
  }

  /** An instance is killed, and another one starts. */
  #restart(): void {
    const instance = this.#one(this.#instances);
    if (instance === undefined) return;
    this.#note(`kill ${instance.name}`);
    this.#cache.kill(instance.name);
    this.#instances = this.#instances.filter((other) => other !== instance);
    this.#start();
    for (const place of this.#places) if (place.hub === instance) this.#disconnect(place, 0, 0);
  }

  #measure(): void {
    const sum = this.#places.reduce((total, { envoy }) => total + envoy.tokensPerSecond(), 0);
    const part = sum / this.#options.limit;
    if (part <= this.record.most) return;
    this.record.most = part;
    this.record.mostAt = this.#now();
  }

  #look(): void {
    const now = this.#now();
    for (const place of this.#places) {
      if (place.hub === undefined || place.envoy.refusedPerSecond() < this.#options.limit * 0.02) {
        place.refusedSince = undefined;
        continue;
      }
      place.refusedSince ??= now;
      const refused = now - Math.max(place.refusedSince, this.#calmSince);
      if (refused <= this.record.longestRefusal) continue;
      this.record.longestRefusal = refused;
      this.record.refusalAt = now;
    }
  }
}
