/** The need of an instance for a quota. */
export interface QuotaNeed {
  /** Equal in all instances. */
  readonly key: string;
  /** True for a limit per second, which may have its own cache. */
  readonly isPerSecond: boolean;
  /** Requests per second, as all rates here: of the quota, asked for by the clients, and that they may still use. */
  readonly limit: number;
  readonly demand: number;
  readonly held: number;
}

/** The part of an instance. */
export interface QuotaGrant {
  /** The most that it may hand out from now on; it may be below what it holds, which it then has to lower. */
  readonly perSecond: number;
  /** Other instances leave it this part for so long after the exchange began. */
  readonly leaseMs: number;
}

/** Divides quotas among instances. While an exchange is under way, or failed, the instance holds no more than it told. */
export interface QuotaShares {
  /** Tells the need and returns the part, immediately if there is one instance. Rejects if the cache fails. */
  exchange(need: QuotaNeed): QuotaGrant | Promise<QuotaGrant>;
  /** Gives the part of a quota back of which nothing is held. Rejects if the cache fails. */
  leave(key: string, isPerSecond: boolean): Promise<void>;
}

/** Of one instance, which has whatever the limit is. */
export const wholeShares: QuotaShares = {
  exchange: () => ({ perSecond: Infinity, leaseMs: Infinity }),
  leave: () => Promise.resolve(),
};

/** A lease that covers an assignment, and the pause between two exchanges. */
export const LEASE_MS = 20_000;
