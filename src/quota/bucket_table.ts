import { WideMap } from "../base/wide_map.ts";
import { cacheKey } from "../ratelimit/rules/cache_key.ts";
import { keyEntries } from "../ratelimit/rules/key_entries.ts";
import { type BucketMatch, matchBucket } from "../ratelimit/rules/match_bucket.ts";
import type { CacheFailureMode } from "../ratelimit/rule_source.ts";
import type { RateLimit, Rules } from "../ratelimit/rules/rules.ts";
import type { Entry } from "../ratelimit/request.ts";
import { Quota } from "./quota.ts";
import { QuotaLease } from "./quota_lease.ts";
import { type QuotaLimit, quotaLimit } from "./quota_limit.ts";
import type { QuotaShares } from "./quota_shares.ts";

/** A bucket of a domain, which all clients share. */
export interface Bucket {
  readonly id: string;
  readonly domain: string;
  readonly pairs: readonly Entry[];
  /** Clients that have it. */
  clients: number;
  /** Undefined without a rule. */
  match: BucketMatch | undefined;
  leased: LeasedQuota;
  /** The rules that it was matched with. */
  rules: Rules;
}

/** A quota, with the part of this instance in it. */
export interface LeasedQuota {
  readonly quota: Quota;
  readonly lease: QuotaLease;
  /** Of its rule. */
  onCacheFailure: CacheFailureMode | undefined;
  buckets: number;
  /** The time of the next division at the earliest, infinite during one, and true if one is due then. */
  nextAt: number;
  isDue: boolean;
  /** Its place among those in which a share may change without a report. */
  isWatched: boolean;
  nextWatched: LeasedQuota | undefined;
}

/** The key of the quota of all buckets without a rule. */
const NO_RULE = "";
const NO_LIMIT = quotaLimit(undefined);

/** The buckets of all clients, and their quotas. */
export class BucketTable {
  readonly #buckets = new Map<string, WideMap<Bucket>>();
  readonly #quotas = new WideMap<LeasedQuota>();
  readonly #limits = new WeakMap<RateLimit, QuotaLimit>();
  readonly #shares: QuotaShares;
  readonly #isShadow: boolean;
  readonly #unknownUntil: number;
  #rules: Rules;

  constructor(
    rules: Rules,
    options: {
      readonly shares: QuotaShares;
      readonly shadowMode: boolean;
      readonly unknownUntil: number;
    },
  ) {
    this.#rules = rules;
    this.#shares = options.shares;
    this.#isShadow = options.shadowMode;
    this.#unknownUntil = options.unknownUntil;
  }

  /** All buckets. */
  get buckets(): Iterable<Bucket> {
    return this.#all();
  }

  /** Later matches are with these rules; the caller gives `refresh` each bucket of each client. */
  setRules(rules: Rules): void {
    this.#rules = rules;
  }

  /** A client has a bucket from now on; its other clients may have been in another quota. */
  join(domain: string, id: string, pairs: readonly Entry[]): Bucket {
    let buckets = this.#buckets.get(domain);
    if (buckets === undefined) this.#buckets.set(domain, buckets = new WideMap());
    let bucket = buckets.get(id);
    if (bucket === undefined) {
      const { match, leased } = this.#leasedOf(domain, pairs);
      bucket = { id, domain, pairs: match?.entries ?? pairs, clients: 0, match, leased, rules: this.#rules };
      leased.buckets++;
      buckets.set(id, bucket);
    } else this.refresh(bucket);
    bucket.clients++;
    return bucket;
  }

  /** A client has a bucket no longer. */
  leave(bucket: Bucket): void {
    if (--bucket.clients > 0) return;
    bucket.leased.buckets--;
    const buckets = this.#buckets.get(bucket.domain);
    buckets?.delete(bucket.id);
    if (buckets?.size === 0) this.#buckets.delete(bucket.domain);
  }

  /** Matches a bucket with the present rules. */
  refresh(bucket: Bucket): void {
    if (bucket.rules === this.#rules) return;
    const { match, leased } = this.#leasedOf(bucket.domain, bucket.pairs);
    bucket.leased.buckets--;
    leased.buckets++;
    Object.assign(bucket, { pairs: match?.entries ?? bucket.pairs, rules: this.#rules, match, leased });
  }

  /** Forgets a quota that has neither buckets nor members. */
  drop(leased: LeasedQuota): void {
    const { quota: { key, members }, buckets } = leased;
    // Another one may have its key by now.
    if (buckets === 0 && members.size === 0 && this.#quotas.get(key) === leased) this.#quotas.delete(key);
  }

  *#all(): Generator<Bucket> {
    for (const buckets of this.#buckets.values()) yield* buckets.values();
  }

  #leasedOf(
    domain: string,
    pairs: readonly Entry[],
  ): { match: BucketMatch | undefined; leased: LeasedQuota } {
    const table = this.#rules.domains.get(domain);
    const match = table === undefined ? undefined : matchBucket(table, pairs);
    const key = match === undefined ? NO_RULE : quotaKey(domain, match);
    const limit = this.#limitOf(match?.limit);
    let leased = this.#quotas.get(key);
    if (leased === undefined) {
      const quota = new Quota(key, limit, this.#unknownUntil);
      this.#quotas.set(
        key,
        leased = {
          quota,
          lease: new QuotaLease(this.#shares, quota),
          onCacheFailure: undefined,
          buckets: 0,
          nextAt: 0,
          isDue: false,
          isWatched: false,
          nextWatched: undefined,
        },
      );
    }
    leased.quota.limit = limit;
    leased.onCacheFailure = match?.limit.onCacheFailure;
    return { match, leased };
  }

  /** One object for each rule. */
  #limitOf(limit: RateLimit | undefined): QuotaLimit {
    if (limit === undefined) return NO_LIMIT;
    let known = this.#limits.get(limit);
    if (known === undefined) this.#limits.set(limit, known = quotaLimit(limit, this.#isShadow));
    return known;
  }
}

/**
 * The counter name of the rule with the values, in keys of every algorithm alike, and the lengths of its parts: equal names
 * of several rules or values have their own quotas, since a quota has the limit of one rule.
 */
function quotaKey(domain: string, { limit, entries }: BucketMatch): string {
  const { counterName: { varying = [] } = {}, path = [] } = limit.rule ?? {};
  const keyed = keyEntries(entries, varying);
  const lengths = path.flatMap(({ key, value }, index) => {
    return [key, varying.includes(index) ? keyed[index]?.value ?? "" : value].map((text) => text.length);
  });
  return cacheKey("", domain, keyed, limit, `quota${[domain.length, ...lengths].join(".")}`);
}
